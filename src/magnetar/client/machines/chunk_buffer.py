"""Chunks that wait for the rest of their message (rules 6.6.1 to 6.6.5).

`ChunkJoiner` puts the pieces together; here is kept which entries they came in, since an acknowledgement is for all of
them, and how many messages may be incomplete at once.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from magnetar.columnar.single_entries.chunk_joiner import ChunkJoiner, ReadableEntry
from magnetar.model.errors import ProtocolError
from magnetar.protocol.compression import DamagedPayloadError
from magnetar.protocol.entries import EntryMetadata

PATIENCE_MS: Final = 60_000
"""How long the next chunk of a message may take (rule 6.6.3)."""
Place = tuple[int, int]


class Joined(NamedTuple):
    """What came of one chunk."""

    whole: ReadableEntry | None = None
    places: tuple[Place, ...] = ()
    """Where the chunks of the whole message are."""
    acknowledged: tuple[Place, ...] = ()
    """What is to be acknowledged, since it will never be a message."""


class ChunkBuffer:
    """The incomplete messages of one consumer."""

    def __init__(self, messages_max: int, *, acknowledge_oldest: bool = False) -> None:
        """``acknowledge_oldest``: what is dropped for want of room is acknowledged; otherwise it comes again."""
        self._messages_max = messages_max
        self._acknowledge_oldest = acknowledge_oldest
        self._joiner = ChunkJoiner(PATIENCE_MS)
        self._places: dict[str, list[Place]] = {}
        self._damaged: list[Place] = []

    def add(self, place: Place, metadata: EntryMetadata, payload: bytes) -> Joined:
        """Take one chunk. Raises DamagedPayloadError or ProtocolError if the whole cannot be read, and then
        `take_damaged` says where its chunks before this one are."""
        uuid = metadata.uuid or ""
        done: list[Place] = []
        old = self._places.get(uuid)
        if metadata.chunk_id == 0:
            if old is not None and old[0] != place:
                done += old  # the producer has sent it again
            self._places.pop(uuid, None)
            done += self._make_room()
            self._places[uuid] = [place]
        elif old is None or place in old:
            return Joined()
        elif metadata.chunk_id == len(old):
            old.append(place)
        elif (metadata.chunk_id or 0) < len(old):
            return Joined(acknowledged=(place,))
        try:
            whole = self._joiner.add(*place, metadata, payload)
        except (DamagedPayloadError, ProtocolError):
            self._damaged += done + self._places.pop(uuid)[:-1]
            raise
        for lost in self._joiner.given_up():
            self._places.pop(lost.uuid, None)
        if whole is None:
            return Joined(acknowledged=tuple(done))
        return Joined(whole, tuple(self._places.pop(uuid)), tuple(done))

    def _make_room(self) -> list[Place]:
        dropped: list[Place] = []
        while 0 < self._messages_max <= len(self._places):
            oldest = next(iter(self._places))
            dropped += self._places.pop(oldest)
            self._joiner.forget(oldest)
        return dropped if self._acknowledge_oldest else []

    def take_damaged(self) -> list[Place]:
        """Return the chunks before the last one of what could not be read, which will never be a message."""
        found, self._damaged = self._damaged, []
        return found

    def expire(self, now_ms: int) -> list[Place]:
        """Return the chunks of messages whose next chunk has not come in time; they are to be acknowledged."""
        self._joiner.give_up(now_ms)
        return [place for lost in self._joiner.given_up() for place in self._places.pop(lost.uuid, [])]

    @property
    def waiting(self) -> bool:
        """Whether a message is incomplete."""
        return bool(self._places)

    @property
    def places(self) -> list[Place]:
        """The places of the chunks of incomplete messages."""
        return [place for places in self._places.values() for place in places]

    def clear(self) -> None:
        """Forget everything: it comes again."""
        self._joiner.give_up()
        self._joiner.given_up()
        self._places.clear()
