"""The HTTP ports of a node: bound at once, served as soon as the application is built.

Importing and building the REST interface takes longer than starting the broker, so it happens in a thread while the
broker serves its clients already; requests that come meanwhile wait in the listening socket.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from magnetar.broker.connection.listener import Connections
from magnetar.broker.service import BrokerService
from magnetar.broker.upkeep.rates import Rates
from magnetar.runtime.acceptor import ConnectionLimit, Entrance
from magnetar.runtime.descriptors import Descriptors
from magnetar.runtime.tasks import TaskGroup

if TYPE_CHECKING:
    from magnetar.admin.http.server import AdminServer


class RestPort:
    """Owner of the listening sockets and of what serves them."""

    def __init__(self, entrances: Sequence[Entrance], most: int, descriptors: Descriptors) -> None:
        """``most``: connections, 0 without limit."""
        self.entrances = entrances
        half = max(1, descriptors.room // 2)
        self.connection_limit = ConnectionLimit(min(most, half) if most else half, 0, descriptors)
        self._tasks = TaskGroup("rest")
        self._building: asyncio.Task[None] | None = None
        self._server: AdminServer | None = None

    def start(self, service: BrokerService, rates: Rates, connections: Connections) -> None:
        """Build and serve in the background, if a port is open."""
        if self.entrances:
            self._building = self._tasks.start(self._serve(service, rates, connections), "build")

    async def serving(self) -> None:
        """Return when requests are answered. Raises what building raised."""
        if self._building is not None:
            await self._building

    async def _serve(self, service: BrokerService, rates: Rates, connections: Connections) -> None:
        self._server = await asyncio.to_thread(
            _build, service, rates, connections, self.entrances, self.connection_limit
        )
        self._server.start()

    async def close(self) -> None:
        """Finish running requests and release the port."""
        if self._building is not None and not self._building.done():
            # a thread cannot be stopped: what it imports is not needed any more, but has to end
            await asyncio.wait([self._building])
        if self._server is not None:
            await self._server.close()
        for entrance in self.entrances:
            entrance.listening.close()


def _build(
    service: BrokerService,
    rates: Rates,
    connections: Connections,
    entrances: Sequence[Entrance],
    connection_limit: ConnectionLimit,
) -> AdminServer:
    from magnetar.admin.application import create_app
    from magnetar.admin.http.server import AdminServer, WebSocketLimits
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
    settings = service.settings
    sockets = WebSocketLimits(
        settings.webSocketMaxTextFrameSize,
        settings.webSocketSessionIdleTimeoutMillis / 1000,
        settings.webSocketPingDurationSeconds,
    )
    return AdminServer(app, entrances, connection_limit, sockets if settings.webSocketServiceEnabled else None)
