"""Key_Shared's replay queue: entries read or returned that their owner could not take yet (SEMANTICS 5.6.11).

Two indexes, so that one stuck consumer with thousands of waiting entries costs the others nothing:

* per slot, ascending: the head of a slot must go before the rest of it, and before anything new of it (5.6.10);
* per owner, ascending: what it should get next. Draining slots and slots without an owner are not in it.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Container, Iterable

from magnetar.broker.delivery.consumers import ConsumerState
from magnetar.broker.delivery.redelivery import ReplayQueue


class Waiting:
    """``slots`` (ordinal to slot) and ``by_slot`` are public for the dispatcher's inner loop."""

    __slots__ = ("_by_owner", "by_slot", "slots")

    def __init__(self) -> None:
        self.slots: dict[int, int] = {}
        self.by_slot: dict[int, list[int]] = {}
        self._by_owner: dict[ConsumerState, ReplayQueue] = {}

    def __len__(self) -> int:
        return len(self.slots)

    def add(self, ordinal: int, slot: int, owner: ConsumerState | None) -> None:
        """``owner`` None: held back, the slot is draining or nobody's."""
        if ordinal in self.slots:
            return
        self.slots[ordinal] = slot
        same = self.by_slot.get(slot)
        if same is None:
            self.by_slot[slot] = [ordinal]
        else:
            insort(same, ordinal)
        if owner is not None:
            self._queue(owner).add(ordinal)

    def remove(self, ordinal: int, owner: ConsumerState | None) -> None:
        """Take out one that is there."""
        slot = self.slots.pop(ordinal)
        same = self.by_slot[slot]
        del same[bisect_left(same, ordinal)]
        if not same:
            del self.by_slot[slot]
        if owner is not None and owner in self._by_owner:
            self._by_owner[owner].discard(ordinal)

    def freed(self, slot: int, owner: ConsumerState | None) -> bool:
        """A slot drained: its entries may go to ``owner`` now; whether there are any."""
        same = self.by_slot.get(slot)
        if not same or owner is None:
            return False
        self._queue(owner).extend(same)
        return True

    def reassign(self, owner: Callable[[int], ConsumerState | None], held_back: Container[int]) -> None:
        """The assignment changed: index by owner again."""
        lists: dict[ConsumerState, list[int]] = {}
        for slot, same in self.by_slot.items():
            if slot not in held_back and (consumer := owner(slot)) is not None:
                lists.setdefault(consumer, []).extend(same)
        self._by_owner = {}
        for consumer, ordinals in lists.items():
            self._queue(consumer).extend(ordinals)

    def front(self, consumers: Iterable[ConsumerState], entries_max: int) -> list[int]:
        """What the available ones of ``consumers`` should get next, ascending."""
        result: list[int] = []
        for consumer in consumers:
            queue = self._by_owner.get(consumer)
            if queue is not None and len(queue) and consumer.available:
                result += queue.front(min(consumer.permits, entries_max))
        result.sort()
        return result[:entries_max]

    def clear(self) -> None:
        self.slots.clear()
        self.by_slot.clear()
        self._by_owner.clear()

    def _queue(self, owner: ConsumerState) -> ReplayQueue:
        queue = self._by_owner.get(owner)
        if queue is None:
            queue = self._by_owner[owner] = ReplayQueue()
        return queue

    def check(self, owner: Callable[[int], ConsumerState | None], held_back: Container[int]) -> None:
        """Assert that both indexes hold the same entries."""
        assert sum(map(len, self.by_slot.values())) == len(self.slots)
        expected: dict[ConsumerState, set[int]] = {}
        for slot, same in self.by_slot.items():
            assert same
            assert same == sorted(set(same))
            assert all(self.slots[ordinal] == slot for ordinal in same)
            consumer = owner(slot)
            if slot not in held_back and consumer is not None:
                expected.setdefault(consumer, set()).update(same)
        for consumer, queue in self._by_owner.items():
            queue.check()
            assert set(queue.front(len(queue))) == expected.pop(consumer, set())
        assert not expected
