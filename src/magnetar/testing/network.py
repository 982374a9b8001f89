"""The network of the simulator: listeners, connections between them, and what can go wrong on the way.

A :class:`Network` gives ``create_server`` and ``create_connection`` of its :class:`~magnetar.testing.simloop.SimLoop`
something to stand on; both can also be called here directly. Each connection is a :class:`Link`, which a simulation
may cut, or freeze in one direction or both (half-open: bytes stop, neither end is notified) and thaw again. What goes
wrong by chance rather than by plan is the :class:`~magnetar.testing.transport.Weather`.
"""

from __future__ import annotations

import asyncio
import contextvars
import errno
import os
from collections.abc import Callable
from enum import Flag
from typing import TypeVar

from typing_extensions import override

from magnetar.testing.processes import Process
from magnetar.testing.simloop import SimLoop
from magnetar.testing.transport import Address, Pipe, SimTransport, Weather

P = TypeVar("P", bound=asyncio.BaseProtocol)
Factory = Callable[[], asyncio.BaseProtocol]


class Direction(Flag):
    TO_SERVER = 1
    TO_CLIENT = 2
    BOTH = 3


class Link:
    """One connection, seen from outside."""

    def __init__(self, loop: SimLoop, weather: Weather, client: SimTransport, server: SimTransport) -> None:
        self.client = client
        self.server = server
        self._loop = loop
        self._is_cut = False
        client.peer, server.peer = server, client
        client.out = Pipe(loop, weather, client, server)
        server.out = Pipe(loop, weather, server, client)
        client.out.on_cut = server.out.on_cut = self.cut

    @property
    def open(self) -> bool:
        """Whether at least one end believes in the connection."""
        return not (self.client.gone and self.server.gone)

    def cut(self, error: Exception | None = None) -> None:
        """Everything in flight both ways is lost; each end learns it after a delay of its own.

        ``error`` is what connection_lost gets; None as after an orderly end.
        """
        self._is_cut = True
        for end in (self.client, self.server):
            end.out.frozen = True
            end.out.lose(None)
            delay = self._loop.rng.uniform(0, 0.02)
            self._loop.call_later(delay, end.vanish, error, None, context=end.context)

    def freeze(self, direction: Direction = Direction.BOTH) -> None:
        """Bytes stop flowing and neither end is notified."""
        for pipe in self._pipes(direction):
            pipe.frozen = True

    def thaw(self, direction: Direction = Direction.BOTH) -> None:
        """What was held back flows again, late but complete."""
        for pipe in [] if self._is_cut else self._pipes(direction):
            pipe.frozen = False
            pipe.schedule()

    def _pipes(self, direction: Direction) -> list[Pipe]:
        pipes = [self.client.out] if Direction.TO_SERVER in direction else []
        return [*pipes, self.server.out] if Direction.TO_CLIENT in direction else pipes


class SimServer(asyncio.AbstractServer):
    """A listening address."""

    def __init__(self, network: Network, factory: Factory, address: Address) -> None:
        self.address = address
        self._network = network
        self._factory = factory
        self._context = contextvars.copy_context()

    def accept(self, make: Callable[[Factory], SimTransport]) -> SimTransport:
        """The server's end of a new connection, made inside the server's process."""
        return self._context.copy().run(make, self._factory)

    @override
    def close(self) -> None:
        self._network.stop_listening(self)

    @override
    async def wait_closed(self) -> None:
        """Connections that exist go on, so there is nothing to wait for."""

    @override
    def get_loop(self) -> SimLoop:
        return self._network.loop

    @override
    async def start_serving(self) -> None:
        """Serves from the beginning."""

    @override
    async def serve_forever(self) -> None:
        await self._network.loop.create_future()

    @override
    def is_serving(self) -> bool:
        return self._network.listens(self)

    def close_clients(self) -> None:
        """Not simulated: asyncio's servers have it since Python 3.13, and nothing of ours calls it."""
        raise NotImplementedError

    def abort_clients(self) -> None:
        """As :meth:`close_clients`."""
        raise NotImplementedError


class Network:
    """All listeners and links of one simulation; attaches itself to the loop."""

    def __init__(self, loop: SimLoop, weather: Weather | None = None) -> None:
        self.weather = weather or Weather()
        self.loop = loop
        self._servers: dict[Address, SimServer] = {}
        self._links: list[Link] = []
        self._processes: set[Process] = set()
        self._next_port = 40_000
        loop.network = self

    @property
    def links(self) -> list[Link]:
        """Open connections, oldest first."""
        self._links = [link for link in self._links if link.open]
        return list(self._links)

    def listen(self, factory: Factory, host: str, port: int) -> SimServer:
        """Accept connections at the address; port 0 picks a free one (``SimServer.address``)."""
        address = (host, port or self._new_port())
        if address in self._servers:
            raise OSError(errno.EADDRINUSE, os.strerror(errno.EADDRINUSE), f"{host}:{port}")
        server = SimServer(self, factory, address)
        self._servers[address] = server
        self._watch(server.close)
        return server

    async def connect(
        self, factory: Callable[[], P], host: str, port: int, *, source: str = "127.0.0.1"
    ) -> tuple[SimTransport, P]:
        """The client's end has had ``connection_made`` when this returns. Raises ConnectionRefusedError."""
        await asyncio.sleep(self.loop.rng.uniform(*self.weather.delay_s))
        server = self._servers.get((host, port))
        if server is None:
            raise ConnectionRefusedError(errno.ECONNREFUSED, os.strerror(errno.ECONNREFUSED), f"{host}:{port}")
        own = (source, self._new_port())
        protocol = factory()
        client = SimTransport(self.loop, protocol, own, server.address)
        accepted = server.accept(lambda make: SimTransport(self.loop, make(), server.address, own))
        link = Link(self.loop, self.weather, client, accepted)
        self._links.append(link)
        self._watch(lambda: None)
        self.loop.call_soon(accepted.get_protocol().connection_made, accepted, context=accepted.context)
        protocol.connection_made(client)
        return client, protocol

    def listens(self, server: SimServer) -> bool:
        return self._servers.get(server.address) is server

    def stop_listening(self, server: SimServer) -> None:
        if self.listens(server):
            del self._servers[server.address]

    def _new_port(self) -> int:
        self._next_port += 1
        return self._next_port

    def _watch(self, at_kill: Callable[[], None]) -> None:
        process = Process.current()
        if process is None:
            return
        process.at_kill(at_kill)
        if process not in self._processes:
            self._processes.add(process)
            process.at_kill(lambda: self._bury(process))

    def _bury(self, process: Process) -> None:
        """The kernel closes the sockets of a killed process."""
        self._processes.discard(process)
        for link in self.links:
            for end in (link.client, link.server):
                if end.process is process:
                    end.die()
