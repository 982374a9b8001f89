"""How long the entries of one topic waited for the disk, and how large they were: once per group commit.

The numbers are those of the last period, as Apache Pulsar shows them (rule 14.11): :meth:`WriteStats.turn` ends one.
"""

from __future__ import annotations

from collections import Counter
from operator import attrgetter
from typing import Any, Final, NamedTuple

from magnetar.runtime.distributions import Buckets
from magnetar.storage.log.write_group import WRITE_BOUNDS_MS, PendingExtent, WriteTimes

ENTRY_BYTES: Final = (128, 512, 1 << 10, 2 << 10, 4 << 10, 16 << 10, 100 << 10, 1 << 20)

_BUCKETS: Final = len(WRITE_BOUNDS_MS) + 1
"""Those of the bounds, and the one above all of them."""


SINGLES: Final = 32
"""Entries that came alone are counted together, so many at a time."""
_PLACES, _WAITED_MS, _WROTE_MS = attrgetter("places"), attrgetter("waited_ms"), attrgetter("wrote_ms")


class WritePeriod(NamedTuple):
    """What one period brought: counts per bucket and, last in each, the sum (milliseconds, bytes)."""

    latency: tuple[float, ...]
    """From the oldest entry of a group, whosever it was, to the group's receipts."""
    disk: tuple[float, ...]
    """The group's write and sync alone."""
    sizes: tuple[float, ...]
    failed: int
    """Entries that the disk refused."""


NOTHING: Final = WritePeriod(
    (0,) * _BUCKETS + (0.0,), (0,) * _BUCKETS + (0.0,), (0,) * (len(ENTRY_BYTES) + 1) + (0,), 0
)  # fmt: skip
"""Of every period without an entry."""


class WriteStats:
    """Of one topic; made with its first entry, and anew with the first one after a period without any."""

    __slots__ = ("_failed", "_places", "_single", "_sizes", "_waited_ms", "_wrote_ms", "last")

    def __init__(self) -> None:
        self._failed = 0
        self._places: Counter[tuple[int, int]] = Counter()
        """How many entries were in groups whose two latencies belong into these buckets."""
        self._single: list[Any] = []
        """The times and the size, in turn, of entries that came alone and are not counted yet."""
        self._waited_ms = self._wrote_ms = 0.0
        self._sizes = Buckets(ENTRY_BYTES)
        self.last = NOTHING
        """What is shown."""

    def stored(self, extent: PendingExtent, times: WriteTimes) -> None:
        """Count entries that were made durable, and how long their group took."""
        entries = extent.entries
        n = len(entries)
        if n == 1:
            # where a thousand topics get a message each in turn, this is once per message: counted by the dozen
            single = self._single
            single += times, extent.size
            if len(single) >= 2 * SINGLES:
                self._count_singles()
            return
        self._places[times.places] += n
        self._waited_ms += times.waited_ms * n
        self._wrote_ms += times.wrote_ms * n
        self._sizes.add_each(map(len, entries))

    def _count_singles(self) -> None:
        single, sizes = self._single[::2], self._single[1::2]
        self._places.update(map(_PLACES, single))
        self._waited_ms += sum(map(_WAITED_MS, single))
        self._wrote_ms += sum(map(_WROTE_MS, single))
        self._sizes.add_each(sizes)
        self._single.clear()

    def refused(self, extent: PendingExtent) -> None:
        """Entries did not reach the disk."""
        self._failed += len(extent.entries)

    def turn(self) -> bool:
        """End a period; False if it had no entry."""
        some = bool(self._single or self._places or self._failed)
        self.last = self._taken() if some else NOTHING
        return some

    def _taken(self) -> WritePeriod:
        self._count_singles()
        latency, disk = [0] * _BUCKETS, [0] * _BUCKETS
        for (waited_at, wrote_at), entries in self._places.items():
            latency[waited_at] += entries
            disk[wrote_at] += entries
        taken = WritePeriod((*latency, self._waited_ms), (*disk, self._wrote_ms), self._sizes.take(), self._failed)
        self._places.clear()
        self._waited_ms = self._wrote_ms = 0.0
        self._failed = 0
        return taken
