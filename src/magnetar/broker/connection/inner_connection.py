"""A connection without a socket: a client in this process speaks to the broker as any other client does.

Both ends are asyncio transports. What one end writes is handed to the other in pieces, one in each turn of the loop, as
a socket would be read; if an end does not read, the writer's buffer grows, and the same water marks pause the writer.
So all limits of network clients hold for this one, too. The client was authenticated over HTTP, and its connection says
so.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any, Final, TypeVar, cast

from typing_extensions import override

from magnetar.broker.connection.listener import Connections, factory
from magnetar.broker.connection.login import ADMISSION, Admission
from magnetar.broker.service import BrokerService

_PIECE: Final = 256 << 10
"""Bytes that are handed over in one turn of the loop."""
LINGER_SECONDS: Final = 5.0
"""How long an end that closes waits for an other end that does not read."""

Client = TypeVar("Client", bound=asyncio.Protocol)


def connect_inside(
    service: BrokerService,
    connections: Connections,
    client: Client,
    peer: tuple[str, int],
    admission: Admission,
    opened: Callable[[asyncio.Transport], None] | None = None,
) -> Client:
    """Connect ``client`` to the broker; returns it, connected.

    ``peer`` is the address that statistics and logs show; ``admission`` says who the client is.
    ``opened`` is called with the client's transport.
    """
    loop = asyncio.get_running_loop()
    inside = InnerTransport(loop, {"peername": peer, ADMISSION: admission})
    outside = InnerTransport(loop, {"peername": ("inside", 0)})
    inside.join(outside, factory(service, connections)())
    outside.join(inside, client)
    if opened is not None:
        opened(outside)
    return client


class InnerTransport(asyncio.Transport):
    """One end; :meth:`join` makes it usable."""

    def __init__(self, loop: asyncio.AbstractEventLoop, extra: dict[str, Any]) -> None:
        super().__init__(extra)
        self._loop = loop
        self._other: InnerTransport
        self._protocol: asyncio.Protocol
        self._unsent: list[memoryview] = []
        self._size = 0
        self._low, self._high = 16 << 10, 64 << 10
        self._full = False
        self._reading = True
        self._closing = False
        self._lost = False
        self._scheduled = False
        self._lingers = False

    def join(self, other: InnerTransport, protocol: asyncio.Protocol) -> None:
        """Begin: what is written goes to ``other``, what comes from it to ``protocol``."""
        self._other = other
        self._protocol = protocol
        protocol.connection_made(self)

    # writing -----------------------------------------------------------------------------------------------------

    @override
    def write(self, data: bytes | bytearray | memoryview) -> None:
        if self._closing or self._lost or not data:
            return
        self._unsent.append(memoryview(bytes(data)))
        self._size += len(data)
        if self._size > self._high and not self._full:
            self._full = True
            self._protocol.pause_writing()
        self._schedule()

    @override
    def writelines(self, list_of_data: Iterable[bytes | bytearray | memoryview]) -> None:
        for data in list_of_data:
            self.write(data)

    @override
    def get_write_buffer_size(self) -> int:
        return self._size

    @override
    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._high = 64 << 10 if high is None else high
        self._low = self._high // 4 if low is None else low

    def _schedule(self) -> None:
        if not self._scheduled and (self._size or self._closing):
            self._scheduled = True
            self._loop.call_soon(self._hand_over)

    def _hand_over(self) -> None:
        """Give the other end its next piece, or the end of the connection."""
        self._scheduled = False
        other = self._other
        if self._lost or other._lost:
            return
        if not other._reading:
            if self._closing:
                self._linger()
            return
        room, whole = _PIECE, 0
        for piece in self._unsent:
            if len(piece) > room:
                break
            room -= len(piece)
            whole += 1
        pieces, self._unsent[:whole] = self._unsent[:whole], []
        if self._unsent and room:
            first = self._unsent[0]
            pieces.append(first[:room])
            self._unsent[0], room = first[room:], 0
        if pieces:
            self._size -= _PIECE - room
            other._protocol.data_received(b"".join(pieces))
        if self._full and self._size <= self._low and not self._lost:
            self._full = False
            self._protocol.resume_writing()
        if self._closing and not self._size:
            self.abort()
        else:
            self._schedule()

    # reading -----------------------------------------------------------------------------------------------------

    @override
    def pause_reading(self) -> None:
        self._reading = False

    @override
    def resume_reading(self) -> None:
        if not self._reading:
            self._reading = True
            self._other._schedule()

    @override
    def is_reading(self) -> bool:
        return self._reading and not self._closing

    # the end -----------------------------------------------------------------------------------------------------

    @override
    def close(self) -> None:
        if not self._closing:
            self._closing = True
            self._reading = False
            self._schedule()

    def _linger(self) -> None:
        """Wait for an end that does not read: a limit of a rate may keep it from reading for days."""
        if not self._lingers:
            self._lingers = True
            self._loop.call_later(LINGER_SECONDS, self.abort)

    @override
    def is_closing(self) -> bool:
        return self._closing or self._lost

    @override
    def abort(self) -> None:
        for end in (self, self._other):
            if not end._lost:
                end._lost = end._closing = True
                end._unsent.clear()
                end._size = 0
                self._loop.call_soon(end._protocol.connection_lost, None)
                # nothing refers to itself: what is lost is freed at once, without the garbage collector
                end._protocol, end._other = _NOBODY, _NOWHERE

    @override
    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self._protocol = cast(asyncio.Protocol, protocol)

    @override
    def get_protocol(self) -> asyncio.BaseProtocol:
        return self._protocol


class _Nowhere(InnerTransport):
    """The other end of what is lost."""

    def __init__(self) -> None:
        self._reading = self._lost = self._scheduled = True


_NOBODY: Final = asyncio.Protocol()
_NOWHERE: Final = _Nowhere()
