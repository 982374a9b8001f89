"""The connections of one client: for each broker one, or as many as were asked for, shared by all handles."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from magnetar.client.address import Address, parse_service_url
from magnetar.client.aio.connections.wire_connection import WireConnection
from magnetar.client.errors import AlreadyClosedError, ClientError, ClientTimeoutError, ConnectionLostError, TlsError
from magnetar.client.lookup_answer import Route
from magnetar.security.credentials.certificate import presenting
from magnetar.security.credentials.method import ClientCredentials

if TYPE_CHECKING:
    import ssl

    from magnetar.security.tls.client_tls import ClientTls


Dial = Callable[[WireConnection], WireConnection]
"""Connects it to a broker of this process."""


class ConnectionPool:
    """Opens connections, and opens them again when they were lost."""

    def __init__(
        self,
        service_url: str,
        credentials: ClientCredentials,
        tls: ClientTls | None,
        *,
        timeout: float,
        connect_timeout: float,
        per_broker: int = 1,
        dial: Dial | None = None,
    ) -> None:
        """``dial`` connects without a socket. Raises InvalidValueError about the service URL."""
        self._dial = dial
        self.addresses: Sequence[Address] = parse_service_url(service_url)
        self._credentials = credentials
        self._tls = tls
        self._timeout = timeout
        self._connect_timeout = connect_timeout
        self._per_broker = per_broker
        self._turn = itertools.count()
        self._first = 0
        self._opening: dict[tuple[Route, int], asyncio.Task[WireConnection]] = {}
        self._closed = False

    async def question(self) -> WireConnection:
        """Return a connection to the first address of the service URL that can be reached, the last good one first.

        Raises ConnectionLostError, and what `to` raises.
        """
        lost: Exception | None = None
        for turn in range(len(self.addresses)):
            number = (self._first + turn) % len(self.addresses)
            try:
                found = await self.to(Route(self.addresses[number]))
            except (ConnectionLostError, ClientTimeoutError) as error:
                lost = error
            else:
                self._first = number
                return found
        assert lost is not None, "a service URL has at least one address"
        raise lost

    async def to(self, route: Route) -> WireConnection:
        """Return a connection to a broker. Raises ConnectionLostError, ClientTimeoutError, RefusedError, TlsError,
        CredentialsError."""
        if self._closed:
            raise AlreadyClosedError("the client is closed")
        key = route, next(self._turn) % self._per_broker
        task = self._opening.get(key)
        if task is not None and task.done() and (task.cancelled() or task.exception() or task.result().lost):
            task = None
        if task is None:
            task = self._opening[key] = asyncio.get_running_loop().create_task(self._open(route))
            task.add_done_callback(_heard)
        return await asyncio.shield(task)

    async def _open(self, route: Route) -> WireConnection:
        connection = await self._connect(route.address)
        try:
            await connection.greet(route.proxy_to)
        except BaseException:
            connection.close()
            raise
        if self._closed:
            connection.close()
            raise AlreadyClosedError("the client is closed")
        return connection

    async def _connect(self, address: Address) -> WireConnection:
        if self._dial is not None:
            return self._dial(WireConnection(address, self._credentials, self._timeout))
        loop = asyncio.get_running_loop()
        context = self._context(address)
        try:
            async with asyncio.timeout(self._connect_timeout):
                _, connection = await loop.create_connection(
                    lambda: WireConnection(address, self._credentials, self._timeout),
                    address.host,
                    address.port,
                    ssl=context,
                    server_hostname=None if context is None else address.host,
                )
        except TimeoutError:
            raise ClientTimeoutError(f"no connection to the broker at {address} in {self._connect_timeout} s") from None
        except OSError as error:
            raise self._unreachable(address, error) from None
        return connection

    def _context(self, address: Address) -> ssl.SSLContext | None:
        if not address.tls:
            if self._credentials.key_pair is not None:
                raise TlsError(f"{self._credentials} is shown over TLS only; write pulsar+ssl:// and the port with TLS")
            return None
        from magnetar.security.tls.client_tls import ClientTls

        return presenting(self._tls or ClientTls(), self._credentials).context()

    def _unreachable(self, address: Address, error: OSError) -> ClientError:
        if address.tls:
            from magnetar.security.tls.client_tls import reason

            said = reason(error, f"the broker at {address}")
            if said is not None:
                return TlsError(said)
        return ConnectionLostError(
            f"cannot connect to the broker at {address}: {error}; is it running, is the address right?"
        )

    def close(self) -> None:
        """Close all connections; nothing is opened any more."""
        self._closed = True
        for task in self._opening.values():
            if not task.done():
                task.cancel()
            elif not task.cancelled() and task.exception() is None:
                task.result().close()
        self._opening.clear()


def _heard(task: asyncio.Task[WireConnection]) -> None:
    """Look at the exception, which may have no other reader."""
    if not task.cancelled():
        task.exception()
