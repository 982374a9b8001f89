"""The broker under attack: an installed ``magnetar standalone`` as a process, and what it uses."""

from __future__ import annotations

import http.client
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric import rsa
from tools.servers import magnetar
from tools.servers.process import HOST, Server

from tests.support.certificates import Authority

_REST_SECONDS = 30.0
_SETTINGS = {"transactionCoordinatorEnabled": "true", "acknowledgmentAtBatchIndexLevelEnabled": "true"}
"""What is off by default and gives attackers more to try; nothing that protects."""


@dataclass(frozen=True)
class Target:
    """Where the broker listens; goes to the attackers' processes."""

    broker_port: int
    http_port: int
    tls_port: int
    https_port: int
    authority: str
    """The file of the authority that both ports with TLS show certificates of."""

    def rest(
        self, method: str, path: str, body: object = None, headers: Mapping[str, str] | None = None
    ) -> tuple[int, Any]:
        """Status and JSON (or text) of one REST call."""
        data = None if body is None else json.dumps(body).encode()
        status, answer = self.http(method, path, data, {"content-type": "application/json", **(headers or {})})
        return status, _parsed(answer)

    def http(self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]) -> tuple[int, bytes]:
        """Status and body of one HTTP request on a connection of its own."""
        connection = http.client.HTTPConnection(HOST, self.http_port, timeout=_REST_SECONDS)
        try:
            connection.request(method, path, body, dict(headers))
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()


def _parsed(data: bytes) -> Any:
    try:
        return json.loads(data)
    except ValueError:
        return data.decode(errors="replace")


class Victim:
    """Started on ``directory``, stopped and started again on what it has written there."""

    def __init__(self, directory: Path, descriptors: int | None = None) -> None:
        self.directory = directory
        self._command = magnetar.COMMAND
        if descriptors is not None:
            self._command = f"sh -c 'ulimit -n {descriptors}; exec \"$@\"' sh {magnetar.COMMAND}"
        self._server: Server
        self._lives = 0
        self.log_before = ""

    def start(self) -> None:
        """Return when it serves. Raises StartFailedError."""
        settings = {**_SETTINGS, **self._doors()}
        self._server = magnetar.start(self.directory, settings=settings, command=self._command)

    def _doors(self) -> dict[str, str]:
        """Ports with TLS; the key is the kind whose signatures take longest."""
        place = self.directory / "tls"
        if not (place / "broker.pem").exists():
            Authority(place).issue("broker", key=rsa.generate_private_key(65537, 2048))
        return {
            "brokerServicePortTls": "0",
            "webServicePortTls": "0",
            "tlsCertificateFilePath": str(place / "broker.pem"),
            "tlsKeyFilePath": str(place / "broker.key.pem"),
        }

    def stop(self) -> None:
        """SIGTERM; what it logged is kept in ``log_before``. Raises RuntimeError unless it ends cleanly."""
        process = self._server.process
        self._server.stop()
        self.log_before += self._server.log.read_text(errors="replace")
        (self.directory / "before.log").write_text(self.log_before)
        if process is not None and process.returncode != 0:
            raise RuntimeError(f"the broker ended with {process.returncode} after SIGTERM")

    @property
    def log(self) -> str:
        """Everything it has logged in all its lives."""
        return self.log_before + self._server.log.read_text(errors="replace")

    @property
    def target(self) -> Target:
        server, authority = self._server, str(self.directory / "tls" / "authority.pem")
        return Target(server.broker_port, server.http_port, server.tls_port, server.https_port, authority)

    @property
    def url(self) -> str:
        return self._server.broker_url

    @property
    def pid(self) -> int:
        assert self._server.process is not None
        return self._server.process.pid

    def alive(self) -> bool:
        """Whether the process is still there."""
        return self._server.process is not None and self._server.process.poll() is None

    def resident_mb(self) -> float:
        """Resident memory of the broker and its sync process."""
        return sum(_status(pid, "VmRSS:") for pid in (self.pid, *_children(self.pid))) / 1024

    def peak_mb(self) -> float:
        """The broker's highest resident memory since :meth:`forget_peak`."""
        return _status(self.pid, "VmHWM:") / 1024

    def forget_peak(self) -> None:
        """Begin a new measurement of :meth:`peak_mb`."""
        Path(f"/proc/{self.pid}/clear_refs").write_text("5")

    def loop_cpu_ms(self) -> float:
        """Processor time of the thread that runs the event loop, in milliseconds."""
        return loop_cpu_ms(self.pid)


def loop_cpu_ms(pid: int) -> float:
    """Processor time of a process's first thread so far, from the scheduler's own counter in nanoseconds."""
    return int(Path(f"/proc/{pid}/task/{pid}/schedstat").read_text().split()[0]) / 1e6


def _children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def _status(pid: int, name: str) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(name):
            return int(line.split()[1])
    return 0
