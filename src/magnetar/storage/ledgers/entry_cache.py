"""Entries in memory: what was written a moment ago and what was read ahead, one bounded budget for all logs.

Pieces are evicted in the order they came, whatever log they belong to: tailing readers find what they want because
they want it at once, and catching up reads the disk in pieces that are used before they are pushed out.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from typing import Final, NamedTuple

_ENTRY_OVERHEAD: Final = 64
"""What CPython adds to the bytes of an entry, rounded up: the header of the object and its place in a list."""
_RUN_OVERHEAD: Final = 320
"""What CPython adds to a run: the tuple, its numbers and list, its places among its log's runs and in the order. Where
a thousand topics get a message each in turn, every entry is a run."""


class StoredRun(NamedTuple):
    """Consecutive entries of one ledger, ``entries[i]`` at ordinal ``first + i`` and position (ledger, entry + i)."""

    first: int
    ledger: int
    entry: int
    entries: list[bytes]
    """The entries as stored, never to be changed."""
    counts: list[int] | None
    """Messages per entry; None means all are 1."""


class CachedRuns:
    """The cached pieces of one log, ascending, not overlapping."""

    __slots__ = ("firsts", "runs")

    def __init__(self) -> None:
        self.firsts: list[int] = []
        self.runs: list[StoredRun] = []

    def find(self, start: int, entries_max: int, bytes_max: int) -> StoredRun | None:
        """Entries from ``start`` on, at least one, within one piece; None if ``start`` is not cached."""
        runs = self.runs
        if runs and (run := runs[-1]).first == start and len(run.entries) <= min(entries_max, bytes_max // _LARGE):
            return run  # what has just come
        i = bisect_right(self.firsts, start) - 1
        if i < 0:
            return None
        run = runs[i]
        low = start - run.first
        n = len(run.entries)
        if low >= n:
            return None
        return cut(run, low, entries_max, bytes_max)


def cut(run: StoredRun, low: int, entries_max: int, bytes_max: int) -> StoredRun:
    """``run`` from its entry ``low`` on, at most so many entries and bytes, but at least one entry."""
    entries = run.entries
    high = min(low + entries_max, len(entries))
    if bytes_max < (high - low) * _LARGE:
        high = _fit(entries, low, high, bytes_max)
    if low == 0 and high == len(entries):
        return run
    counts = run.counts
    return StoredRun(
        run.first + low, run.ledger, run.entry + low, entries[low:high], None if counts is None else counts[low:high]
    )


_LARGE: Final = 16384


def _fit(entries: list[bytes], low: int, high: int, bytes_max: int) -> int:
    size = 0
    for i in range(low, high):
        size += len(entries[i])
        if size > bytes_max:
            return max(i, low + 1)
    return high


class EntryCache:
    """The budget. ``bytes`` is what is held now, CPython's own overhead counted in."""

    def __init__(self, bytes_max: int) -> None:
        self.bytes_max = bytes_max
        self.bytes = 0
        self._order: deque[tuple[CachedRuns, int, int, int]] = deque()
        self.entries_put = self.entries_gone = self.evictions = 0
        """Entries that came and went since the start, and how many pieces they went in."""

    def put(self, cached: CachedRuns, run: StoredRun, size: int) -> None:
        """Remember ``run`` (``size`` bytes of entries), unless its beginning is there already."""
        firsts = cached.firsts
        if not firsts or run.first >= firsts[-1] + len(cached.runs[-1].entries):
            firsts.append(run.first)
            cached.runs.append(run)
        else:
            i = bisect_right(firsts, run.first)
            if i and run.first < firsts[i - 1] + len(cached.runs[i - 1].entries):
                return
            firsts.insert(i, run.first)
            cached.runs.insert(i, run)
        entries = len(run.entries)
        size += _RUN_OVERHEAD + _ENTRY_OVERHEAD * entries
        self.bytes += size
        self.entries_put += entries
        self._order.append((cached, run.first, size, entries))
        while self.bytes > self.bytes_max and len(self._order) > 1:
            self._evict()

    def set_bytes_max(self, bytes_max: int) -> None:
        """Change the budget, and drop the oldest pieces that it does not cover."""
        self.bytes_max = bytes_max
        while self.bytes > self.bytes_max and len(self._order) > 1:
            self._evict()

    def _evict(self) -> None:
        cached, first, size, entries = self._order.popleft()
        self.bytes -= size
        self.entries_gone += entries
        self.evictions += 1
        i = bisect_right(cached.firsts, first) - 1
        if i >= 0 and cached.firsts[i] == first:
            del cached.firsts[i], cached.runs[i]

    def clear(self, cached: CachedRuns) -> None:
        """Drop a log's pieces (its budget is given back as they come up for eviction)."""
        cached.firsts.clear()
        cached.runs.clear()
