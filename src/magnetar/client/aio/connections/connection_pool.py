"""The connections of one client: for each broker one, or as many as were asked for, shared by all handles."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from magnetar.client.address import Address
from magnetar.client.aio.connections.service import Service
from magnetar.client.aio.connections.wire_connection import KEEP_ALIVE, WireConnection
from magnetar.client.errors import (
    AlreadyClosedError,
    ClientError,
    ClientTimeoutError,
    ConnectionLostError,
    ForkedClientError,
    TlsError,
    WrongPortError,
)
from magnetar.client.handshake import unreachable
from magnetar.client.lookup_answer import Route
from magnetar.client.rest import RestTlsError
from magnetar.model.errors import NotAvailableError
from magnetar.runtime.event import Event
from magnetar.security.credentials.certificate import presenting

if TYPE_CHECKING:
    import ssl

_END_PATIENCE: Final = 0.5
"""Seconds for a broker to end TLS."""
Dial = Callable[[WireConnection], WireConnection]
"""Connects it to a broker of this process."""


class ConnectionPool:
    """Opens connections, and opens them again when they were lost."""

    def __init__(
        self,
        service: Service,
        *,
        timeout: float,
        connect_timeout: float,
        keep_alive: float = KEEP_ALIVE,
        per_broker: int = 1,
        dial: Dial | None = None,
    ) -> None:
        """``keep_alive``: seconds of silence after which a broker is asked for a sign. ``dial`` connects without a
        socket."""
        self.service = service
        self._dial = dial
        self._timeout = timeout
        self._connect_timeout = connect_timeout
        self._keep_alive = keep_alive
        self._per_broker = per_broker
        self._turn = itertools.count()
        self._first = 0
        self._opening: dict[tuple[Route, int], asyncio.Task[WireConnection]] = {}
        self._under_way: set[asyncio.Task[WireConnection]] = set()
        """Attempts that have not ended, also those to a service that the client has left."""
        self._moved = Event()
        self._refusal: Exception | None = None
        self._made: weakref.WeakSet[WireConnection] = weakref.WeakSet()

    @property
    def addresses(self) -> Sequence[Address]:
        """Those of the service URL, the one that answered last first."""
        found = self.service.url.addresses
        return found[self._first :] + found[: self._first]

    def answered(self, address: Address) -> None:
        """Note that an address answered, which is asked first from now on."""
        self._first = self.service.url.addresses.index(address)

    def move(self, service: Service) -> None:
        """Leave the brokers of the service, and go to those of another one: who was connected comes there, at once."""
        self.service, self._first = service, 0
        opened, self._opening = self._opening, {}
        for task in opened.values():
            if task.done() and not task.cancelled() and task.exception() is None:
                task.result().close()
        moved, self._moved = self._moved, Event()
        moved.set()

    async def pause(self, seconds: float) -> None:
        """Wait between two attempts, not longer than until the client moves to another service."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._moved.wait()

    async def question(self) -> WireConnection:
        """Return a connection to the first address of the service URL that can be reached, the last good one first.

        Raises ConnectionLostError, and what `to` raises.
        """
        lost: Exception | None = None
        for address in self.addresses:
            try:
                found = await self.to(Route(address))
            except (ConnectionLostError, ClientTimeoutError) as error:
                if lost is None or not isinstance(error, WrongPortError):
                    lost = error  # one that is away may be back, and is asked again
            else:
                if address in self.service.url.addresses:
                    self.answered(address)
                return found
        assert lost is not None, "a service URL has at least one address"
        raise lost

    async def to(self, route: Route) -> WireConnection:
        """Return a connection to a broker. Raises ConnectionLostError, ClientTimeoutError, RefusedError, TlsError,
        CredentialsError."""
        self.check()
        if self._dial is not None:
            # the broker of this process needs no proxy
            route = Route(route.address)
        key = route, next(self._turn) % self._per_broker
        task = self._opening.get(key)
        if task is not None and task.done() and (task.cancelled() or task.exception() or task.result().lost):
            task = None
        if task is None:
            task = self._opening[key] = asyncio.get_running_loop().create_task(self._open(route))
            self._under_way.add(task)
            task.add_done_callback(self._heard)
        return await asyncio.shield(task)

    def _heard(self, task: asyncio.Task[WireConnection]) -> None:
        """Look at the exception, which may have no other reader."""
        self._under_way.discard(task)
        if not task.cancelled():
            task.exception()

    async def _open(self, route: Route) -> WireConnection:
        service = self.service
        connection = await self._greeted(service, route)
        try:
            self.check()
            if self.service is not service:
                raise ConnectionLostError(f"the client left the service of the broker at {route.address}")
        except BaseException:
            connection.close()
            raise
        return connection

    async def _greeted(self, service: Service, route: Route) -> WireConnection:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._timeout
        connection = await self._connect(service, route.address)
        try:
            await connection.greet(route.proxy_to, deadline - loop.time())
        except BaseException:
            connection.close()
            raise
        return connection

    def check(self) -> None:
        """Raise why nothing is opened any more."""
        if self._refusal is not None:
            raise self._refusal

    async def reaches(self, service: Service) -> bool:
        """Whether a broker of a service answers now; also if it refuses this client, which is no outage."""
        for address in service.url.addresses:
            try:
                if service.url.over_http:
                    rest = service.rest(address, self._connect_timeout)
                    await asyncio.get_running_loop().run_in_executor(None, rest.send, "GET", "/")
                else:
                    (await self._greeted(service, Route(address))).close()
            except RestTlsError:
                return True
            except (ConnectionLostError, ClientTimeoutError, NotAvailableError):
                continue
            except ClientError:
                return True
            return True
        return False

    async def _connect(self, service: Service, address: Address) -> WireConnection:
        def made() -> WireConnection:
            return WireConnection(address, service.credentials, self._timeout, self._keep_alive, service.words)

        if self._dial is not None:
            return self._dial(made())
        loop = asyncio.get_running_loop()
        context = _context(service, address)
        seconds = min(self._connect_timeout, self._timeout)
        reached = False

        def reaching() -> WireConnection:
            nonlocal reached
            reached = True
            return made()

        try:
            async with asyncio.timeout(seconds):
                _, connection = await loop.create_connection(
                    reaching,
                    address.host,
                    address.port,
                    ssl=context,
                    server_hostname=None if context is None else address.host,
                )
        except TimeoutError:
            raise _silent(loop, address, seconds, reached=reached) from None
        except OSError as error:
            raise unreachable(address, error, service.words) from None
        self._made.add(connection)
        return connection

    def close(self) -> None:
        """Close all connections; nothing is opened any more."""
        self._refusal = self._refusal or AlreadyClosedError("the client is closed")
        for task in list(self._under_way):
            task.cancel()
        for task in self._opening.values():
            if task.done() and not task.cancelled() and task.exception() is None:
                task.result().close()
        self._opening.clear()

    async def ended(self) -> None:
        """Wait until the sockets are closed, after `close`: TLS ends with an answer of the broker, and what was being
        opened with the end of its attempt."""
        if self._under_way:
            await asyncio.wait(self._under_way, timeout=_END_PATIENCE)
        await asyncio.gather(*(one.gone(_END_PATIENCE) for one in self._made if one.lost is not None))

    def forked(self, error: ForkedClientError) -> None:
        """Refuse everything in a process that was forked off; sockets and loop are left to the other process."""
        self._refusal = error
        for task in self._opening.values():
            if task.done() and not task.cancelled() and task.exception() is None:
                task.result().lost = error
        self._opening.clear()


def _context(service: Service, address: Address) -> ssl.SSLContext | None:
    if not address.tls:
        if service.credentials.key_pair is not None:
            raise TlsError(f"{service.credentials} is shown over TLS only; write pulsar+ssl:// and the port with TLS")
        return None
    from magnetar.security.tls.client_tls import ClientTls

    return presenting(service.tls or ClientTls(), service.credentials).context()


def _silent(loop: asyncio.AbstractEventLoop, address: Address, seconds: float, *, reached: bool) -> ClientTimeoutError:
    """Return what to raise about an address that is silent; ``reached``: a protocol was made for it."""
    step = "no connection to"
    if address.tls and reached:
        # asyncio makes the protocol between the connection and the handshake, uvloop before both
        step = (
            "no TLS handshake with" if isinstance(loop, asyncio.BaseEventLoop) else "no connection and handshake with"
        )
    return ClientTimeoutError(f"{step} the broker at {address} in {seconds:g} s")
