"""The rules of compaction, divided so that many tasks can apply them. Pure.

The first pass finds the last events of keys in a range of a topic; the second decides which of its entries stay.

The broker's own rules (:mod:`magnetar.compaction.survivors`) see one entry after the other. Everything
they remember hangs on the *last* event of something: the last message of a key (its place, whether it deletes the key,
whether it ended a message in chunks), the last chunk of a message (whether it was its end). So a range gives one
event per key and per message in chunks, the greatest place wins over all ranges, and what stays is decided by the
broker's own code with that knowledge (:class:`KnownSurvivors`).
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from typing import Final, NamedTuple

from typing_extensions import override

from magnetar.compaction.messages import (
    BatchEntry,
    EntryChunk,
    Key,
    KeyedMessage,
    SingleEntry,
    UnreadableEntry,
    inspect_entry,
)
from magnetar.compaction.survivors import INDEX_BITS, Survivors

KEY: Final = 0
CHUNKED: Final = 1


class StoredEntry(NamedTuple):
    """An entry of the topic or of the previous view."""

    ordinal: int
    ledger: int
    entry: int
    messages: int
    """The number of messages that the broker counts for it."""
    data: bytes


class LastEvent(NamedTuple):
    """The last event of a key or of a message in chunks, within a range of the topic."""

    kind: int
    """`KEY` or `CHUNKED`."""
    name: bytes
    """The key, or the uuid of a message in chunks."""
    place: int
    """Ordinal and, below, the index in the batch."""
    over: bool
    """The key is deleted; the message in chunks is complete."""
    uuid: bytes | None
    """The message's uuid, for a key whose message came in chunks of which this was the last."""


class ChunkState(NamedTuple):
    """What the second pass must know of messages in chunks, from all ranges."""

    unfinished: frozenset[bytes]
    """Uuids of messages whose last chunk was not seen."""
    chunked: frozenset[tuple[bytes, bytes]]
    """Pairs of key and uuid: the key's last message is the one in these chunks."""


class EventCollector:
    """Collects the last events of a range, entry by entry in order."""

    def __init__(self) -> None:
        self.keys: dict[bytes, tuple[int, bool, bytes | None]] = {}
        """Per key, `encoded`: place, whether the key is deleted, uuid of a message in chunks that ended there."""
        self._chunks: dict[bytes, tuple[int, bool]] = {}
        self.messages = 0

    def add(self, one: StoredEntry) -> None:
        """Read the next entry."""
        place = one.ordinal << INDEX_BITS
        seen = inspect_entry(one.data)
        if isinstance(seen, BatchEntry):
            for index, message in enumerate(seen.messages):
                self.messages += message is not None
                if message is not None and message.key is not None:
                    self.keys[encoded(message.key)] = (place | index, message.empty, None)
        elif isinstance(seen, SingleEntry):
            self.messages += 1
            chunk, message = seen.chunk, seen.message
            uuid = None if chunk is None else encoded(chunk.uuid)
            if chunk is not None and uuid is not None:
                self._chunks[uuid] = (place, chunk.last)
            if message.key is not None and (chunk is None or chunk.last):
                self.keys[encoded(message.key)] = (place, message.empty, uuid)
        elif isinstance(seen, UnreadableEntry):
            # It stays, and counts as one message (`messages_of`).
            self.messages += 1

    def events(self) -> list[LastEvent]:
        """Return all last events."""
        found = [LastEvent(KEY, key, *event) for key, event in self.keys.items()]
        return found + [LastEvent(CHUNKED, uuid, *event, None) for uuid, event in self._chunks.items()]


def events(entries: Iterable[StoredEntry]) -> tuple[list[LastEvent], int]:
    """Return the last events of a range, and its number of messages."""
    collector = EventCollector()
    for one in entries:
        collector.add(one)
    return collector.events(), collector.messages


def latest(found: Iterable[LastEvent]) -> tuple[set[int], ChunkState]:
    """Combine the events of all ranges: the places that stay, and the chunk state. Spark computes the same."""
    last: dict[tuple[int, bytes], LastEvent] = {}
    for event in found:
        known = last.get(event[:2])
        if known is None or event.place > known.place:
            last[event[:2]] = event
    keys = [event for event in last.values() if event.kind == KEY]
    unfinished = frozenset(event.name for event in last.values() if event.kind == CHUNKED and not event.over)
    chunked = frozenset((event.name, event.uuid) for event in keys if event.uuid is not None)
    return {event.place for event in keys if not event.over}, ChunkState(unfinished, chunked)


class KnownSurvivors(Survivors):
    """The broker's rules for the second pass, with what the first pass found; ``places`` need only be those of this
    range."""

    def __init__(self, places: Container[int], chunk_state: ChunkState, *, retain_keyless: bool) -> None:
        super().__init__(retain_keyless=retain_keyless)
        self._places = places
        self._chunk_state = chunk_state

    def of(self, entries: Iterable[StoredEntry]) -> Iterator[StoredEntry]:
        """Yield the entries that stay, without the messages that do not."""
        for one in entries:
            data = self.kept(one.ordinal, inspect_entry(one.data), one.data)
            if data is not None:
                yield one._replace(data=data)

    @override
    def stays(self, place: int, message: KeyedMessage) -> bool:
        return super().stays(place, message) if message.key is None else place in self._places

    @override
    def needed(self, key: Key | None, chunk: EntryChunk | None) -> bool:
        if chunk is None or chunk.last:
            return False
        uuid = encoded(chunk.uuid)
        return uuid in self._chunk_state.unfinished or (
            key is not None and (encoded(key), uuid) in self._chunk_state.chunked
        )


def messages_of(entry: bytes) -> int:
    """Return how many messages an entry still holds."""
    seen = inspect_entry(entry)
    return sum(message is not None for message in seen.messages) if isinstance(seen, BatchEntry) else 1


def encoded(text: str | bytes) -> bytes:
    """Encode a key so that different keys stay different: keys that are bytes are not UTF-8."""
    return text.encode() if isinstance(text, str) else text
