"""How long the entries of one topic waited for the disk, and how large they were: once per group commit.

The numbers are those of the last period, as Apache Pulsar shows them (rule 14.11): :meth:`WriteStats.turn` ends one.
"""

from __future__ import annotations

from time import perf_counter
from typing import Final, NamedTuple

from magnetar.runtime.distributions import Buckets
from magnetar.storage.log.write_group import PendingExtent

LATENCY_MS: Final = (0.5, 1.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 1000.0)
ENTRY_BYTES: Final = (128, 512, 1 << 10, 2 << 10, 4 << 10, 16 << 10, 100 << 10, 1 << 20)


class WritePeriod(NamedTuple):
    """What one period brought: counts per bucket and, last in each, the sum (milliseconds, bytes)."""

    latency: tuple[float, ...]
    """From the first entry of a group that was the topic's to its receipts."""
    disk: tuple[float, ...]
    """The group's write and sync alone."""
    sizes: tuple[float, ...]
    failed: int
    """Entries that the disk refused."""


class WriteStats:
    """Of one topic; made with the first entry that is stored."""

    __slots__ = ("_disk", "_failed", "_latency", "_sizes", "last")

    def __init__(self) -> None:
        self._latency = Buckets(LATENCY_MS)
        self._disk = Buckets(LATENCY_MS)
        self._sizes = Buckets(ENTRY_BYTES)
        self._failed = 0
        self.last = self._taken()
        """What is shown."""

    def stored(self, extent: PendingExtent) -> None:
        """Entries are on disk."""
        entries = extent.entries
        n = len(entries)
        self._latency.add((perf_counter() - extent.began) * 1000, n)
        self._disk.add(extent.wrote * 1000, n)
        if n == 1:
            self._sizes.add(extent.size)
        else:
            self._sizes.add_each(map(len, entries))

    def refused(self, extent: PendingExtent) -> None:
        """Entries did not reach the disk."""
        self._failed += len(extent.entries)

    def turn(self) -> None:
        """A period ends."""
        self.last = self._taken()

    def _taken(self) -> WritePeriod:
        failed, self._failed = self._failed, 0
        return WritePeriod(self._latency.take(), self._disk.take(), self._sizes.take(), failed)
