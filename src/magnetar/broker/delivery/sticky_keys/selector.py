"""The interface of what says which consumer owns a slot of the key space.

A selector is asked only when a slot is seen for the first time since its owner may have changed: the dispatcher
remembers answers. Members come and go by the hundred, so a change returns the slots that it touched, and its cost grows
with their number, not with that of the members.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Sequence
from typing import Protocol, TypeAlias

from magnetar.broker.delivery.consumer_state import ConsumerState

Intervals: TypeAlias = Sequence[tuple[int, int]]
"""Slots, both ends inclusive; ascending, without overlaps."""


class Selector(Protocol):
    """The key space of one subscription divided among its consumers."""

    def add(self, consumer: ConsumerState) -> Intervals:
        """Give a consumer its share; returns the slots that may have another owner now.

        Raises ConsumerAssignError and changes nothing if there is none.
        """
        ...

    def remove(self, consumer: ConsumerState) -> Intervals:
        """Give a consumer's share to others; returns the slots that may have another owner now."""
        ...

    def select(self, slot: int) -> ConsumerState | None:
        """The owner of a slot; None when it has none."""
        ...

    def key_slot(self, key: bytes) -> int:
        """The slot of a sticky key (rule 0.4)."""
        ...

    def ranges(self) -> dict[ConsumerState, list[tuple[int, int]]]:
        """The ranges of each consumer, both ends inclusive, ascending; for statistics (rules 5.6.17, 5.6.18)."""
        ...


def slots_within(intervals: Intervals, slots: Collection[int]) -> list[int]:
    """The members of ``slots`` that lie in ``intervals``, found in as few steps as the smaller of the two has."""
    if sum(high - low + 1 for low, high in intervals) <= len(slots):
        return [slot for low, high in intervals for slot in range(low, high + 1) if slot in slots]
    lows = [low for low, _ in intervals]
    found = []
    for slot in slots:
        at = bisect_right(lows, slot) - 1
        if at >= 0 and slot <= intervals[at][1]:
            found.append(slot)
    return found
