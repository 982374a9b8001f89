"""Who holds unacknowledged entries of which slot, and which slots are draining.

One consumer at most holds entries of a slot (SEMANTICS 5.6.15). When the assignment changes, a slot whose holder is no
longer its owner is draining: its entries go to nobody until the holder has none left, by acknowledgement, redelivery
or leaving; if the slot comes back to its holder, draining ends at once (5.6.9). Other slots are not affected.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from magnetar.broker.delivery.consumers import ConsumerState


class Held:
    """The entries of one slot that are out; all at ``consumer``."""

    __slots__ = ("consumer", "entries")

    def __init__(self, consumer: ConsumerState) -> None:
        self.consumer = consumer
        self.entries = 1


class DrainingHash(NamedTuple):
    """One line of the statistics (5.6.17)."""

    slot: int
    unacked: int
    blocked_attempts: int


class Holders:
    """``held`` and ``draining`` (slot to blocked attempts) are public for the dispatcher's inner loop."""

    __slots__ = ("_cleared", "draining", "held")

    def __init__(self) -> None:
        self.held: dict[int, Held] = {}
        self.draining: dict[int, int] = {}
        self._cleared: dict[ConsumerState, int] = {}

    def take(self, slot: int, consumer: ConsumerState) -> None:
        """One more entry of ``slot`` goes to ``consumer``."""
        held = self.held.get(slot)
        if held is None:
            self.held[slot] = Held(consumer)
        else:
            held.entries += 1

    def release(self, slot: int) -> bool:
        """One entry of ``slot`` came back or was acknowledged; whether that ends its draining."""
        held = self.held[slot]
        held.entries -= 1
        if held.entries:
            return False
        del self.held[slot]
        if self.draining.pop(slot, None) is None:
            return False
        self._cleared[held.consumer] = self._cleared.get(held.consumer, 0) + 1
        return True

    def review(self, owner: Callable[[int], ConsumerState | None]) -> None:
        """The assignment changed: find again what is draining."""
        before = self.draining
        self.draining = {
            slot: before.get(slot, 0) for slot, held in self.held.items() if owner(slot) is not held.consumer
        }

    def left(self, consumer: ConsumerState) -> None:
        self._cleared.pop(consumer, None)

    def clear(self) -> None:
        self.held.clear()
        self.draining.clear()
        self._cleared.clear()

    def cleared_total(self, consumer: ConsumerState) -> int:
        return self._cleared.get(consumer, 0)

    def draining_of(self, consumer: ConsumerState) -> list[DrainingHash]:
        return [
            DrainingHash(slot, self.held[slot].entries, attempts)
            for slot, attempts in sorted(self.draining.items())
            if self.held[slot].consumer is consumer
        ]
