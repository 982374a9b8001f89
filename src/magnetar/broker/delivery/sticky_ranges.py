"""STICKY: consumers declare the slots they want, both ends inclusive (SEMANTICS 5.6.8).

Bounds are not checked, as Apache Pulsar does not; slots that nobody declared keep their messages undelivered.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from itertools import pairwise

from magnetar.broker.delivery.consumers import ConsumerState
from magnetar.model.errors import ConsumerAssignError
from magnetar.model.hashing import range_slot


class StickyRanges:
    """Disjoint declared ranges, ascending."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._taken: dict[int, tuple[int, ConsumerState]] = {}
        """Start of a range to its end and owner."""

    def add(self, consumer: ConsumerState) -> None:
        ranges = consumer.ranges
        if not ranges:
            raise ConsumerAssignError("Ranges for KeyShared policy must not be empty.")
        for start, end in ranges:
            if start > end:
                raise ConsumerAssignError(f"Fixed hash range start > end for range: [{start},{end}]")
        ordered = sorted(ranges)
        for (a, b), (c, d) in pairwise(ordered):
            if c <= b:
                raise ConsumerAssignError(f"Consumer's own ranges conflict: [{a},{b}] overlaps with [{c},{d}]")
        for start, end in ordered:
            other = self._overlapping(start, end)
            if other is not None:
                raise ConsumerAssignError(f"Range conflict with consumer {other.description}")
        for start, end in ordered:
            insort(self._starts, start)
            self._taken[start] = (end, consumer)

    def _overlapping(self, start: int, end: int) -> ConsumerState | None:
        at = bisect_right(self._starts, end) - 1  # the last range that starts at or before ``end``
        if at >= 0:
            last, owner = self._taken[self._starts[at]]
            if last >= start:
                return owner
        return None

    def remove(self, consumer: ConsumerState) -> None:
        for start, (_, owner) in list(self._taken.items()):
            if owner is consumer:
                del self._taken[start]
        self._starts = sorted(self._taken)

    def select(self, slot: int) -> ConsumerState | None:
        return self._overlapping(slot, slot)

    def key_slot(self, key: bytes) -> int:
        return range_slot(key)

    def ranges(self) -> dict[ConsumerState, list[tuple[int, int]]]:
        result: dict[ConsumerState, list[tuple[int, int]]] = {}
        for start in self._starts:
            end, owner = self._taken[start]
            result.setdefault(owner, []).append((start, end))
        return result
