"""The consumers that hold unacknowledged entries of each slot, and the slots that are draining.

One consumer at most holds entries of a slot (rule 5.6.15). When the assignment changes, a slot whose holder is no
longer its owner is draining: its entries go to no consumer until the holder has none left, by acknowledgement,
redelivery or leaving; if the slot comes back to its holder, draining ends at once (rule 5.6.9). Other slots are not
affected.

The holder of a slot matters only when the assignment changes, so holders are not recorded until it does. Then they are
found among the entries that are out, and recorded with each entry until as many entries have gone out as were searched.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from magnetar.broker.delivery.consumer_state import ConsumerState


class DrainingHash(NamedTuple):
    """A draining slot as statistics show it (rule 5.6.17)."""

    slot: int
    unacked: int
    blocked_attempts: int


class DrainingHashesTracker:
    """Tracks draining slots, and holders from a change of the assignment on. The dispatcher's inner loop adds to
    ``holder`` and ``entries`` itself."""

    __slots__ = ("_cleared", "_left", "draining", "entries", "holder", "tracks")

    def __init__(self) -> None:
        self.tracks = False
        """Whether holders are noted; if not, no slot is draining."""
        self._left = 0
        """Entries that go out before holders are noted no more."""
        self.holder: dict[int, ConsumerState] = {}
        """Slot to the consumer that has entries of it out; all of them while ``tracks``."""
        self.entries: Counter[int] = Counter()
        """Slot to the number of its entries that are out; never 0."""
        self.draining: dict[int, int] = {}
        """Draining slot to the number of deliveries that were held back."""
        self._cleared: dict[ConsumerState, int] = {}

    def track(self, out: Iterable[tuple[ConsumerState, Iterable[int]]]) -> None:
        """Note holders from now on; ``out`` are the consumers, each with the slots of its entries."""
        self.tracks, self._left = True, 0
        for consumer, slots in out:
            counts = Counter(slots)
            self.holder.update(dict.fromkeys(counts, consumer))
            self.entries.update(counts)
            self._left += counts.total()

    def hold(self, slots: Sequence[int], holders: Sequence[ConsumerState]) -> None:
        """An entry of each of ``slots`` went out to the consumer at the same place, none to two of them.

        No slot is draining.
        """
        self._left -= len(slots)
        if self._left < 0:
            self.tracks = False
            self.holder.clear()
            self.entries.clear()
            return
        self.holder.update(zip(slots, holders, strict=True))
        self.entries.update(slots)

    def release_all(self, slots: Iterable[int]) -> None:
        """One entry of each of ``slots`` was acknowledged; none is draining."""
        holder, entries = self.holder, self.entries
        for slot in slots:
            left = entries[slot] - 1
            if left:
                entries[slot] = left
            else:
                entries.pop(slot)
                del holder[slot]

    def release(self, slot: int) -> bool:
        """One entry of ``slot`` came back or was acknowledged; returns whether that ends its draining."""
        if not self.tracks:
            return False
        left = self.entries[slot] - 1
        if left:
            self.entries[slot] = left
            return False
        self.entries.pop(slot)
        holder = self.holder.pop(slot)
        if not self.draining or self.draining.pop(slot, None) is None:
            return False
        self._cleared[holder] = self._cleared.get(holder, 0) + 1
        return True

    def review(self, slots: Iterable[int], owner: Callable[[int], ConsumerState | None]) -> None:
        """The assignment of these slots changed: find again which of them are draining."""
        for slot in slots:
            holder = self.holder.get(slot)
            if holder is None:
                continue
            if owner(slot) is holder:
                self.draining.pop(slot, None)
            else:
                self.draining.setdefault(slot, 0)

    def left(self, consumer: ConsumerState) -> None:
        self._cleared.pop(consumer, None)

    def clear(self) -> None:
        self.tracks = False
        self.holder.clear()
        self.entries.clear()
        self.draining.clear()
        self._cleared.clear()

    def cleared_total(self, consumer: ConsumerState) -> int:
        return self._cleared.get(consumer, 0)

    def draining_by(self) -> dict[ConsumerState, list[DrainingHash]]:
        """The draining slots of every consumer that holds any, ascending."""
        found: dict[ConsumerState, list[DrainingHash]] = {}
        for slot, attempts in sorted(self.draining.items()):
            found.setdefault(self.holder[slot], []).append(DrainingHash(slot, self.entries[slot], attempts))
        return found
