"""Which messages compaction keeps. Pure; used in two passes over the same entries.

First pass: :meth:`Survivors.note` for every entry, in order. Second pass: :meth:`Survivors.kept` says what of an entry
stays. In between lies one dict entry per living key.

The chunks of a message stay or go together, and those of a message whose last chunk is still missing stay: its reader
would otherwise get a part of it. Apache Pulsar 4.0.8 keeps the last chunk alone.
"""

from __future__ import annotations

from typing import Final

from magnetar.compaction.messages import (
    BatchEntry,
    EntryChunk,
    InspectedEntry,
    Key,
    KeyedMessage,
    MarkerEntry,
    SingleEntry,
    rebatch,
)

INDEX_BITS: Final = 24
"""A place is an ordinal and, below, the index in the batch."""


class Survivors:
    """``retain_keyless``: the setting topicCompactionRetainNullKey."""

    def __init__(self, *, retain_keyless: bool) -> None:
        self._retain_keyless = retain_keyless
        self._latest: dict[Key, int] = {}
        self._chunked: dict[Key, str | bytes] = {}
        """Uuid of the latest message of a key, if that came in chunks."""
        self._unfinished: set[str | bytes] = set()
        """Messages whose last chunk was not seen."""
        self.removed = 0
        """Messages that will not be there any more, counted as Apache Pulsar does."""

    @property
    def keys(self) -> int:
        """Keys that have a value."""
        return len(self._latest)

    def note(self, ordinal: int, seen: InspectedEntry) -> None:
        """First pass."""
        if isinstance(seen, BatchEntry):
            for index, message in enumerate(seen.messages):
                if message is not None:
                    self._message(ordinal << INDEX_BITS | index, message)
        elif isinstance(seen, SingleEntry):
            chunk = seen.chunk
            if chunk is not None and not chunk.last:
                self._unfinished.add(chunk.uuid)
                return
            self._message(ordinal << INDEX_BITS, seen.message)
            if chunk is not None:
                self._unfinished.discard(chunk.uuid)
                if seen.message.key is not None:
                    self._chunked[seen.message.key] = chunk.uuid
        elif isinstance(seen, MarkerEntry):
            self.removed += 1

    def _message(self, place: int, message: KeyedMessage) -> None:
        key, empty = message
        if key is None:
            self.removed += not self._retain_keyless
            return
        if self._chunked:
            self._chunked.pop(key, None)
        if empty:
            self._latest.pop(key, None)
            self.removed += 1
        else:
            self.removed += key in self._latest
            self._latest[key] = place

    def kept(self, ordinal: int, seen: InspectedEntry, entry: bytes) -> bytes | None:
        """Second pass: the entry as it stays, or None."""
        if isinstance(seen, BatchEntry):
            place = ordinal << INDEX_BITS
            messages = seen.messages
            keep = {i for i, message in enumerate(messages) if message and self.stays(place | i, message)}
            if not keep:
                return None
            gone_now = len(keep) < sum(message is not None for message in messages)
            return rebatch(entry, keep) if gone_now else entry
        if isinstance(seen, SingleEntry):
            stays = self.stays(ordinal << INDEX_BITS, seen.message) or self.needed(seen.message.key, seen.chunk)
            return entry if stays else None
        return None if isinstance(seen, MarkerEntry) else entry

    def stays(self, place: int, message: KeyedMessage) -> bool:
        """Whether the message at that place stays."""
        if message.key is None:
            return self._retain_keyless
        return self._latest.get(message.key) == place

    def needed(self, key: Key | None, chunk: EntryChunk | None) -> bool:
        """A chunk that is not the last of its message."""
        if chunk is None or chunk.last:
            return False
        return chunk.uuid in self._unfinished or (key is not None and self._chunked.get(key) == chunk.uuid)
