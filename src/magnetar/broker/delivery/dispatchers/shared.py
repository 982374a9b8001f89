"""Shared: any entry to any consumer, in turns of up to ``round_robin_messages`` (rules of 5.5).

The next consumer is found by rule 5.5.1: first one that is available with a better priority than the current one, then
round robin within the level, then the first available one of a lower level.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence

from typing_extensions import override

from magnetar.broker.delivery.consumer_state import ConsumerState
from magnetar.broker.delivery.dispatch_limits import DispatchLimits
from magnetar.broker.delivery.dispatchers.multiple_consumers import MultipleConsumers, total_room
from magnetar.broker.delivery.entry_holders import EntryHolders
from magnetar.broker.delivery.instructions import Instruction, Slice
from magnetar.broker.delivery.permits import buy
from magnetar.model.ordinals import SortedOrdinals


class Shared(MultipleConsumers):
    """Round robin over available consumers; replay before new entries (rule 5.5.5)."""

    def __init__(self, limits: DispatchLimits | None = None) -> None:
        super().__init__(limits)
        self._replay = SortedOrdinals()
        self._slot = 0
        """Index of the consumer whose turn it is."""
        self._begun: ConsumerState | None = None
        """The consumer that did not get its whole share because what was read ended; it continues in the same turn."""
        self._left = 0
        self._holders = EntryHolders()

    @property
    @override
    def in_replay(self) -> int:
        return len(self._replay)

    def _take_over(self, other: Shared) -> None:
        """Go on with everything that ``other`` has, which must not be used any more."""
        self.consumers, self.unacked, self.blocked = other.consumers, other.unacked, other.blocked
        self._redelivered, self.limits = other._redelivered, other.limits
        self._subscription_limit, self._consumer_limit = other._subscription_limit, other._consumer_limit
        self._replay, self._slot, self._begun, self._left = other._replay, other._slot, other._begun, other._left
        self._holders = other._holders

    @override
    def add(self, consumer: ConsumerState) -> list[Instruction]:
        self._begun = None
        return self._enter(consumer)

    @override
    def remove(self, consumer: ConsumerState) -> list[Instruction]:
        self._begun = None
        return super().remove(consumer)

    @override
    def new_turn(self) -> None:
        self._begun = None

    @override
    def wanted(self) -> int:
        if len(self._replay):
            return 0
        return total_room(self, self.limits.read_entries_max)

    @override
    def plan_replay(self) -> list[int]:
        if not len(self._replay):
            return []
        return self._replay.front(total_room(self, self.limits.read_entries_max))

    @override
    def assign(
        self, start: int, stop: int, counts: Sequence[int] | None, slots: Sequence[int] | None
    ) -> tuple[list[Slice], int]:
        slices: list[Slice] = []
        at = start
        while at < stop and not self.blocked:
            consumer = self._next()
            if consumer is None:
                break
            room = self._room(consumer)
            if len(self.consumers) == 1:
                chunk = room
            else:
                chunk = self._left if consumer is self._begun else self.limits.round_robin_messages
            if counts is None:
                end = min(stop, at + min(room, chunk))
                messages = end - at
                consumer.pending.update(dict.fromkeys(range(at, end), 1))
            else:
                end, messages = buy(counts, at - start, stop - start, room, chunk)
                end += start
                consumer.pending.update(zip(range(at, end), counts[at - start : end - start], strict=True))
            if self._holders.noting:
                self._holders.note(consumer, range(at, end))
            self._charge(consumer, messages)
            self._begun = consumer if end == stop and messages < chunk else None
            self._left = chunk - messages
            if slices and slices[-1].consumer is consumer:
                slices[-1] = Slice(consumer, slices[-1].start, end)
            else:
                slices.append(Slice(consumer, at, end))
            at = end
        return slices, at

    @override
    def replay(self, start: int, stop: int, counts: Sequence[int] | None) -> list[Slice]:
        slices: list[Slice] = []
        for first, last in stretches(self._replay.within(start, stop)):
            part = None if counts is None else counts[first - start : last - start]
            some, reached = self.assign(first, last, part, None)
            slices += some
            self._replay.remove_range(first, reached)
            if reached < last:
                break
        return slices

    @override
    def acknowledged_until(self, ordinal: int) -> None:
        super().acknowledged_until(ordinal)
        self._replay.remove_until(ordinal)

    def _next(self) -> ConsumerState | None:
        """The consumer whose turn it is; moves the turn on."""
        consumers = self.consumers
        if len(consumers) == 1:
            if not consumers[0].available:
                return None
            self._slot = 1  # its turn is over: who joins it is next
            return consumers[0]
        if self._begun is not None and self._begun.available:
            return self._begun
        if self._slot >= len(consumers):
            self._slot = 0
        level = consumers[self._slot].priority if consumers else 0
        for at in self._order(level):
            if consumers[at].available:
                self._slot = at + 1
                return consumers[at]
        return None

    def _order(self, level: int) -> Iterable[int]:
        """Indices of consumers in the order of rule 5.5.1."""
        consumers = self.consumers
        begin = bisect_left(consumers, level, 0, self._slot, key=_priority)
        yield from range(begin)
        end = bisect_right(consumers, level, self._slot, key=_priority)
        yield from range(self._slot, end)
        yield from range(begin, self._slot)
        yield from range(end, len(consumers))

    @override
    def _requeue(self, ordinals: Iterable[int]) -> None:
        self._replay.extend(ordinals)

    @override
    def _unqueue(self, ordinal: int) -> bool:
        return self._replay.discard(ordinal)

    @override
    def _holder(self, ordinal: int) -> ConsumerState | None:
        return self._holders.of(ordinal, self.consumers)

    @override
    def _queued(self, ordinal: int) -> bool:
        return ordinal in self._replay

    @override
    def _released(self, ordinals: Iterable[int]) -> None:
        return

    @override
    def _forget(self) -> None:
        self._replay.clear()
        self._holders.clear()
        self._slot = 0

    @override
    def check(self) -> None:
        super().check()
        self._replay.check()
        self._holders.check(self.consumers)
        for consumer in self.consumers:
            assert not any(ordinal in self._replay for ordinal in consumer.pending)
        assert self.consumers or not len(self._replay)


def _priority(consumer: ConsumerState) -> int:
    return consumer.priority


def stretches(ordinals: Sequence[int]) -> Iterable[tuple[int, int]]:
    """Consecutive runs of an ascending sequence, as (first, after last)."""
    if not ordinals:
        return
    first = last = ordinals[0]
    for ordinal in ordinals[1:]:
        if ordinal != last + 1:
            yield first, last + 1
            first = ordinal
        last = ordinal
    yield first, last + 1
