"""The HTTP port of a node: bound at once, served as soon as the application is built.

Importing and building the REST interface takes longer than starting the broker, so it happens in a thread while the
broker serves its clients already; requests that come meanwhile wait in the listening socket.
"""

from __future__ import annotations

import asyncio
import socket
from typing import TYPE_CHECKING

from magnetar.broker.connection.listener import Connections
from magnetar.broker.service import BrokerService
from magnetar.broker.upkeep.rates import Rates
from magnetar.runtime.acceptor import ConnectionLimit, listen
from magnetar.runtime.descriptors import Descriptors
from magnetar.runtime.tasks import TaskGroup

if TYPE_CHECKING:
    from magnetar.admin.http.server import AdminServer


class RestPort:
    """Owner of the listening socket and of what serves it."""

    def __init__(self, host: str, port: int, most: int, descriptors: Descriptors) -> None:
        """Bind; 0 = any free port. ``most``: connections, 0 without limit. Raises OSError."""
        self._socket = listen(host, port, backlog=1024)
        self.port: int = self._socket.getsockname()[1]
        half = max(1, descriptors.room // 2)
        self.connection_limit = ConnectionLimit(min(most, half) if most else half, 0, descriptors)
        self._tasks = TaskGroup("rest")
        self._building: asyncio.Task[None] | None = None
        self._server: AdminServer | None = None

    def start(self, service: BrokerService, rates: Rates, connections: Connections) -> None:
        """Build and serve in the background."""
        self._building = self._tasks.start(self._serve(service, rates, connections), "build")

    async def serving(self) -> None:
        """Return when requests are answered. Raises what building raised."""
        if self._building is not None:
            await self._building

    async def _serve(self, service: BrokerService, rates: Rates, connections: Connections) -> None:
        self._server = await asyncio.to_thread(_build, service, rates, connections, self._socket, self.connection_limit)
        self._server.start()

    async def close(self) -> None:
        """Finish running requests and release the port."""
        if self._building is not None and not self._building.done():
            # a thread cannot be stopped: what it imports is not needed any more, but has to end
            await asyncio.wait([self._building])
        if self._server is not None:
            await self._server.close()
        self._socket.close()


def _build(
    service: BrokerService,
    rates: Rates,
    connections: Connections,
    listening: socket.socket,
    connection_limit: ConnectionLimit,
) -> AdminServer:
    from magnetar.admin.application import create_app
    from magnetar.admin.http.server import AdminServer
    from magnetar.admin.http.warm_up import prepare
    from magnetar.admin.local_broker.broker import local_ports

    app = create_app(
        local_ports(service, rates, connections),
        service.resources,
        service.settings,
        service.authentication,
        service.authorizer,
    )
    prepare(app)
    return AdminServer(app, listening, connection_limit)
