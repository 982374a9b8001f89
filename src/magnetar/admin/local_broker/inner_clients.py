"""Clients of this process: what REST and WebSocket publish and read goes the way of every client."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Final

from magnetar.admin.later_modules import LaterModules
from magnetar.admin.values.inner_peer import InnerPeer
from magnetar.broker.connection.inner_connection import connect_inside
from magnetar.broker.connection.listener import Connections
from magnetar.broker.connection.login import Admission, Login
from magnetar.broker.service import BrokerService
from magnetar.client.errors import ConnectionLostError

if TYPE_CHECKING:
    from magnetar.client.aio.client import Client
    from magnetar.client.aio.connections.wire_connection import WireConnection

_MODULES: Final = (
    "magnetar.client.aio.client",
    "magnetar.client.aio.client_environment",
    "magnetar.client.machines.outgoing.partition_router",
)
_OPENING_SECONDS = 1.0
"""How long a name or subscription that is in use is waited for: who had it may just be leaving."""
_TOPICS_MAX = 1_000
"""Topics of one pattern, as many as a WebSocket may name."""
_OPENING_MAX = 32
"""Topics of one consumer that are opened at a time, so that others have their turn."""
_UNPACKED_FACTOR = 6
"""A message may become that many times maxMessageSize when it is unpacked: 30 MiB of 5 MiB."""


class InnerClients:
    """Implements :data:`magnetar.admin.values.inner_peer.InnerClientMaker`."""

    def __init__(self, service: BrokerService, connections: Connections) -> None:
        self._service = service
        self._connections = connections
        self._modules = LaterModules(*_MODULES)
        self._rng = random.Random()
        """One for all of them: its state takes 2.5 KB."""

    async def ready(self) -> None:
        await self._modules.ready()

    def __call__(self, peer: InnerPeer) -> Client:
        # a broker without such requests does without it
        from magnetar.client.aio.client import Client
        from magnetar.client.aio.client_environment import ClientBounds

        service = self._service
        identity = peer.identity
        admission = Admission(peer.caller, None if identity is None else Login(identity.method, identity))

        def dial(wire: WireConnection) -> WireConnection:
            # it may connect again later, when credentials have expired or were revoked
            found = service.authentication
            if found is not None and identity is not None:
                revoked = found.revoked(identity) or found.revoked_original(peer.caller.original_role)
                if revoked or found.expired(identity):
                    raise ConnectionLostError(f"the credentials of {peer.caller.named} do not count any more")
            opened = None if peer.flow is None else peer.flow.attach
            return connect_inside(service, self._connections, wire, peer.address, admission, opened)

        return Client(
            service.service_url or service.service_url_tls,
            clock=service.clock,
            rng=self._rng,
            dial=dial,
            opening_timeout_seconds=_OPENING_SECONDS,
            bounds=ClientBounds(
                topics=_TOPICS_MAX,
                opening=_OPENING_MAX,
                unpacked=service.settings.maxMessageSize * _UNPACKED_FACTOR,
                on_entry=None if peer.flow is None else peer.flow.on_entry,
                sealed=False,
            ),
        )
