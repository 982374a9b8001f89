"""Runs of entries: what one read or one write gave, as the cache keeps it and dispatch gets it; small ones packed."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from itertools import accumulate, islice
from typing import Final, NamedTuple

LARGE: Final = 16384
"""Bytes; so many for each entry are allowed without a look at their sizes."""


FEW: Final = 16
"""Large entries below which more is joined to them."""


NO_INDEX: Final = -(1 << 62)
"""A message index that is not known: it stays below 0 whatever is counted on to it."""


class StoredRun(NamedTuple):
    """Consecutive entries of one ledger, ``entries[i]`` at ordinal ``first + i`` and position (ledger, entry + i)."""

    first: int
    ledger: int
    entry: int
    entries: list[bytes]
    """The entries as stored, never to be changed."""
    counts: list[int] | None
    """Messages per entry; None means all are 1."""
    message_index: int = NO_INDEX
    """Message index of the first message: how many messages the log had before it. Below 0: not known."""


class PackedEntries:
    """Small entries end to end in one piece of memory, which is a third less than CPython takes for each alone."""

    __slots__ = ("_data", "_ends")

    def __init__(self, entries: list[bytes]) -> None:
        self._data = b"".join(entries)
        self._ends = array("I", accumulate(map(len, entries)))

    def __len__(self) -> int:
        return len(self._ends)

    def unpacked(self, low: int, high: int) -> list[bytes]:
        """Entries ``[low, high)``."""
        data = self._data
        begin = self._ends[low - 1] if low else 0
        out: list[bytes] = []
        for end in self._ends[low:high]:
            out.append(data[begin:end])
            begin = end
        return out


class PackedRun(NamedTuple):
    """The same as a :class:`StoredRun`, packed."""

    first: int
    ledger: int
    entry: int
    entries: PackedEntries
    counts: list[int] | None
    message_index: int

    def cut(self, low: int, entries_max: int, bytes_max: int) -> StoredRun:
        """See :func:`cut`."""
        high = min(low + entries_max, len(self.entries))
        entries = self.entries.unpacked(low, high)
        if bytes_max < (high - low) * LARGE:
            high = low + _fit(entries, 0, high - low, bytes_max)
            del entries[high - low :]
        first, ledger, entry = self.first + low, self.ledger, self.entry + low
        counts = self.counts
        if counts is None:
            return StoredRun(first, ledger, entry, entries, None, self.message_index + low)
        return StoredRun(first, ledger, entry, entries, counts[low:high], self.message_index + sum(counts[:low]))


def cut(run: StoredRun, low: int, entries_max: int, bytes_max: int) -> StoredRun:
    """``run`` from its entry ``low`` on, at most so many entries and bytes, but at least one entry."""
    entries = run.entries
    high = min(low + entries_max, len(entries))
    if bytes_max < (high - low) * LARGE:
        high = _fit(entries, low, high, bytes_max)
    if low == 0 and high == len(entries):
        return run
    first, ledger, entry, counts = run.first + low, run.ledger, run.entry + low, run.counts
    if counts is None:
        return StoredRun(first, ledger, entry, entries[low:high], None, run.message_index + low)
    return StoredRun(first, ledger, entry, entries[low:high], counts[low:high], run.message_index + sum(counts[:low]))


def joined(runs: Sequence[StoredRun | PackedRun], i: int, low: int, entries_max: int, bytes_max: int) -> StoredRun:
    """Return the run at ``i`` from its entry ``low`` on, and with it what follows at once, while they are few.

    A run of large messages has three entries, and dispatching one takes as long as dispatching all that are wanted. At
    most so many entries and bytes, but at least one entry; nothing of another ledger, and no packed run.
    """
    run = runs[i]
    assert isinstance(run, StoredRun)
    found = cut(run, low, entries_max, bytes_max)
    n = len(found.entries)
    entries, counts = found.entries, found.counts
    bytes_left = bytes_max - sum(map(len, entries))
    for following in islice(runs, i + 1, None):
        if (
            n >= entries_max or n >= FEW or following.ledger != found.ledger or following.entry != found.entry + n
            or isinstance(following, PackedRun) or len(following.entries[0]) > bytes_left
        ):  # fmt: skip
            break
        part = cut(following, 0, entries_max - n, bytes_left)
        if counts is not None or part.counts is not None:
            more = [1] * len(part.entries) if part.counts is None else part.counts
            counts = ([1] * n if counts is None else counts) + more
        entries = entries + part.entries
        n = len(entries)
        bytes_left -= sum(map(len, part.entries))
    return StoredRun(found.first, found.ledger, found.entry, entries, counts, found.message_index)


def _fit(entries: list[bytes], low: int, high: int, bytes_max: int) -> int:
    size = 0
    for i in range(low, high):
        size += len(entries[i])
        if size > bytes_max:
            return max(i, low + 1)
    return high
