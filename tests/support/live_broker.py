"""``magnetar standalone`` as a process of its own, for tests that want real sockets and files; ended by its own id.

With ``MAGNETAR_WIRE_BROKER=apache`` it is Apache Pulsar (`make wire`).
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tools.servers import apache
from tools.servers.process import Server

HOST = "127.0.0.1"
_PATIENCE = 30
ON_APACHE = os.environ.get("MAGNETAR_WIRE_BROKER") == "apache"


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

    def stop_for_now(self) -> None:
        """Have its process answer nothing; `end` it with SIGKILL."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def end(self, number: int = signal.SIGTERM) -> None:
        """End it, by default as Ctrl-C does; with SIGKILL as an accident does."""
        process = self._process
        if process is not None:
            process.send_signal(number)
            process.wait(_PATIENCE)
            assert process.stdout is not None
            process.stdout.close()
        self._process = None


class LiveApacheBroker(LiveBroker):
    """Apache Pulsar in its place: its settings have the same names."""

    def __init__(self, directory: Path, **settings: object) -> None:
        super().__init__(directory, **settings)
        self._settings = {name: str(value) for name, value in settings.items() if name != "webServicePort"}
        self._ports = (int(self.url.rpartition(":")[2]), int(str(settings.get("webServicePort") or free_port())))
        self._server: Server | None = None

    def start(self) -> None:
        broker, http = self._ports
        self._server = apache.start(self._directory, settings=self._settings, broker_port=broker, http_port=http)

    def end(self, number: int = signal.SIGTERM) -> None:
        server, self._server = self._server, None
        if server is not None:
            if number == signal.SIGKILL and server.process is not None:
                os.killpg(server.process.pid, number)
            server.stop()


@contextmanager
def live_broker(directory: Path, **settings: object) -> Iterator[LiveBroker]:
    """Started, and ended at the end."""
    broker = (LiveApacheBroker if ON_APACHE else LiveBroker)(directory, **settings)
    broker.start()
    try:
        yield broker
    finally:
        broker.end()
