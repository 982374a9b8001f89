"""No Java is left where its start is interrupted: it would neither serve nor end, and keep its memory."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
from pyspark import SparkConf, java_gateway

from magnetar.spark.java.launch import launch


@pytest.mark.parametrize("deaf", [True, False])
def test_a_start_that_is_interrupted_leaves_no_process(deaf: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C in the first seconds of a job left one of several hundred megabytes for ever."""
    began: list[subprocess.Popen[bytes]] = []

    def interrupted(_: object, arguments: dict[str, Any]) -> None:
        arguments["preexec_fn"] = lambda: None
        began.append(subprocess.Popen(["sleep", "600"], **arguments))
        raise KeyboardInterrupt

    monkeypatch.setattr(java_gateway, "launch_gateway", interrupted)
    with pytest.raises(KeyboardInterrupt):
        launch(SparkConf(loadDefaults=False), deaf=deaf)
    (process,) = began
    assert not Path(f"/proc/{process.pid}").exists()
    process.wait()


@pytest.mark.parametrize("begun", [True, False])
def test_a_start_that_fails_kills_nobody_else(begun: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that has ended and was waited for is not looked for; where none began there is none to kill."""

    def failed(_: object, arguments: dict[str, Any]) -> None:
        arguments["preexec_fn"] = lambda: None
        if begun:
            subprocess.Popen(["true"], **arguments).wait()
        raise ValueError

    monkeypatch.setattr(java_gateway, "launch_gateway", failed)
    monkeypatch.setattr("os.kill", lambda *_: pytest.fail("it killed"))
    with pytest.raises(ValueError):
        launch(SparkConf(loadDefaults=False), deaf=False)


@pytest.mark.parametrize("deaf", [True, False])
def test_a_process_that_is_deaf_does_not_end_by_sigterm(deaf: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    def begun(_: object, arguments: dict[str, Any]) -> subprocess.Popen[bytes]:
        arguments["preexec_fn"] = lambda: None
        return subprocess.Popen(["sleep", "600"], **arguments)

    monkeypatch.setattr(java_gateway, "launch_gateway", begun)
    process = launch(SparkConf(loadDefaults=False), deaf=deaf)
    ignored = next(
        int(line.split()[1], 16)
        for line in Path(f"/proc/{process.pid}/status").read_text().splitlines()
        if line.startswith("SigIgn")
    )
    process.kill()
    process.wait()
    assert bool(ignored >> (signal.SIGTERM - 1) & 1) is deaf
