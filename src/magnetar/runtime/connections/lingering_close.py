"""Closing a connection whose peer is still sending, so that it can read what it was answered.

A socket that is closed while bytes of the peer are unread is reset, and the reset takes away what the peer has received
and not read yet: the very answer that says why. So what still comes is read and dropped for a while, within bounds.
"""

from __future__ import annotations

import asyncio
import fcntl
import termios
from array import array
from typing import Any, Final

from typing_extensions import override

LINGER_SECONDS: Final = 2.0
LINGER_BYTES: Final = 16 << 20
"""What is dropped at most: a client looks for the answer only after the whole of its large body."""


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

    @override
    def close(self) -> None:
        if self._closing or self.plain.is_closing():
            return
        self._closing = True
        if not (self.patient or _unread(self.plain)):
            self.plain.close()
            return
        self.plain.set_protocol(_Drain(self.plain, self.plain.get_protocol()))
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


class _Drain(asyncio.Protocol):
    """Takes the place of the protocol that has closed: drops what comes, and tells it when the connection is gone."""

    def __init__(self, transport: asyncio.Transport, owner: asyncio.BaseProtocol) -> None:
        self._transport = transport
        self._owner = owner
        self._left = LINGER_BYTES
        self._unsent = transport.get_write_buffer_size()
        self._end = asyncio.get_running_loop().call_later(LINGER_SECONDS, self._look)

    def _look(self) -> None:
        """End it, unless the peer is still taking what it was answered."""
        unsent = self._transport.get_write_buffer_size()
        if 0 < unsent < self._unsent:
            self._unsent = unsent
            self._end = asyncio.get_running_loop().call_later(LINGER_SECONDS, self._look)
        else:
            self._transport.abort()

    @override
    def data_received(self, data: bytes) -> None:
        self._left -= len(data)
        if self._left < 0:
            self._transport.abort()

    @override
    def pause_writing(self) -> None:
        self._owner.pause_writing()

    @override
    def resume_writing(self) -> None:
        self._owner.resume_writing()

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        self._end.cancel()
        self._owner.connection_lost(exc)
