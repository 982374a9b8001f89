"""The HTTP ports of a node: bound at once, served as soon as the application is built.

Importing and building the REST interface takes longer than starting the broker, so it happens in a thread while the
broker serves its clients already; requests that come meanwhile wait in the listening socket.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from magnetar.broker.connection.bounds.turns import Turns
from magnetar.broker.connection.listener import Connections
from magnetar.broker.service import BrokerService
from magnetar.broker.upkeep.rates import Rates
from magnetar.runtime.connections.acceptor import ConnectionLimit, Entrance
from magnetar.runtime.connections.descriptors import Descriptors
from magnetar.runtime.tasks import TaskGroup
from magnetar.telemetry.switch import asked_for

if TYPE_CHECKING:
    from magnetar.admin.http.server import AdminServer
    from magnetar.admin.ports import BrokerPort
    from magnetar.telemetry.exports import TelemetryExports

log = logging.getLogger(__name__)


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
        self._telemetry: TelemetryExports | None = None

    def start(self, service: BrokerService, rates: Rates, connections: Connections) -> None:
        """Build and serve in the background, if a port is open."""
        if self.entrances:
            self._building = self._tasks.start(self._serve(service, rates, connections), "build")

    async def serving(self) -> None:
        """Return when requests are answered. Raises what building raised."""
        if self._building is not None:
            await self._building

    async def _serve(self, service: BrokerService, rates: Rates, connections: Connections) -> None:
        server, broker, self._telemetry = await asyncio.to_thread(
            _build, service, rates, connections, self.entrances, self.connection_limit
        )
        self._server = server
        server.start()
        if self._telemetry is not None:
            self._telemetry.start(broker)

    async def close(self) -> None:
        """Finish running requests and release the port."""
        if self._building is not None and not self._building.done():
            # a thread cannot be stopped: what it imports is not needed any more, but has to end
            await asyncio.wait([self._building])
        if self._server is not None:
            await self._server.close()
        if self._telemetry is not None:
            await self._telemetry.close()
        for entrance in self.entrances:
            entrance.listening.close()


def _build(
    service: BrokerService,
    rates: Rates,
    connections: Connections,
    entrances: Sequence[Entrance],
    connection_limit: ConnectionLimit,
) -> tuple[AdminServer, BrokerPort, TelemetryExports | None]:
    from magnetar.admin.application import create_app
    from magnetar.admin.http.connection import WebSocketLimits
    from magnetar.admin.http.server import AdminServer
    from magnetar.admin.http.websocket_connection import ROUND
    from magnetar.admin.local_broker.broker import local_ports

    telemetry = _telemetry(service.settings.clusterName)
    ports = local_ports(service, rates, connections)
    app = create_app(
        ports,
        service.resources,
        service.settings,
        service.authentication,
        service.authorizer,
        None if telemetry is None else telemetry.traced,
    )
    settings = service.settings
    sockets = WebSocketLimits(
        settings.webSocketMaxTextFrameSize,
        settings.webSocketSessionIdleTimeoutMillis / 1000,
        settings.webSocketPingDurationSeconds,
        connections.unfinished,
    )
    served = sockets if settings.webSocketServiceEnabled else None
    server = AdminServer(app, entrances, connection_limit, served, Turns(ROUND))
    return server, ports.broker, telemetry


def _telemetry(cluster: str) -> TelemetryExports | None:
    """What sends telemetry, if it is configured; a broker serves without it rather than not at all."""
    if not asked_for(os.environ):
        return None
    try:
        from magnetar.telemetry.exports import TelemetryExports

        return TelemetryExports(cluster)
    except ImportError as error:
        log.warning("no telemetry is sent: %s; install magnetar[telemetry] or unset OTEL_EXPORTER_OTLP_…", error)
    except ValueError as error:
        log.warning("no telemetry is sent: %s", error)
    return None
