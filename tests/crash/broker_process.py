"""One real broker process: started, killed, stopped; always by its own process id."""

from __future__ import annotations

import asyncio
import signal
import socket
import sys
import time
from pathlib import Path

HOST = "127.0.0.1"
_READY_S = 60.0


def free_port() -> int:
    """A port that no one listens on at the moment."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


class BrokerProcess:
    """``magnetar standalone`` on one data directory. ``module`` is what ``python -m`` runs."""

    def __init__(self, data: Path, port: int, log: Path, module: str, settings: dict[str, object]) -> None:
        self.data = data
        self.port = port
        self._log = log
        arguments = {
            "bindAddress": HOST,
            "advertisedAddress": HOST,
            "brokerServicePort": port,
            "webServicePort": 0,
            **settings,
        }
        self._command = [sys.executable, "-m", module, "standalone", "--data", str(data)]
        for name, value in arguments.items():
            self._command += ["--set", f"{name}={value}"]
        self._process: asyncio.subprocess.Process | None = None
        self.started_at = 0.0

    async def spawn(self) -> None:
        """Start; it may still be recovering when this returns."""
        with self._log.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(*self._command, stdout=log, stderr=log)
        self.started_at = time.monotonic()

    async def ready(self) -> None:
        """Wait until it accepts connections. Raises RuntimeError if it ends instead."""
        assert self._process is not None
        while True:
            if self._process.returncode is not None:
                raise RuntimeError(f"the broker ended with {self._process.returncode}; see {self._log}")
            try:
                _, writer = await asyncio.open_connection(HOST, self.port)
            except OSError:
                if time.monotonic() - self.started_at > _READY_S:
                    raise RuntimeError(f"the broker is not ready after {_READY_S:g} s; see {self._log}") from None
                await asyncio.sleep(0.01)
                continue
            writer.close()
            return

    async def kill(self) -> None:
        """kill -9."""
        await self._end(signal.SIGKILL)

    async def stop(self) -> None:
        """SIGTERM, and the exit must be a clean one."""
        code = await self._end(signal.SIGTERM)
        if code:
            raise RuntimeError(f"SIGTERM ended the broker with {code}; see {self._log}")

    async def _end(self, number: signal.Signals) -> int:
        assert self._process is not None
        if self._process.returncode is None:
            self._process.send_signal(number)
        async with asyncio.timeout(60):
            return await self._process.wait()
