"""``magnetar standalone`` as a process of its own, for tests that want real sockets and files; ended by its own id."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

HOST = "127.0.0.1"
_PATIENCE = 30


def free_port() -> int:
    """A port that no process listens on at the moment."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


class LiveBroker:
    """One data directory and one port; may be killed and started again."""

    def __init__(self, directory: Path, **settings: object) -> None:
        self._directory = directory
        port = free_port()
        self.url = f"pulsar://{HOST}:{port}"
        arguments = {"bindAddress": HOST, "brokerServicePort": port, "webServicePort": 0, **settings}
        self._command = [sys.executable, "-m", "magnetar.app.main", "standalone", "--data", str(directory / "data")]
        for name, value in arguments.items():
            self._command += ["--set", f"{name}={value}"]
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        """Returns when it is ready."""
        with (self._directory / "broker.log").open("a") as log:
            process = subprocess.Popen(self._command, stdout=subprocess.PIPE, stderr=log, text=True)
        self._process = process
        assert process.stdout is not None
        if not any("is ready" in line for line in process.stdout):
            raise AssertionError((self._directory / "broker.log").read_text())

    def end(self, number: int = signal.SIGTERM) -> None:
        """End it, by default as Ctrl-C does; with SIGKILL as an accident does."""
        process = self._process
        if process is not None:
            process.send_signal(number)
            process.wait(_PATIENCE)
            assert process.stdout is not None
            process.stdout.close()
        self._process = None


@contextmanager
def live_broker(directory: Path, **settings: object) -> Iterator[LiveBroker]:
    """Started, and ended at the end."""
    broker = LiveBroker(directory, **settings)
    broker.start()
    try:
        yield broker
    finally:
        broker.end()
