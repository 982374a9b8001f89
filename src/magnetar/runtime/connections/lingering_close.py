"""Closing a connection whose peer is still sending, so that it can read what it was answered.

A socket that is closed while bytes of the peer are unread is reset, and the reset takes away what the peer has received
and not read yet: the very answer that says why. So what still comes is read and dropped for a while, within bounds.
"""

from __future__ import annotations

import asyncio
import fcntl
import termios
from array import array
from typing import Any, Final, cast

from typing_extensions import override

from magnetar.runtime.connections.shared_reads import ReadsOwner, SharedReads

LINGER_SECONDS: Final = 2.0
"""Silence that ends the wait."""
LINGER_SECONDS_MAX: Final = 20.0
"""How long what still comes is dropped, however steadily it comes: as long as a request may take to be whole."""
LINGER_BYTES: Final = 16 << 20
"""What is dropped at most: a client looks for the answer only after the whole of its large body."""


class Linger:
    """Drops what a peer still sends, until it is silent or has had its time or its bytes; then ends the connection.

    One that still takes its answer is not silent.
    """

    __slots__ = ("_heard", "_left", "_look_again", "_transport", "_unsent", "_until")

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._left = LINGER_BYTES
        self._heard = False
        self._unsent = transport.get_write_buffer_size()
        loop = asyncio.get_running_loop()
        self._until = loop.time() + LINGER_SECONDS_MAX
        self._look_again = loop.call_later(LINGER_SECONDS, self._look)

    def dropped(self, size: int) -> None:
        """So many bytes more came."""
        self._heard = True
        self._left -= size
        if self._left < 0:
            self._transport.abort()

    def hasten(self) -> None:
        """Wait once more at most: a peer that sends steadily would hold up the end of the process."""
        self._until = 0.0

    def end(self) -> None:
        """Nothing is waited for any more."""
        self._look_again.cancel()

    def _look(self) -> None:
        loop, unsent = asyncio.get_running_loop(), self._transport.get_write_buffer_size()
        if 0 < unsent < self._unsent or (self._heard and loop.time() < self._until):
            self._unsent, self._heard = unsent, False
            self._look_again = loop.call_later(LINGER_SECONDS, self._look)
        else:
            self._transport.abort()


class LingeringTransport(asyncio.Transport):
    """A transport as it is, but for :meth:`close`, which lets a peer that is still sending read its answer.

    Until it is gone the connection counts as one, towards the limits of connections too.
    """

    def __init__(self, plain: asyncio.Transport) -> None:
        super().__init__()
        self.plain = plain
        self.patient = False
        """Whether the peer has something left to send, as far as the protocol knows."""
        self._closing = False
        self._hasty = False
        self._linger: Linger | None = None
        """Not all of what drains: that refers to the protocol, which refers to this."""

    def hasten(self) -> None:
        """The process is about to end: a peer that goes on sending is not waited for longer than one that is silent."""
        self._hasty = True
        if self._linger is not None:
            self._linger.hasten()

    @override
    def close(self) -> None:
        if self._closing or self.plain.is_closing():
            return
        self._closing = True
        if not (self.patient or _unread(self.plain)):
            self.plain.close()
            return
        drain = _Drain(self.plain, cast("ReadsOwner", self.plain.get_protocol()))
        self._linger = drain.linger
        self.plain.set_protocol(drain)
        if self._hasty:
            self.hasten()
        if self.plain.can_write_eof():  # TLS has no such thing; there the length says where the answer ends
            self.plain.write_eof()
        self.plain.resume_reading()

    @override
    def is_closing(self) -> bool:
        return self._closing or self.plain.is_closing()

    @override
    def abort(self) -> None:
        self._closing = True
        self.plain.abort()

    @override
    def write(self, data: bytes | bytearray | memoryview) -> None:
        if not self._closing:
            self.plain.write(data)

    @override
    def pause_reading(self) -> None:
        if not self._closing:
            self.plain.pause_reading()

    @override
    def resume_reading(self) -> None:
        self.plain.resume_reading()

    @override
    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self.plain.get_extra_info(name, default)

    @override
    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self.plain.set_protocol(protocol)

    @override
    def get_protocol(self) -> asyncio.BaseProtocol:
        return self.plain.get_protocol()

    @override
    def get_write_buffer_size(self) -> int:
        return self.plain.get_write_buffer_size()

    @override
    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self.plain.set_write_buffer_limits(high, low)


def _unread(transport: asyncio.Transport) -> bool:
    """Whether the system has bytes of the peer that are not read yet."""
    found = transport.get_extra_info("socket")
    if found is None or found.fileno() < 0:
        return False
    waiting = array("i", [0])
    try:
        fcntl.ioctl(found.fileno(), termios.FIONREAD, waiting)
    except OSError:
        return False
    return waiting[0] > 0


_DROPPED: Final = memoryview(bytearray(64 << 10))
"""Room for what is read and not looked at."""


class _Drain(SharedReads):
    """Replaces the protocol that has closed: drops the data that comes, and notifies it when the connection is gone."""

    __slots__ = ("linger",)

    def __init__(self, transport: asyncio.Transport, owner: ReadsOwner) -> None:
        super().__init__(owner, _DROPPED)
        self.linger = Linger(transport)

    @override
    def buffer_updated(self, nbytes: int) -> None:
        self.linger.dropped(nbytes)

    @override
    def data_received(self, data: bytes) -> None:
        self.linger.dropped(len(data))

    @override
    def eof_received(self) -> bool | None:
        return None

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        self.linger.end()
        super().connection_lost(exc)
