"""How long the entries of one topic waited for the disk, and how large they were: once per group commit.

The numbers are those of the last period, as Apache Pulsar shows them (rule 14.11): :meth:`WriteStats.turn` ends one.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import Final, NamedTuple

from magnetar.runtime.distributions import Buckets
from magnetar.storage.log.write_group import WRITE_BOUNDS_MS, PendingExtent

ENTRY_BYTES: Final = (128, 512, 1 << 10, 2 << 10, 4 << 10, 16 << 10, 100 << 10, 1 << 20)

_LATENCIES: Final = len(WRITE_BOUNDS_MS) + 2
"""Buckets, the one above all bounds, and the sum."""


class WritePeriod(NamedTuple):
    """What one period brought: counts per bucket and, last in each, the sum (milliseconds, bytes)."""

    latency: tuple[float, ...]
    """From the oldest entry of a group, whosever it was, to the group's receipts."""
    disk: tuple[float, ...]
    """The group's write and sync alone."""
    sizes: tuple[float, ...]
    failed: int
    """Entries that the disk refused."""


class WriteStats:
    """Of one topic; made with the first entry that is stored."""

    __slots__ = ("_disk", "_failed", "_latency", "_sizes", "last")

    def __init__(self) -> None:
        self._failed = 0
        self._latency = [0.0] * _LATENCIES
        self._disk = [0.0] * _LATENCIES
        self._sizes = Buckets(ENTRY_BYTES)
        self.last = self._taken()
        """What is shown."""

    def stored(self, extent: PendingExtent) -> None:
        """Entries are on disk."""
        # written out: where a thousand topics get a message each in turn, this is once per message
        entries, times = extent.entries, extent.times
        n = len(entries)
        latency, disk, sizes = self._latency, self._disk, self._sizes
        latency[times.waited_at] += n
        latency[-1] += times.waited_ms * n
        disk[times.wrote_at] += n
        disk[-1] += times.wrote_ms * n
        if n == 1:
            size = extent.size
            sizes.counts[bisect_left(ENTRY_BYTES, size)] += 1
            sizes.sum += size
        else:
            sizes.add_each(map(len, entries))

    def refused(self, extent: PendingExtent) -> None:
        """Entries did not reach the disk."""
        self._failed += len(extent.entries)

    def turn(self) -> None:
        """A period ends."""
        self.last = self._taken()

    def _taken(self) -> WritePeriod:
        failed, self._failed = self._failed, 0
        latency, self._latency = self._latency, [0.0] * _LATENCIES
        disk, self._disk = self._disk, [0.0] * _LATENCIES
        counts = [tuple(map(int, each[:-1])) for each in (latency, disk)]
        return WritePeriod((*counts[0], latency[-1]), (*counts[1], disk[-1]), self._sizes.take(), failed)
