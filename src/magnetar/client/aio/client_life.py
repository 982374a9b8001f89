"""The part of a client that is about its connections: which cluster they lead to, forks, and the end."""

from __future__ import annotations

from typing import Self

from magnetar.client.aio.forks import clients_here, opened_here
from magnetar.client.aio.home_loop import HomeLoop
from magnetar.client.aio.open_handles import OpenHandles
from magnetar.client.aio.parameters import checked
from magnetar.client.aio.services.client_connections import ClientConnections
from magnetar.client.aio.services.service_info import ServiceInfo
from magnetar.client.errors import ForkedClientError
from magnetar.runtime.clock import Clock


class ClientLife:
    """A client from its first connection to its last."""

    def __init__(self, connections: ClientConnections, handles: OpenHandles, clock: Clock, home: HomeLoop) -> None:
        self.clock = clock
        """What its messages and time-outs are dated by."""
        self._connections = connections
        self._open = handles
        self._home = home
        opened_here(self)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def _begin(self) -> None:
        """Raise why nothing can be opened any more; otherwise see that the service is looked after."""
        self._open.check()
        self._home.check()
        self._connections.switch.begin()

    def forked(self, error: ForkedClientError) -> None:
        """Refuse everything in a process that was forked off, where this client has no connections."""
        self._home.forget()
        self._connections.forked(error)
        self._open.forked(error)

    def get_service_info(self) -> ServiceInfo:
        """Return the cluster that is used now."""
        return self._connections.switch.info

    def update_service_url(self, service_url: str) -> None:
        """Move to another URL, with the same credentials: connections are closed, and all that is open comes there.

        Raises ArgumentError, also where an `AutoClusterFailover` or `ServiceInfoProvider` decides.
        """
        checked("update_service_url", service_url=service_url)
        self._begin()
        self._connections.switch.update(service_url)

    async def close(self) -> None:
        """Close all producers, which send what they have first, all consumers and readers, and the connections.

        A broker that does not answer has operation_timeout_seconds; then, and cancelled, it ends as `shutdown` does.
        Raises ForeignLoopError, and then nothing is closed.
        """
        if self._open.closed:
            return
        self._home.check()
        self._connections.switch.close()
        self._open.shut()
        self._open.end()
        try:
            await self._open.ended(self._connections.timeout)
        finally:
            self._connections.close()
            await self.wait_closed()

    def shutdown(self) -> None:
        """Close the connections at once, without waiting for anything (rule 6.1.8); what waits for an answer fails."""
        self._open.shut()
        self._connections.close()
        self._open.end()

    async def wait_closed(self) -> None:
        """Wait until everything has ended that `shutdown` has left."""
        await self._open.ended()
        await self._connections.pool.ended()


def open_clients(service_url: str) -> list[ClientLife]:
    """Return the clients of this process that use a cluster and are not closed; blocking clients have one each."""
    return [
        client
        for client in clients_here()
        if isinstance(client, ClientLife)
        and not client._open.closed
        and client.get_service_info().service_url == service_url
    ]
