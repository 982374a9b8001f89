"""Whether a topic has ever had chunked messages (rules of 3.6): one durable fact, known from the first chunk on.

Only then is every entry that goes out asked whether it is a chunk. The fact stands in the feature state ``chunks`` in
the same group as the first chunk, so a Shared subscription keeps messages together after a restart as well.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from magnetar.broker.delivery.dispatchers.shared_chunks import ChunkInfo
from magnetar.protocol.entries import chunk_of
from magnetar.storage.ledgers.feature_state import StateChange
from magnetar.storage.ledgers.managed_ledger import ManagedLedger

CHUNKS: Final = "chunks"
_YES: Final = b"\x01"


def chunk(entry: bytes) -> ChunkInfo | None:
    """What an entry says of itself."""
    found = chunk_of(entry)
    return None if found is None else ChunkInfo(*found)


class _Fact:
    """What the feature state holds: that it is so."""

    def __init__(self, so: bool) -> None:
        self.so = so
        self._said = so

    def changes(self) -> StateChange | None:
        if self._said:
            return None
        self._said = True
        return StateChange(_YES, whole=True)

    def durable(self) -> None:
        self.so = True

    def lost(self) -> None:
        self._said = self.so

    def snapshot(self) -> bytes:
        return _YES if self.so else b""


class Chunking:
    """One per loaded topic; ``begun`` is called when the topic has chunks: now, or with the first one."""

    def __init__(self, ledger: ManagedLedger, begun: Callable[[], None]) -> None:
        self._log = ledger
        self._begun = begun
        feature_state = ledger.feature_states.get(CHUNKS)
        self.seen = feature_state is not None and feature_state.exists
        """Whether entries may be chunks."""
        self.published = 0
        """Chunks since the topic was loaded."""
        if self.seen:
            self._open()
            begun()

    def published_one(self) -> None:
        """A chunk was appended in this turn of the loop."""
        self.published += 1
        if not self.seen:
            self.seen = True
            self._open()
            self._log.feature_state(CHUNKS).touch()
            self._begun()

    def _open(self) -> None:
        self._log.feature_state(CHUNKS).open(_restore)


def _restore(snapshot: bytes | None, changes: Sequence[bytes]) -> _Fact:
    return _Fact(snapshot == _YES or _YES in changes)
