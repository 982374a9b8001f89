"""Key_Shared's replay queue: entries read or returned that their owner could not take yet (rule 5.6.11).

Two indexes, so that one stuck consumer with thousands of waiting entries does not slow the others down:

* per slot, ascending: the head of a slot must go before the rest of it, and before anything new of it (rule 5.6.10);
* per owner, ascending: what it should get next. Draining slots and slots without an owner are not in it.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Container, Iterable

from magnetar.broker.delivery.consumer_state import ConsumerState
from magnetar.model.ordinals import SortedOrdinals


class StickyReplayQueue:
    """The entries that wait; ``slots`` (ordinal to slot) and ``by_slot`` are public for the dispatcher's inner loop."""

    __slots__ = ("_by_owner", "_place", "by_slot", "slots")

    def __init__(self) -> None:
        self.slots: dict[int, int] = {}
        self.by_slot: dict[int, list[int]] = {}
        self._by_owner: dict[ConsumerState, SortedOrdinals] = {}
        """The queue of each owner; none is empty."""
        self._place: dict[int, ConsumerState] = {}
        """Slot to the owner in whose queue its entries are, if any."""

    def __len__(self) -> int:
        return len(self.slots)

    def add(self, ordinal: int, slot: int, owner: ConsumerState | None) -> None:
        """Add an entry; ``owner`` None: it is held back, since its slot is draining or has no owner."""
        if ordinal in self.slots:
            return
        self.slots[ordinal] = slot
        same = self.by_slot.get(slot)
        if same is None:
            self.by_slot[slot] = [ordinal]
        else:
            insort(same, ordinal)
        if owner is not None:
            self._place[slot] = owner
            self._queue(owner).add(ordinal)

    def remove(self, ordinal: int) -> None:
        """Remove an entry that is queued."""
        slot = self.slots.pop(ordinal)
        owner = self._place.get(slot)
        same = self.by_slot[slot]
        del same[bisect_left(same, ordinal)]
        if not same:
            del self.by_slot[slot]
            self._place.pop(slot, None)
        if owner is not None:
            queue = self._by_owner[owner]
            queue.discard(ordinal)
            if not len(queue):
                del self._by_owner[owner]

    def freed(self, slot: int, owner: ConsumerState | None) -> bool:
        """A slot drained: its entries may go to ``owner`` now; returns whether there are any."""
        same = self.by_slot.get(slot)
        if not same or owner is None:
            return False
        self._place[slot] = owner
        self._queue(owner).extend(same)
        return True

    def reassign(
        self, slots: Iterable[int], owner: Callable[[int], ConsumerState | None], held_back: Container[int]
    ) -> None:
        """The assignment of ``slots`` changed: index their entries by owner again."""
        gone: dict[ConsumerState, list[int]] = {}
        come: dict[ConsumerState, list[int]] = {}
        for slot in slots:
            same = self.by_slot.get(slot)
            if same is None:
                continue
            before = self._place.pop(slot, None)
            now = None if slot in held_back else owner(slot)
            if now is not None:
                self._place[slot] = now
            if now is before:
                continue
            if before is not None:
                gone.setdefault(before, []).extend(same)
            if now is not None:
                come.setdefault(now, []).extend(same)
        for consumer, ordinals in gone.items():
            queue = self._by_owner[consumer]
            queue.discard_all(ordinals)
            if not len(queue):
                del self._by_owner[consumer]
        for consumer, ordinals in come.items():
            self._queue(consumer).extend(ordinals)

    def front(self, entries_max: int) -> list[int]:
        """The entries that available consumers should get next, ascending."""
        result: list[int] = []
        for consumer, queue in self._by_owner.items():
            if consumer.available:
                result += queue.front(min(consumer.permits, entries_max))
        result.sort()
        return result[:entries_max]

    def clear(self) -> None:
        self.slots.clear()
        self.by_slot.clear()
        self._by_owner.clear()
        self._place.clear()

    def _queue(self, owner: ConsumerState) -> SortedOrdinals:
        queue = self._by_owner.get(owner)
        if queue is None:
            queue = self._by_owner[owner] = SortedOrdinals()
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
                assert self._place[slot] is consumer
            else:
                assert slot not in self._place
        assert self._place.keys() <= self.by_slot.keys()
        for consumer, queue in self._by_owner.items():
            queue.check()
            assert len(queue)
            assert set(queue.front(len(queue))) == expected.pop(consumer)
        assert not expected
