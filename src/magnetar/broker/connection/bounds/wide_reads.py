"""Reads into memory that all connections share: for large messages, and larger ones for very many producers.

uvloop copies what it has read before it gives it out, and an entry is copied out of that. From a connection that sends
large messages only the second copy is made: its decoder is given a view (docs/decisions/081).

Of very many producers each topic is to have several entries in one group. What a topic costs for each group of the
journal (an extent, a look of each subscription, an acknowledgement record) is more than what an entry costs. uvloop
reads 256,000 bytes at a time, which are not two small messages for each of a thousand topics; a connection that is held
up by the messages of that many producers gets a larger buffer (docs/decisions/060). It is decoded in one slice, which
has 4,096 frames at most as before.
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

    @override
    def data_received(self, data: bytes | memoryview) -> None:
        """``data`` may be a view of memory that is used again afterwards."""
        ...


class ViewedReads(SharedReads):
    """Takes the listener's place at its socket: the decoder copies what it needs out of what was read."""

    __slots__ = ("_listener",)

    def __init__(self, listener: SocketOwner) -> None:
        super().__init__(listener, _usual_room)
        self._listener = listener

    @override
    def buffer_updated(self, nbytes: int) -> None:
        self._listener.data_received(_room[:nbytes])


class WideReads(ViewedReads):
    """The same, with a larger buffer while there is memory for what it brings."""

    __slots__ = ()

    @override
    def get_buffer(self, sizehint: int) -> memoryview:
        return _room if self._listener.spacious else _usual_room
