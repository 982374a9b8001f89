"""STICKY: consumers declare the slots they want, both ends inclusive (rule 5.6.8).

Bounds are not checked, as Apache Pulsar does not; messages of slots that no consumer declared stay undelivered. Only
the number of ranges is checked: no more than there are slots (:func:`check_count`).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Collection
from itertools import pairwise
from typing import Final

from magnetar.broker.delivery.consumer_state import ConsumerState
from magnetar.broker.delivery.sticky_keys.selector import Intervals
from magnetar.model.errors import ConsumerAssignError
from magnetar.model.hashing import RANGE_SIZE, range_slot

_FEW: Final = 16
"""Up to so many ranges are inserted one by one; more are merged with the list."""


class RangeTakenError(ConsumerAssignError):
    """A range that a consumer declares overlaps with one of ``holder``."""

    def __init__(self, holder: ConsumerState) -> None:
        super().__init__(f"Range conflict with consumer {holder.description}")
        self.holder = holder


def check_count(ranges: Collection[object]) -> None:
    """Raise ConsumerAssignError for more ranges than there are slots; called before they are used otherwise."""
    if len(ranges) > RANGE_SIZE:
        raise ConsumerAssignError(
            f"{len(ranges)} hash ranges for a consumer: there are {RANGE_SIZE} hashes, so declare at most so many"
        )


def joined(ranges: Collection[tuple[int, int]]) -> list[tuple[int, int]]:
    """Join ranges that touch: the slots of ``ranges`` in ascending, separate ranges."""
    out: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if out and low <= out[-1][1] + 1:
            out[-1] = (out[-1][0], max(out[-1][1], high))
        elif low <= high:
            out.append((low, high))
    return out


class StickyRanges:
    """Keeps the disjoint ranges that consumers declared, ascending."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._taken: dict[int, tuple[int, ConsumerState]] = {}
        """Start of a range to its end and owner."""

    def add(self, consumer: ConsumerState) -> Intervals:
        ranges = consumer.ranges
        if not ranges:
            raise ConsumerAssignError("Ranges for KeyShared policy must not be empty.")
        check_count(ranges)
        for start, end in ranges:
            if start > end:
                raise ConsumerAssignError(f"Fixed hash range start > end for range: [{start},{end}]")
        ordered = sorted(ranges)
        for (a, b), (c, d) in pairwise(ordered):
            if c <= b:
                raise ConsumerAssignError(f"Consumer's own ranges conflict: [{a},{b}] overlaps with [{c},{d}]")
        if self._starts:
            for start, end in ordered:
                other = self._overlapping(start, end)
                if other is not None:
                    raise RangeTakenError(other)
        self._taken.update((start, (end, consumer)) for start, end in ordered)
        if len(ordered) <= _FEW:
            for start, _ in ordered:
                insort(self._starts, start)
        else:
            self._starts += [start for start, _ in ordered]
            self._starts.sort()
        return _slots(ordered)

    def _overlapping(self, start: int, end: int) -> ConsumerState | None:
        at = bisect_right(self._starts, end) - 1  # the last range that starts at or before ``end``
        if at >= 0:
            last, owner = self._taken[self._starts[at]]
            if last >= start:
                return owner
        return None

    def remove(self, consumer: ConsumerState) -> Intervals:
        ordered = sorted(consumer.ranges or ())
        for start, _ in ordered:
            del self._taken[start]
        if len(ordered) <= _FEW:
            for start, _ in ordered:
                del self._starts[bisect_left(self._starts, start)]
        else:
            self._starts = [start for start in self._starts if start in self._taken]
        return _slots(ordered)

    def select(self, slot: int) -> ConsumerState | None:
        return self._overlapping(slot, slot)

    key_slot = staticmethod(range_slot)

    def ranges(self) -> dict[ConsumerState, list[tuple[int, int]]]:
        result: dict[ConsumerState, list[tuple[int, int]]] = {}
        for start in self._starts:
            end, owner = self._taken[start]
            result.setdefault(owner, []).append((start, end))
        return result


def _slots(ordered: list[tuple[int, int]]) -> Intervals:
    """The slots of ascending ranges that a key can have."""
    return [(max(low, 0), min(high, RANGE_SIZE)) for low, high in ordered if high >= 0 and low <= RANGE_SIZE]
