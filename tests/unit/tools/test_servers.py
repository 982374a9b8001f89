"""Child processes: found healthy, found dead, ended with their children; magnetar's addresses read from its output."""

from __future__ import annotations

import shlex
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tools.servers import magnetar
from tools.servers.process import StartFailedError, free_ports, listening, spawn, wait_until

LISTENER = """
import socket, sys, time
listener = socket.socket()
listener.bind(("127.0.0.1", int(sys.argv[1])))
listener.listen()
time.sleep(60)
"""
FORKER = "import subprocess,sys,time; p=subprocess.Popen(['sleep','60']); print(p.pid, flush=True); time.sleep(60)"
ANNOUNCER = """
import sys, time
print(sys.argv[1:])
print("ready: pulsar://127.0.0.1:1234 and http://127.0.0.1:5678", flush=True)
time.sleep(60)
"""


def running(pid: int) -> bool:
    state = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False).stdout
    return state.strip() not in ("",) and not state.startswith("Z")


def test_free_ports_differ() -> None:
    assert len(set(free_ports(5))) == 5


def test_a_server_is_waited_for_and_stopped(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    server = spawn("listener", [sys.executable, "-c", LISTENER, str(port)], tmp_path / "log")
    wait_until(server, lambda: listening(port), 20)
    assert listening(port)
    server.stop()
    assert not listening(port)
    server.stop()


def test_a_server_that_ends_is_reported_with_its_last_lines(tmp_path: Path) -> None:
    server = spawn("short", [sys.executable, "-c", "raise SystemExit('no disk')"], tmp_path / "log")
    with pytest.raises(StartFailedError, match=r"short ended; its last lines:\nno disk"):
        wait_until(server, lambda: False, 20)


def test_a_server_that_stays_unhealthy_is_stopped(tmp_path: Path) -> None:
    server = spawn("deaf", ["sleep", "60"], tmp_path / "log")
    with pytest.raises(StartFailedError, match="was not healthy in time"):
        wait_until(server, lambda: False, 0.3)
    assert server.process is None


def test_children_of_a_server_end_with_it(tmp_path: Path) -> None:
    server = spawn("forker", [sys.executable, "-c", FORKER], tmp_path / "log")
    wait_until(server, lambda: (tmp_path / "log").read_text().endswith("\n"), 20)
    child = int((tmp_path / "log").read_text())
    assert running(child)
    server.stop()
    deadline = time.monotonic() + 5
    while running(child) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not running(child)


def test_magnetar_is_asked_for_any_port_and_its_addresses_are_read(tmp_path: Path) -> None:
    script = tmp_path / "announce.py"
    script.write_text(ANNOUNCER)
    command = f"{shlex.quote(sys.executable)} {shlex.quote(str(script))}"
    with magnetar.start(tmp_path / "run", settings={"maxMessageSize": "9"}, command=command) as server:
        assert (server.broker_port, server.http_port) == (1234, 5678)
        said = server.log.read_text()
    for flag in ("'brokerServicePort=0'", "'webServicePort=0'", "'maxMessageSize=9'", "'--data'"):
        assert flag in said
