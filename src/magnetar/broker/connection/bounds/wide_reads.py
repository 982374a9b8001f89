"""Larger reads for a connection of very many producers, so that each of its topics has several entries in one group.

What a topic costs for each group of the journal (an extent, a look of each subscription, an acknowledgement record) is
more than what an entry costs. uvloop reads 256,000 bytes at a time, which are not two small messages for each of a
thousand topics; a connection that is held up by the messages of that many producers gets a larger buffer
(docs/decisions/060). It is decoded in one slice, which has 4,096 frames at most as before.
"""

from __future__ import annotations

from typing import Final, Protocol

from typing_extensions import override

from magnetar.runtime.connections.shared_reads import ReadsOwner, SharedReads

MANY_PRODUCERS: Final = 256
"""With fewer of them, what is usually read has several messages for each."""
WIDE: Final = 512 << 10
"""Bytes that are read at once: 3,700 messages of 100 bytes with what is around them, which are one slice."""
USUAL: Final = 256_000
"""Bytes that are read at once while memory is short: as many as uvloop reads for everybody."""

_room: Final = memoryview(bytearray(WIDE))
"""One for all connections: all of them live on one loop."""
_usual_room: Final = _room[:USUAL]


class SocketOwner(ReadsOwner, Protocol):
    """The listener, as its socket sees it."""

    @property
    def spacious(self) -> bool:
        """Whether there is memory for what a large read brings."""
        ...


class WideReads(SharedReads):
    """Takes the listener's place at its socket."""

    __slots__ = ("_listener",)

    def __init__(self, listener: SocketOwner) -> None:
        super().__init__(listener, _room)
        self._listener = listener

    @override
    def get_buffer(self, sizehint: int) -> memoryview:
        return _room if self._listener.spacious else _usual_room
