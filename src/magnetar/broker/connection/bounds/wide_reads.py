"""Larger reads for a connection of very many producers, so that each of its topics has several entries in one group.

What a topic costs for each group of the journal (an extent, a look of each subscription, an acknowledgement record) is
more than what an entry costs. uvloop reads 256,000 bytes at a time, which are not two small messages for each of a
thousand topics; a connection that is held up by the messages of that many producers gets a larger buffer
(docs/decisions/060). It is decoded in one slice, which has 4,096 frames at most as before.
"""

from __future__ import annotations

import asyncio
from typing import Final, Protocol

from typing_extensions import override

MANY_PRODUCERS: Final = 256
"""With fewer of them, what is usually read has several messages for each."""
WIDE: Final = 512 << 10
"""Bytes that are read at once: 3,700 messages of 100 bytes with what is around them, which are one slice."""
USUAL: Final = 256_000
"""Bytes that are read at once while memory is short: as many as uvloop reads for everybody."""

_room: Final = memoryview(bytearray(WIDE))
"""One for all connections: what was read is copied out before anybody else reads, all of them live on one loop."""
_usual_room: Final = _room[:USUAL]


class SocketOwner(Protocol):
    """The listener, as its socket sees it."""

    @property
    def spacious(self) -> bool:
        """Whether there is memory for what a large read brings."""
        ...

    def data_received(self, data: bytes) -> None: ...
    def pause_writing(self) -> None: ...
    def resume_writing(self) -> None: ...
    def connection_lost(self, exc: Exception | None) -> None: ...


class WideReads(asyncio.BufferedProtocol):
    """Takes the listener's place at its socket; also at one that has buffers of its own, which TLS has."""

    __slots__ = ("_owner",)

    def __init__(self, owner: SocketOwner) -> None:
        self._owner = owner

    @override
    def get_buffer(self, sizehint: int) -> memoryview:
        return _room if self._owner.spacious else _usual_room

    @override
    def buffer_updated(self, nbytes: int) -> None:
        self._owner.data_received(bytes(_room[:nbytes]))

    def data_received(self, data: bytes) -> None:
        """Hand on what the transport has read into a buffer of its own."""
        self._owner.data_received(data)

    @override
    def pause_writing(self) -> None:
        self._owner.pause_writing()

    @override
    def resume_writing(self) -> None:
        self._owner.resume_writing()

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        self._owner.connection_lost(exc)
