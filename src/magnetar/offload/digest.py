"""What makes two copies of a ledger the same: every byte of every entry, where entries end, and their message counts.

    digest = sha256( sha256(all entries) + sha256(lengths, u32 each) + sha256(message counts, u32 each) )

Three sums because columns come in columns: a group of entries is four calls however many there are.
"""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Sequence
from typing import Any


class LedgerDigest:
    """Fill in the order of the entries. May be filled in any thread, one at a time."""

    __slots__ = ("_counts", "_data", "_lengths", "bytes", "entries", "messages")

    def __init__(self) -> None:
        self._data = hashlib.sha256()
        self._lengths = hashlib.sha256()
        self._counts = hashlib.sha256()
        self.entries = 0
        self.bytes = 0
        self.messages = 0

    def add(self, entries: Sequence[bytes], counts: Sequence[int] | None) -> None:
        """``counts``: messages per entry; None means all are 1."""
        numbers = array("I", counts if counts is not None else (1,)) * (1 if counts is not None else len(entries))
        self.add_columns(b"".join(entries), array("I", map(len, entries)), numbers)
        self.messages += sum(numbers)

    def add_columns(self, data: Any, lengths: Any, counts: Any) -> None:
        """Add entries as columns: all in one buffer, lengths and counts as arrays of u32. Counts no messages."""
        self._data.update(data)
        self._lengths.update(lengths)
        self._counts.update(counts)
        self.entries += len(lengths)
        self.bytes += len(memoryview(data))

    def hexdigest(self) -> str:
        """64 characters."""
        parts = self._data.digest() + self._lengths.digest() + self._counts.digest()
        return hashlib.sha256(parts).hexdigest()
