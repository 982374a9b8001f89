"""Reads of a connection into a buffer that all connections of a loop share, and so of a size that is chosen.

uvloop reads 256,000 bytes at a time for everybody. Some connections are to read more at once, and some less; they put
one of these in their own place at their transport.
"""

from __future__ import annotations

import asyncio
from typing import Protocol

from typing_extensions import override


class ReadsOwner(Protocol):
    """The protocol that handles the connection."""

    def data_received(self, data: bytes) -> None: ...
    def eof_received(self) -> bool | None: ...
    def pause_writing(self) -> None: ...
    def resume_writing(self) -> None: ...
    def connection_lost(self, exc: Exception | None) -> None: ...


class SharedReads(asyncio.BufferedProtocol):
    """Takes its owner's place at the transport; also at one that has buffers of its own, which TLS has."""

    __slots__ = ("_owner", "_room")

    def __init__(self, owner: ReadsOwner, room: memoryview) -> None:
        """``room``: what was read is copied out of it before anybody else reads."""
        self._owner = owner
        self._room = room

    @override
    def get_buffer(self, sizehint: int) -> memoryview:
        return self._room

    @override
    def buffer_updated(self, nbytes: int) -> None:
        self._owner.data_received(bytes(self._room[:nbytes]))

    def data_received(self, data: bytes) -> None:
        """Hand on what the transport has read into a buffer of its own."""
        self._owner.data_received(data)

    @override
    def eof_received(self) -> bool | None:
        return self._owner.eof_received()

    @override
    def pause_writing(self) -> None:
        self._owner.pause_writing()

    @override
    def resume_writing(self) -> None:
        self._owner.resume_writing()

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        self._owner.connection_lost(exc)
