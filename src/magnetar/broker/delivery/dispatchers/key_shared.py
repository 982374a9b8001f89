"""Key_Shared: every key goes to one consumer at a time, keys of different consumers flow independently.

A sticky key is cut into a slot, a :class:`Selector` says who owns the slot. An entry that its owner cannot take (no
permits, blocked, slot draining or without an owner, or an older entry of the slot waits) waits, and reading goes on
until too many wait (rules 5.6.9 to 5.6.11). With ``ordered=False`` (allowOutOfOrderDelivery) no guard applies (rule
5.6.13).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import repeat

from typing_extensions import override

from magnetar.broker.delivery.consumer_state import ConsumerState
from magnetar.broker.delivery.dispatch_limits import DispatchLimits
from magnetar.broker.delivery.dispatchers.multiple_consumers import MultipleConsumers, total_room
from magnetar.broker.delivery.instructions import Instruction, Slice
from magnetar.broker.delivery.sticky_keys.draining_hashes import DrainingHash, DrainingHashesTracker
from magnetar.broker.delivery.sticky_keys.selector import Intervals, Selector, slots_within
from magnetar.broker.delivery.sticky_keys.sticky_replay import StickyReplayQueue


class KeyShared(MultipleConsumers):
    """The dispatcher of one Key_Shared subscription, which owns its selector."""

    def __init__(self, selector: Selector, limits: DispatchLimits | None = None, *, ordered: bool = True) -> None:
        super().__init__(limits)
        self._selector = selector
        self._ordered = ordered
        self.key_slot = selector.key_slot
        self._owners: dict[int, ConsumerState | None] = {}
        """The selector's answers, without those that a change of members may have made wrong."""
        self._slots: dict[int, int] = {}
        """The slot of every entry that is out."""
        self._holders = DrainingHashesTracker()
        self._waiting = StickyReplayQueue()

    # -- members -----------------------------------------------------------------------------------------------

    @property
    @override
    def in_replay(self) -> int:
        return len(self._waiting)

    @override
    def add(self, consumer: ConsumerState) -> list[Instruction]:
        changed = self._selector.add(consumer)
        instructions = self._enter(consumer)
        self._reassign(changed)
        return instructions

    @override
    def remove(self, consumer: ConsumerState) -> list[Instruction]:
        changed = self._selector.remove(consumer)
        self._reassign(changed)
        instructions = super().remove(consumer)
        self._holders.left(consumer)
        return instructions

    def _reassign(self, changed: Intervals) -> None:
        """These slots may have another owner now."""
        owners = self._owners
        for slot in slots_within(changed, owners):
            del owners[slot]
        if self._ordered:
            holders = self._holders
            if not holders.tracks:
                slot_of = self._slots.__getitem__
                holders.track([(consumer, map(slot_of, consumer.pending)) for consumer in self.consumers])
            holders.review(slots_within(changed, holders.holder), self._owner)
        self._waiting.reassign(slots_within(changed, self._waiting.by_slot), self._owner, self._holders.draining)

    def _owner(self, slot: int) -> ConsumerState | None:
        try:
            return self._owners[slot]
        except KeyError:
            owner = self._owners[slot] = self._selector.select(slot)
            return owner

    def _ready_owner(self, slot: int) -> ConsumerState | None:
        """The owner, unless the slot is draining."""
        return None if slot in self._holders.draining else self._owner(slot)

    # -- reading -----------------------------------------------------------------------------------------------

    @property
    def _look_ahead(self) -> int:
        return self.limits.look_ahead(len(self.consumers))

    @override
    def wanted(self) -> int:
        if len(self._waiting) >= self._look_ahead:
            return 0
        return total_room(self, self.limits.read_entries_max)

    @override
    def plan_replay(self) -> list[int]:
        if self.blocked or not len(self._waiting):
            return []
        return self._waiting.front(self.limits.read_entries_max)

    @override
    def assign(
        self, start: int, stop: int, counts: Sequence[int] | None, slots: Sequence[int] | None
    ) -> tuple[list[Slice], int]:
        assert slots is not None
        if not self._waiting.slots and not self._holders.draining and not self.blocked:
            pieces = self._give_all(start, stop, counts, slots)
            if pieces is not None:
                return pieces, stop
        given: dict[ConsumerState, list[Slice]] = {}
        able: set[ConsumerState] = set()
        asked: set[ConsumerState] = set()
        waiting, draining, owners = self._waiting, self._holders.draining, self._owners
        by_slot: dict[int, list[int]] = waiting.by_slot if self._ordered else {}
        look_ahead = self._look_ahead
        waiting_slots = waiting.slots
        for at, slot in enumerate(slots, start):
            if self.blocked or len(waiting_slots) >= look_ahead:
                return _flat(given), at
            owner = owners.get(slot) or self._owner(slot)
            if (
                owner is None
                or (owner not in able and not _is_able(owner, able, asked))
                or slot in by_slot
                or slot in draining
            ):
                if slot in draining:
                    draining[slot] += 1
                    owner = None
                waiting.add(at, slot, owner)
                continue
            self._give(owner, at, slot, 1 if counts is None else counts[at - start], given)
            if owner.permits <= 0 or owner.blocked:
                able.discard(owner)
        return _flat(given), stop

    def _give_all(
        self, start: int, stop: int, counts: Sequence[int] | None, slots: Sequence[int]
    ) -> list[Slice] | None:
        """Give every one of these entries to its owner, in one go, while nothing waits and no slot is draining.

        None, and nothing has changed, unless all owners can take all that is theirs: then the order in which the
        entries go makes no difference to any limit, and what is done for one after the other costs three times this.
        """
        try:
            found = list(map(self._owners.__getitem__, slots))
        except KeyError:
            found = [self._owner(slot) for slot in slots]
        shares: defaultdict[ConsumerState | None, list[int]] = defaultdict(list)
        for ordinal, owner in enumerate(found, start):
            shares[owner].append(ordinal)
        room, limit = self._subscription_limit - self.unacked, self._consumer_limit
        charges: list[tuple[ConsumerState, list[int], list[int] | None, int]] = []
        for owner, ordinals in shares.items():
            if owner is None or not owner.available:
                return None
            mine = None if counts is None else [counts[ordinal - start] for ordinal in ordinals]
            messages = len(ordinals) if mine is None else sum(mine)
            room -= messages
            if messages > owner.permits or owner.unacked + messages > limit or room < 0:
                return None
            charges.append((owner, ordinals, mine, messages))
        pieces = []
        for owner, ordinals, mine, messages in charges:
            owner.pending.update(dict.fromkeys(ordinals, 1) if mine is None else zip(ordinals, mine, strict=True))
            self._charge(owner, messages)
            first, last = ordinals[0], ordinals[-1] + 1
            pieces.append(Slice(owner, first, last, () if last - first == len(ordinals) else ordinals))
        self._slots.update(zip(range(start, stop), slots, strict=True))
        if self._holders.tracks:
            self._holders.hold(slots, [owner for owner in found if owner is not None])
        return pieces

    @override
    def replay(self, start: int, stop: int, counts: Sequence[int] | None) -> list[Slice]:
        given: dict[ConsumerState, list[Slice]] = {}
        able: set[ConsumerState] = set()
        asked: set[ConsumerState] = set()
        waiting, draining = self._waiting, self._holders.draining
        for ordinal in range(start, stop):
            slot = waiting.slots.get(ordinal)
            if slot is None:
                continue
            if self.blocked:
                break
            if self._ordered and waiting.by_slot[slot][0] != ordinal:
                continue
            if slot in draining:
                draining[slot] += 1
                continue
            owner = self._owner(slot)
            if owner is None or (owner not in able and not _is_able(owner, able, asked)):
                continue
            waiting.remove(ordinal)
            self._give(owner, ordinal, slot, 1 if counts is None else counts[ordinal - start], given)
            if owner.permits <= 0 or owner.blocked:
                able.discard(owner)
        return _flat(given)

    def _give(
        self, owner: ConsumerState, ordinal: int, slot: int, messages: int, given: dict[ConsumerState, list[Slice]]
    ) -> None:
        owner.pending[ordinal] = messages
        self._slots[ordinal] = slot
        holders = self._holders
        if holders.tracks:
            holders.holder[slot] = owner
            entries = holders.entries
            entries[slot] = entries.get(slot, 0) + 1
        owner.permits -= messages  # MultipleConsumers._charge in place: this runs once per entry
        owner.unacked += messages
        self.unacked += messages
        if owner.unacked >= self._consumer_limit:
            owner.blocked = True
        if self.unacked >= self._subscription_limit:
            self.blocked = True
        mine = given.get(owner)
        if mine is None:
            given[owner] = [Slice(owner, ordinal, ordinal + 1)]
        elif mine[-1].stop == ordinal:
            mine[-1] = Slice(owner, mine[-1].start, ordinal + 1)
        else:
            mine.append(Slice(owner, ordinal, ordinal + 1))

    # -- what MultipleConsumers asks -----------------------------------------------------------------------------

    @override
    def acknowledged(self, consumer: ConsumerState, ordinals: Iterable[int]) -> bool:
        """The same as for all; here without a call per entry, while no slot is draining and no consumer is blocked."""
        holders = self._holders
        if holders.draining or consumer.blocked or self.blocked or self._redelivered.counts:
            return super().acknowledged(consumer, ordinals)
        mine: Sequence[int] = ordinals if isinstance(ordinals, list) else list(ordinals)
        others: list[int] = []
        gone = list(map(consumer.pending.pop, mine, repeat(0)))
        if 0 in gone:
            others = [ordinal for ordinal, messages in zip(mine, gone, strict=True) if not messages]
            mine = [ordinal for ordinal, messages in zip(mine, gone, strict=True) if messages]
        slots = list(map(self._slots.pop, mine))
        if holders.tracks:
            holders.release_all(slots)
        messages = sum(gone)
        consumer.unacked -= messages
        self.unacked -= messages
        return bool(others) and super().acknowledged(consumer, others)

    @override
    def _settled(self, ordinal: int) -> bool:
        slot = self._slots.pop(ordinal)
        return self._holders.release(slot) and self._waiting.freed(slot, self._owner(slot))

    @override
    def _released(self, ordinals: Iterable[int]) -> None:
        if self._holders.tracks:
            for ordinal in ordinals:
                slot = self._slots[ordinal]
                if self._holders.release(slot):
                    self._waiting.freed(slot, self._owner(slot))

    @override
    def _requeue(self, ordinals: Iterable[int]) -> None:
        for ordinal in ordinals:
            slot = self._slots.pop(ordinal)
            self._waiting.add(ordinal, slot, self._ready_owner(slot))

    @override
    def _unqueue(self, ordinal: int) -> bool:
        slot = self._waiting.slots.get(ordinal)
        if slot is None:
            return False
        self._waiting.remove(ordinal)
        return True

    @override
    def _holder(self, ordinal: int) -> ConsumerState | None:
        slot = self._slots.get(ordinal)
        if slot is None:
            return None
        likely = self._holders.holder[slot] if self._holders.tracks else self._owner(slot)
        if likely is not None and ordinal in likely.pending:
            return likely
        return next((consumer for consumer in self.consumers if ordinal in consumer.pending), None)

    @override
    def _queued(self, ordinal: int) -> bool:
        return ordinal in self._waiting.slots

    @override
    def acknowledged_until(self, ordinal: int) -> None:
        super().acknowledged_until(ordinal)
        for waiting in [o for o in self._waiting.slots if o <= ordinal]:
            self._unqueue(waiting)

    @override
    def _forget(self) -> None:
        self._waiting.clear()
        self._holders.clear()
        self._slots.clear()

    # -- for explanations -------------------------------------------------------------------------------------

    @property
    def look_ahead_full(self) -> bool:
        """Whether too many entries wait, so that nothing new is read (rule 5.6.11)."""
        return len(self._waiting) >= self._look_ahead

    def slot_of(self, ordinal: int) -> int:
        """The slot of an entry that is out."""
        return self._slots[ordinal]

    def owner_of(self, slot: int) -> ConsumerState | None:
        """The owner of a slot now, from the selector and not from its remembered answers."""
        return self._selector.select(slot)

    def holders(self) -> dict[int, ConsumerState]:
        """The consumer that has entries of a slot out, of every slot of which any are."""
        slot_of = self._slots
        return {slot_of[ordinal]: consumer for consumer in self.consumers for ordinal in consumer.pending}

    def holder_of(self, slot: int) -> ConsumerState | None:
        """The consumer that has entries of the slot out."""
        return next((c for c in self.consumers if any(self._slots[o] == slot for o in c.pending)), None)

    def held(self, slot: int) -> list[int]:
        """Entries of the slot that are out, ascending."""
        return sorted(ordinal for ordinal, of in self._slots.items() if of == slot)

    def waiting_of(self, slot: int) -> list[int]:
        """Entries of the slot that wait, ascending."""
        return list(self._waiting.by_slot.get(slot, ()))

    def waiting_slots(self) -> list[int]:
        """Slots of which entries wait."""
        return list(self._waiting.by_slot)

    def waiting_by_slot(self) -> Iterator[tuple[int, list[int]]]:
        """Slots of which entries wait, with those entries."""
        for slot, ordinals in list(self._waiting.by_slot.items()):
            yield slot, list(ordinals)

    # -- statistics --------------------------------------------------------------------------------------------

    def ranges(self) -> dict[ConsumerState, list[tuple[int, int]]]:
        return self._selector.ranges()

    def draining_of(self, consumer: ConsumerState) -> list[DrainingHash]:
        return self.draining_by().get(consumer, [])

    def draining_by(self) -> dict[ConsumerState, list[DrainingHash]]:
        """The draining hashes of every consumer that holds entries of any."""
        return self._holders.draining_by()

    def drained_total(self, consumer: ConsumerState) -> int:
        return self._holders.cleared_total(consumer)

    @override
    def check(self) -> None:
        super().check()
        out = {ordinal: c for c in self.consumers for ordinal in c.pending}
        assert out.keys() == self._slots.keys()
        assert out.keys().isdisjoint(self._waiting.slots)
        self._waiting.check(self._owner, self._holders.draining)
        if not self._ordered:
            assert not self._holders.tracks
            return
        by_slot: dict[int, list[ConsumerState]] = {}
        for ordinal, consumer in out.items():
            by_slot.setdefault(self._slots[ordinal], []).append(consumer)
        noted = by_slot.keys() if self._holders.tracks else set()
        assert noted == self._holders.holder.keys() == self._holders.entries.keys()
        for slot, holders in by_slot.items():
            assert len(set(holders)) == 1, f"slot {slot} is out at two consumers (5.6.15)"
            holder = holders[0]
            if not self._holders.tracks:
                assert self._owner(slot) is holder
                assert not self._holders.draining
                continue
            assert self._holders.holder[slot] is holder
            assert self._holders.entries[slot] == len(holders)
            assert (slot in self._holders.draining) == (self._owner(slot) is not holder)


def _flat(given: dict[ConsumerState, list[Slice]]) -> list[Slice]:
    return [piece for pieces in given.values() for piece in pieces]


def _is_able(owner: ConsumerState, able: set[ConsumerState], asked: set[ConsumerState]) -> bool:
    """Whether a consumer takes entries; asked once per read, since of thousands few own what was read."""
    if owner in asked:
        return False
    asked.add(owner)
    if owner.available:
        able.add(owner)
        return True
    return False
