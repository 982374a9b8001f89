"""uvicorn inside the broker's event loop: no signal handlers, no worker threads, no log set-up of its own.

The port is bound apart, because building the application takes several times as long as starting a
broker: requests that come meanwhile wait in the socket.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn
from starlette.types import ASGIApp
from typing_extensions import override

from magnetar.runtime.tasks import TaskGroup


class _QuietServer(uvicorn.Server):
    """Leaves the signals to the program it runs in."""

    @override
    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class AdminServer:
    """The REST interface on one listening socket."""

    def __init__(self, app: ASGIApp, listening: socket.socket) -> None:
        """Takes the socket over."""
        self._socket = listening
        config = uvicorn.Config(
            app, log_config=None, access_log=False, lifespan="off", ws="none", http="h11", timeout_graceful_shutdown=5
        )
        self._server = _QuietServer(config)
        self._tasks = TaskGroup("admin")
        self._serving: asyncio.Task[object] | None = None

    def start(self) -> None:
        """Serve until :meth:`close`; returns at once."""
        self._serving = self._tasks.start(self._server.serve(sockets=[self._socket]), "http")

    async def close(self) -> None:
        """Finish running requests (five seconds at most) and release the port."""
        self._server.should_exit = True
        if self._serving is not None:
            await asyncio.wait([self._serving])
        await self._tasks.close()
        self._socket.close()
