"""Which processes a server may be forked for, and what travels between them."""

from __future__ import annotations

import os
import socket
from dataclasses import replace
from pathlib import Path

import pytest

from magnetar.spark.forks import fork_request
from magnetar.spark.forks.fork_request import ForkRequest, is_own, is_taken, receive, run_as_fork, send

PATH = ["/work", "/site-packages"]
ENVIRONMENT = {"PYTHONHASHSEED": "0", "OMP_NUM_THREADS": "1", "HOME": "/home"}
REQUEST = ForkRequest(["pyspark.daemon", "pyspark.worker"], PATH, ENVIRONMENT, "/", 0o22)


def test_what_a_process_reads_when_it_is_used_may_be_another() -> None:
    given = {**ENVIRONMENT, "HOME": "/other", "SPARK_REUSE_WORKER": "1", "PYTHON_WORKER_FACTORY_SOCK_DIR": "/tmp"}
    assert replace(REQUEST, environment=given, path=["/elsewhere", *PATH[1:]]).misfit(PATH, ENVIRONMENT) == ""
    assert replace(REQUEST, environment={}).misfit(PATH, ENVIRONMENT) == ""


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"arguments": ["json.tool"]}, "only pyspark.daemon is forked"),
        ({"arguments": []}, "only pyspark.daemon is forked"),
        ({"path": ["/work", "/of-the-user", "/site-packages"]}, "the path is another one"),
        ({"environment": {**ENVIRONMENT, "PYTHONHASHSEED": "7"}}, "PYTHONHASHSEED is another one"),
        ({"environment": {**ENVIRONMENT, "OMP_NUM_THREADS": "2"}}, "OMP_NUM_THREADS is another one"),
        ({"environment": {**ENVIRONMENT, "LD_PRELOAD": "/lib.so"}}, "LD_PRELOAD is another one"),
    ],
)
def test_what_is_read_at_the_start_must_be_the_same(changed: dict[str, object], why: str) -> None:
    assert replace(REQUEST, **changed).misfit(PATH, ENVIRONMENT) == why  # type: ignore[arg-type]


def test_messages_bring_their_descriptors_and_texts_that_are_no_unicode() -> None:
    left, right = socket.socketpair()
    reading, writing = os.pipe()
    with left, right:
        send(left, {"name": os.fsdecode(b"\xff")}, [writing])
        message, (received,) = receive(right, 1)
        assert os.fsencode(message["name"]) == b"\xff"
        os.close(writing)
        os.write(received, b"x")
        assert os.read(reading, 1) == b"x"
        os.close(received)
        os.close(reading)


@pytest.mark.parametrize("sent", [b"", b"\0\0", b"\xff\xff\xff\xff", b"\0\0\0\2[", b"\0\0\0\1[", b"\0\0\0\2no"])
def test_what_is_no_message_is_an_error(sent: bytes) -> None:
    left, right = socket.socketpair()
    with left, right:
        left.sendall(sent)
        left.shutdown(socket.SHUT_WR)
        with pytest.raises((ValueError, TypeError)):
            receive(right)


def test_a_fork_that_is_not_wanted_any_more_does_not_begin() -> None:
    left, right = socket.socketpair()
    left.close()
    with right:
        assert not is_taken(right, 1)


def test_there_is_nothing_between_users(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "s"))
        listener.listen()
        with socket.socket(socket.AF_UNIX) as mine:
            mine.connect(str(tmp_path / "s"))
            assert is_own(mine)
            user = os.getuid()
            monkeypatch.setattr(os, "getuid", lambda: user + 1)
            assert not is_own(mine)
        assert run_as_fork(str(tmp_path / "s"), ["pyspark.daemon"]) is None


def test_without_a_server_the_process_works_itself(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert run_as_fork(str(tmp_path / "nothing"), ["pyspark.daemon"]) is None
    monkeypatch.setattr(fork_request, "_PATIENCE", 0.05)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "silent"))
        listener.listen()
        assert run_as_fork(str(tmp_path / "silent"), ["pyspark.daemon"]) is None
