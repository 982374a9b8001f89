"""Which consumer owns a slot of the key space; one implementation per file.

A selector is asked only when members change or a slot is seen for the first time: the dispatcher remembers answers.
"""

from __future__ import annotations

from typing import Protocol

from magnetar.broker.delivery.consumers import ConsumerState


class Selector(Protocol):
    """The key space of one subscription divided among its consumers."""

    def add(self, consumer: ConsumerState) -> None:
        """Give it a share; raises ConsumerAssignError and changes nothing if there is none."""
        ...

    def remove(self, consumer: ConsumerState) -> None: ...

    def select(self, slot: int) -> ConsumerState | None:
        """The owner; None when nobody covers the slot."""
        ...

    def key_slot(self, key: bytes) -> int:
        """Where a sticky key falls (SEMANTICS 0.4)."""
        ...

    def ranges(self) -> dict[ConsumerState, list[tuple[int, int]]]:
        """What everyone owns, both ends inclusive, ascending; for statistics (5.6.17, 5.6.18)."""
        ...
