"""The HTTP port of a node: bound at once, served as soon as the application is built.

Importing and building the REST interface takes longer than starting the broker, so it happens in a thread while the
broker serves its clients already; requests that come meanwhile wait in the listening socket.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Collection
from typing import TYPE_CHECKING

from magnetar.broker.rates import Rates
from magnetar.broker.service import BrokerService
from magnetar.runtime.tasks import TaskGroup

if TYPE_CHECKING:
    from magnetar.admin.server import AdminServer


class RestPort:
    """Owner of the listening socket and of what serves it."""

    def __init__(self, host: str, port: int) -> None:
        """Bind; 0 = any free port. Raises OSError."""
        self._socket = socket.create_server((host, port), backlog=128)
        self.port: int = self._socket.getsockname()[1]
        self._tasks = TaskGroup("rest")
        self._building: asyncio.Task[None] | None = None
        self._server: AdminServer | None = None

    def start(self, service: BrokerService, rates: Rates, connections: Collection[object]) -> None:
        """Build and serve in the background."""
        self._building = self._tasks.start(self._serve(service, rates, connections), "build")

    async def serving(self) -> None:
        """Return when requests are answered. Raises what building raised."""
        if self._building is not None:
            await self._building

    async def _serve(self, service: BrokerService, rates: Rates, connections: Collection[object]) -> None:
        self._server = await asyncio.to_thread(_build, service, rates, connections, self._socket)
        self._server.start()

    async def close(self) -> None:
        """Finish running requests and release the port."""
        if self._building is not None and not self._building.done():
            # a thread cannot be stopped: what it imports is needed by nobody then, but has to end
            await asyncio.wait([self._building])
        if self._server is not None:
            await self._server.close()
        self._socket.close()


def _build(
    service: BrokerService, rates: Rates, connections: Collection[object], listening: socket.socket
) -> AdminServer:
    from magnetar.admin.http import create_app
    from magnetar.admin.local_broker import LocalBroker
    from magnetar.admin.server import AdminServer

    return AdminServer(
        create_app(LocalBroker(service, rates, connections), service.resources, service.settings), listening
    )
