"""Daemons of Spark's that are forks: where they come from, how they end, and what they do without their server."""

from __future__ import annotations

import errno
import os
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from magnetar.spark.forks import server_start
from magnetar.spark.forks.fork_request import ADDRESS, ForkRequest, receive, send
from magnetar.spark.forks.fork_server import ForkServer
from magnetar.spark.interpreter import of_session

PATIENCE = 60.0
ENDED = 1
"""How Spark's daemon ends, whatever ends it."""

pytestmark = pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="there are no fork servers here")


@pytest.fixture(scope="module")
def servers() -> Iterator[None]:
    """Servers take seconds to load, so one serves until a test ends it; while they compile they see to no forks."""
    subprocess.run([sys.executable, "-m", "magnetar.columnar.compilation"], check=True)
    yield
    server_start.end()
    assert ADDRESS not in os.environ


@pytest.fixture
def server(servers: None) -> int:
    assert server_start.started(of_session())
    process = server_start._Started.process
    assert process is not None
    return process.pid


def daemon(**environment: str) -> subprocess.Popen[bytes]:
    """Start a daemon as Java does, for a module that every version of Spark has."""
    given = {**os.environ, "PYTHONHASHSEED": "0", **environment}
    line = [of_session(), "-m", "pyspark.daemon", "pyspark.sql.worker.lookup_data_sources"]
    return subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=given, bufsize=0)


def port(process: subprocess.Popen[bytes]) -> int:
    """Read where the daemon listens, which it says when it is ready."""
    assert process.stdout is not None
    found: int = struct.unpack("!i", process.stdout.read(4))[0]
    return found


def worker_of(at: int) -> tuple[int, int]:
    """Ask a daemon for a worker; its process and its daemon's."""
    with socket.create_connection(("127.0.0.1", at)) as connection:
        worker: int = struct.unpack("!i", connection.recv(4, socket.MSG_WAITALL))[0]
        return worker, parent(worker)


def parent(process: int) -> int:
    return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])


def eventually(what: Any) -> None:
    deadline = time.monotonic() + PATIENCE
    while not what():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_daemon_is_a_fork_and_ends_when_spark_closes_its_input(server: int) -> None:
    with daemon() as process:
        _, fork = worker_of(port(process))
        assert (parent(fork), parent(process.pid)) == (server, os.getpid())
        assert process.stdin is not None and process.stdout is not None
        process.stdin.close()
        assert process.wait(PATIENCE) == ENDED
        assert process.stdout.read() == b""
    eventually(lambda: not Path(f"/proc/{fork}").exists())


def test_signals_reach_the_fork_and_its_code_comes_back(server: int) -> None:
    with daemon() as process:
        _, fork = worker_of(port(process))
        # Spark's daemon does not notice one that comes while it forks, and dies of a second one.
        deadline = time.monotonic() + PATIENCE
        while Path(f"/proc/{fork}").exists() and time.monotonic() < deadline:
            process.terminate()
            time.sleep(0.02)
        assert process.wait(PATIENCE) in (ENDED, 128 + signal.SIGTERM)
    with daemon() as process:
        _, fork = worker_of(port(process))
        os.kill(fork, signal.SIGKILL)
        assert process.wait(PATIENCE) == 128 + signal.SIGKILL


def test_a_process_that_wants_to_start_otherwise_works_itself(server: int) -> None:
    with daemon(NUMBA_OPT="1") as process:
        assert worker_of(port(process))[1] == process.pid


def test_nothing_is_started_where_the_environment_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    server_start.end()
    for named in ("", "/another/socket"):
        monkeypatch.setenv(ADDRESS, named)
        assert server_start.started(of_session()) == ""


def test_forks_outlive_their_server(server: int) -> None:
    with daemon() as process:
        at = port(process)
        _, fork = worker_of(at)
        os.kill(server, signal.SIGKILL)
        eventually(lambda: parent(fork) != server)
        assert worker_of(at)[1] == fork
        assert process.poll() is None
        # What still asks for the old server works itself, and the next session gets another one.
        with daemon() as alone:
            assert worker_of(port(alone))[1] == alone.pid
        assert server_start.started(of_session())
    assert process.returncode == ENDED


def test_a_server_ends_with_its_session_and_leaves_nothing(server: int) -> None:
    address = Path(os.environ[ADDRESS])
    assert address.is_socket()
    assert address.parent.stat().st_mode & 0o777 == 0o700
    server_start.end()
    assert not address.parent.exists()


def test_strangers_words_and_forks_that_nobody_takes_leave_nothing(server: int) -> None:
    address = os.environ[ADDRESS]
    for words in (b"", b"\xff" * 100, b"\0\0\0\2{}", b'\0\0\0\x10{"arguments": 1}'):
        with socket.socket(socket.AF_UNIX) as stranger:
            stranger.connect(address)
            stranger.sendall(words)
    request = ForkRequest.of_this_process(["pyspark.daemon"])
    request.path[:] = [request.directory, *_path_of_server(server)[1:]]
    request.environment["PYTHONHASHSEED"] = "0"
    with socket.socket(socket.AF_UNIX) as left:
        left.connect(address)
        send(left, asdict(request), (0, 1, 2))
        fork = int(receive(left)[0]["process"])
        assert parent(fork) == server
    eventually(lambda: not Path(f"/proc/{fork}").exists())
    with daemon() as process:
        assert parent(worker_of(port(process))[1]) == server


def _path_of_server(server: int) -> list[str]:
    """What a process started as the server was has as its path."""
    line = [of_session(), "-m", "site"]
    said = subprocess.run(line, capture_output=True, text=True, check=True).stdout
    return [one.strip().strip("',") for one in said.splitlines() if one.startswith("    '")]


def test_a_server_has_one_thread_when_it_forks(server: int) -> None:
    with daemon() as process:
        _, fork = worker_of(port(process))
        assert len(os.listdir(f"/proc/{server}/task")) == len(os.listdir(f"/proc/{fork}/task")) == 1


@pytest.fixture
def visited(tmp_path: Path) -> Iterator[tuple[ForkServer, socket.socket, int, int]]:
    """A server in this process, who has come to it, and both ends of a pipe that travels with the request."""
    with socket.socket(socket.AF_UNIX) as listener, socket.socket(socket.AF_UNIX) as visitor:
        listener.bind(str(tmp_path / "s"))
        listener.listen()
        visitor.connect(str(tmp_path / "s"))
        reading, writing = os.pipe()
        os.set_blocking(reading, False)
        yield ForkServer(listener), visitor, reading, writing
        os.close(reading)


@pytest.mark.parametrize("why", ["refused", "no memory"])
def test_streams_of_who_is_not_served_are_let_go(
    visited: tuple[ForkServer, socket.socket, int, int], monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    """Java waits for their end; and a server that has kept 300 requests' can open nothing any more."""
    server, visitor, reading, writing = visited
    request = ForkRequest.of_this_process(["json.tool" if why == "refused" else "pyspark.daemon"])

    def fork() -> int:
        raise OSError(errno.ENOMEM, "Cannot allocate memory")

    monkeypatch.setattr(os, "fork", fork)
    send(visitor, asdict(request), (writing, writing, writing))
    os.close(writing)
    server._accept(workers=True)
    assert os.read(reading, 1) == b""
    answer = visitor.recv(1 << 10)
    assert (why == "refused") == (b"refused" in answer)
    assert server._forks == {}


def test_a_fork_that_cannot_begin_leaves_the_server_as_it_is(server: int) -> None:
    """Its directory may be gone by the time it goes there."""
    address = os.environ[ADDRESS]
    request = ForkRequest.of_this_process(["pyspark.daemon"])
    request.path[:] = [request.directory, *_path_of_server(server)[1:]]
    request.environment["PYTHONHASHSEED"] = "0"
    request.directory = "/nowhere"
    with socket.socket(socket.AF_UNIX) as visitor:
        visitor.connect(address)
        send(visitor, asdict(request), (0, 1, 2))
        assert "process" in receive(visitor)[0]
        send(visitor, {"taken": True})
        assert receive(visitor)[0] == {"code": 1}
    assert Path(address).is_socket()
    with daemon() as process:
        assert parent(worker_of(port(process))[1]) == server


def test_who_has_asked_ends_although_the_fork_stays_a_zombie(tmp_path: Path) -> None:
    """As in a container whose first process takes no orphans in, once the server is gone."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "s"))
        listener.listen()
        code = "import sys; from magnetar.spark.forks import fork_request as f; sys.exit(f.run_as_fork(*sys.argv[1:]))"
        with subprocess.Popen([sys.executable, "-c", code, str(tmp_path / "s"), "x"]) as asking:
            connection, _ = listener.accept()
            with connection, subprocess.Popen(["sleep", "1000"]) as fork:
                _, streams = receive(connection, 3)
                for one in streams:
                    os.close(one)
                send(connection, {"process": fork.pid})
                assert receive(connection)[0] == {"taken": True}
                connection.close()
                fork.kill()
                try:
                    assert asking.wait(PATIENCE) == 1
                finally:
                    asking.kill()
