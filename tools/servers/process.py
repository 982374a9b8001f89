"""A broker as a child process: its addresses while it runs, and one way to end it.

The child leads its own process group, so that ending it ends its children as well (Apache Pulsar's start script and the
JVM below it). `stop` asks first, with SIGTERM, and kills after a grace period; it is safe to call twice.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

HOST = "127.0.0.1"
STOP_SECONDS_MAX = 20.0


class StartFailedError(Exception):
    """A broker ended, or stayed unhealthy, before it could be used."""


def free_ports(count: int) -> list[int]:
    """Ports of the loopback that no process used a moment ago. All are held open together, so they differ."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind((HOST, 0))
        return [int(each.getsockname()[1]) for each in sockets]


def listening(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection((HOST, port), timeout=0.5):
        return True
    return False


@dataclass
class Server:
    """A running broker. ``http_port`` is 0 for one that has no HTTP."""

    name: str
    broker_port: int
    http_port: int
    log: Path
    process: subprocess.Popen[bytes] | None = None
    tls_port: int = 0
    """The binary port with TLS; 0 if it has none."""
    https_port: int = 0

    @property
    def broker_url(self) -> str:
        return f"pulsar://{HOST}:{self.broker_port}"

    @property
    def http_url(self) -> str:
        return f"http://{HOST}:{self.http_port}"

    def stop(self) -> None:
        if self.process is None:
            return
        for kind in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, kind)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(STOP_SECONDS_MAX)
                break
        self.process = None

    def __enter__(self) -> Server:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def spawn(
    name: str,
    command: Sequence[str | Path],
    log: Path,
    *,
    environment: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> Server:
    """Start ``command`` with both outputs in ``log``; the caller fills in the ports and waits for health."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as output:
        process = subprocess.Popen(
            [str(part) for part in command],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, **(environment or {})},
            cwd=cwd,
            start_new_session=True,
        )
    return Server(name, 0, 0, log, process)


def wait_until(server: Server, healthy: Callable[[], bool], seconds_max: float) -> None:
    """Poll ``healthy`` until it holds; one that ends or takes too long is stopped and its last lines raised."""
    deadline = time.monotonic() + seconds_max
    while time.monotonic() < deadline:
        if healthy():
            return
        if server.process is None or server.process.poll() is not None:
            break
        time.sleep(0.1)
    ended = server.process is not None and server.process.poll() is not None
    server.stop()
    tail = "\n".join(server.log.read_text(errors="replace").splitlines()[-12:])
    raise StartFailedError(f"{server.name} {'ended' if ended else 'was not healthy in time'}; its last lines:\n{tail}")
