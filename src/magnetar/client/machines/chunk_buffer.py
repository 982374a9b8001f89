"""Chunks that wait for the rest of their message (rules 6.6.1 to 6.6.5).

`ChunkJoiner` puts the pieces together; here is kept which entries they came in, since an acknowledgement is for all of
them, and how many messages may be incomplete at once.
"""

from __future__ import annotations

from typing import Final, NamedTuple, TypeVar

from magnetar.columnar.single_entries.chunk_joiner import ChunkJoiner, ReadableEntry
from magnetar.model.errors import ProtocolError
from magnetar.protocol.compression import DamagedPayloadError
from magnetar.protocol.entries import EntryMetadata

PATIENCE_MS: Final = 60_000
"""How long the next chunk of a message may take (rule 6.6.3), from the first look for it after the one before it at
which the broker may send it: when they were published says nothing, since what is read may be old."""
_ANY_AGE: Final = 1 << 62
_REMEMBERED_MAX: Final = 10_000
"""Chunks without a beginning, and messages of which no more is wanted, that are remembered."""
Place = tuple[int, int]
Known = TypeVar("Known")


class Joined(NamedTuple):
    """What came of one chunk."""

    whole: ReadableEntry | None = None
    places: tuple[Place, ...] = ()
    """Where the chunks of the whole message are."""
    acknowledged: tuple[Place, ...] = ()
    """What is to be acknowledged, since it will never be a message."""
    again: tuple[Place, ...] = ()
    """What is to be asked for again, since what was before it was handed back."""


class ChunkBuffer:
    """The incomplete messages of one consumer."""

    def __init__(self, messages_max: int, *, acknowledge_oldest: bool = False) -> None:
        """``acknowledge_oldest``: what is dropped for want of room is acknowledged; otherwise it comes again."""
        self._messages_max = messages_max
        self._acknowledge_oldest = acknowledge_oldest
        self._joiner = ChunkJoiner(_ANY_AGE)
        self._places: dict[str, list[Place]] = {}
        self._noted: dict[str, int] = {}
        """When a message was first seen to wait for the chunk that is next, in milliseconds."""
        self._orphans: dict[Place, tuple[str, int]] = {}
        """Chunks whose message has not begun here, until the next look: uuid and publish time."""
        self._acknowledged: dict[str, None] = {}
        """Messages whose chunks were acknowledged, since they were never whole."""
        self._again: dict[str, None] = {}
        """Messages whose chunks are to come again, from the first one on."""
        self._handed_back: dict[str, None] = {}
        """Messages whose chunks were handed back; further ones may have been on their way."""
        self._asked_again: dict[Place, None] = {}
        """Such, which are asked for once."""
        self._damaged: list[Place] = []

    def add(self, place: Place, metadata: EntryMetadata, payload: bytes) -> Joined:
        """Take one chunk. Raises DamagedPayloadError or ProtocolError if the whole cannot be read, and then
        `take_damaged` says where its chunks before this one are."""
        uuid = metadata.uuid or ""
        done: list[Place] = []
        old = self._places.get(uuid)
        self._noted.pop(uuid, None)
        if metadata.chunk_id == 0:
            self._begins(uuid)
            if old is not None and old[0] != place:
                done += old  # the producer has sent it again
            self._places.pop(uuid, None)
            done += self._make_room()
            self._places[uuid] = [place]
        elif old is None:
            return self._orphan(place, uuid, metadata.publish_time)
        elif place in old:
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
            _remember(self._again, lost.uuid)
        if whole is None:
            return Joined(acknowledged=tuple(done))
        return Joined(whole, tuple(self._places.pop(uuid)), tuple(done))

    def _make_room(self) -> list[Place]:
        dropped: list[Place] = []
        while 0 < self._messages_max <= len(self._places):
            oldest = next(iter(self._places))
            dropped += self._places.pop(oldest)
            self._noted.pop(oldest, None)
            self._joiner.forget(oldest)
            _remember(self._acknowledged if self._acknowledge_oldest else self._again, oldest)
        return dropped if self._acknowledge_oldest else []

    def take_damaged(self) -> list[Place]:
        """Return the chunks before the last one of what could not be read, which will never be a message."""
        found, self._damaged = self._damaged, []
        return found

    def _begins(self, uuid: str) -> None:
        for known in (self._again, self._acknowledged, self._handed_back):
            known.pop(uuid, None)
        for place in [place for place, (of, _) in self._orphans.items() if of == uuid]:
            del self._orphans[place]

    def _orphan(self, place: Place, uuid: str, published: int) -> Joined:
        """Take a chunk whose message has not begun here (rule 6.6.4)."""
        if uuid in self._acknowledged:
            return Joined(acknowledged=(place,))
        if uuid in self._handed_back and place not in self._asked_again:
            _remember(self._asked_again, place)
            return Joined(again=(place,))
        if uuid not in self._again:
            self._orphans[place] = uuid, published
            if len(self._orphans) > _REMEMBERED_MAX:
                del self._orphans[next(iter(self._orphans))]
        return Joined()

    def expire(self, now_ms: int, *, asked: bool = True) -> list[Place]:
        """Return the chunks that are to be acknowledged: of messages whose next chunk has not come in time, and old
        ones that came without a beginning. ``asked``: whether the broker may send more."""
        done = [place for place, (_, published) in self._orphans.items() if now_ms - published > PATIENCE_MS]
        self._orphans.clear()
        if not asked:
            self._noted.clear()
            return done
        for uuid in list(self._places):
            if now_ms - self._noted.setdefault(uuid, now_ms) > PATIENCE_MS:
                done += self._places.pop(uuid)
                del self._noted[uuid]
                self._joiner.forget(uuid)
                _remember(self._acknowledged, uuid)
        return done

    @property
    def waiting(self) -> bool:
        """Whether `expire` has something to look at."""
        return bool(self._places or self._orphans)

    @property
    def incomplete(self) -> bool:
        """Whether a message has begun and is not whole."""
        return bool(self._places)

    def hand_back(self) -> list[Place]:
        """Forget the incomplete messages, which come again, and return where their chunks are."""
        found: list[Place] = []
        for uuid, places in self._places.items():
            found += places
            self._joiner.forget(uuid)
            _remember(self._again, uuid)
            _remember(self._handed_back, uuid)
        self._places.clear()
        self._noted.clear()
        self._asked_again.clear()
        return found

    def clear(self) -> None:
        """Forget everything: it comes again."""
        self._joiner.give_up()
        self._joiner.given_up()
        for uuids in (self._places, self._noted, self._acknowledged, self._again, self._handed_back):
            uuids.clear()
        self._orphans.clear()
        self._asked_again.clear()


def _remember(known: dict[Known, None], one: Known) -> None:
    known[one] = None
    if len(known) > _REMEMBERED_MAX:
        del known[next(iter(known))]
