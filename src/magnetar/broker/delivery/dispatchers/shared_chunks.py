"""Shared, on a topic with chunked messages: all chunks of one message go to one consumer (rule 3.6.6).

The first chunk that goes out chooses the consumer as for any other entry; the others follow it, also when chunks of
several messages interleave. A chunk whose consumer cannot take it now is parked for it, and reading goes on: neither
other messages nor other consumers wait. The choice ends with the last chunk or when the consumer leaves; entries that
are redelivered after that choose again. Permits and unacknowledged counts are charged per entry, as for all entries.

Topics without chunks never have this dispatcher; :meth:`SharedChunks.of` takes over from a :class:`Shared` when the
first chunk is published.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Final, NamedTuple

from typing_extensions import override

from magnetar.broker.delivery.consumer_state import ConsumerState
from magnetar.broker.delivery.dispatch_limits import DispatchLimits
from magnetar.broker.delivery.dispatchers.shared import Shared, stretches
from magnetar.broker.delivery.instructions import Instruction, Slice
from magnetar.model.ordinals import SortedOrdinals

_OPEN_MESSAGES_MAX: Final = 20_000
"""Messages whose last chunk has not gone out; the oldest choice is forgotten then."""


class ChunkInfo(NamedTuple):
    """The chunk that an entry holds."""

    uuid: str
    last: bool


class SharedChunks(Shared):
    """Round robin over messages instead of entries, where entries are chunks."""

    def __init__(self, limits: DispatchLimits | None = None) -> None:
        super().__init__(limits)
        self._chunks: dict[int, ChunkInfo] = {}
        """All chunks that are out or wait."""
        self._owner: dict[str, ConsumerState] = {}
        self._parked: dict[ConsumerState, SortedOrdinals] = {}

    @classmethod
    def of(cls, shared: Shared) -> SharedChunks:
        """Take the place of ``shared``, which must not be used any more."""
        result = cls(shared.limits)
        result._take_over(shared)
        return result

    def note_chunks(self, start: int, chunks: Sequence[ChunkInfo | None]) -> None:
        """Note which of the entries from ``start`` on are chunks, before they are assigned."""
        for ordinal, chunk in enumerate(chunks, start):
            if chunk is not None:
                self._chunks[ordinal] = chunk

    @property
    @override
    def in_replay(self) -> int:
        return super().in_replay + sum(map(len, self._parked.values()))

    @override
    def remove(self, consumer: ConsumerState) -> list[Instruction]:
        parked = self._parked.pop(consumer, None)
        self._owner = {uuid: owner for uuid, owner in self._owner.items() if owner is not consumer}
        instructions = super().remove(consumer)
        if parked is not None and self.consumers:
            self._requeue(parked.front(len(parked)))
        return instructions

    @override
    def wanted(self) -> int:
        return 0 if self.look_ahead_full else super().wanted()

    @property
    def look_ahead_full(self) -> bool:
        """Whether so many chunks wait for their consumers that nothing new is read."""
        waiting = sum(map(len, self._parked.values()))
        return waiting > 0 and waiting >= self.limits.look_ahead_of_all

    def waits_for(self, able: Collection[ConsumerState]) -> bool:
        """Whether one of these consumers could take an entry that waits: a parked chunk is for its own consumer
        only."""
        return bool(len(self._replay)) or any(len(parked) and owner in able for owner, parked in self._parked.items())

    @override
    def plan_replay(self) -> list[int]:
        plan = super().plan_replay()
        if self._parked and not self.blocked:
            most = self.limits.read_entries_max
            for owner, parked in self._parked.items():
                if len(parked) and owner.available:
                    plan += parked.front(min(owner.permits, most))
            plan.sort()
            del plan[most:]
        return plan

    @override
    def assign(
        self, start: int, stop: int, counts: Sequence[int] | None, slots: Sequence[int] | None
    ) -> tuple[list[Slice], int]:
        chunks = self._chunks
        if not chunks:
            return super().assign(start, stop, counts, slots)
        slices: list[Slice] = []
        at = start
        while at < stop and not self.blocked:
            if at in chunks:
                if not self._assign_chunk(at, 1 if counts is None else counts[at - start], slices):
                    break
                at += 1
                continue
            end = at + 1
            while end < stop and end not in chunks:
                end += 1
            part = None if counts is None else counts[at - start : end - start]
            some, reached = super().assign(at, end, part, None)
            slices += some
            at = reached
            if reached < end:
                break
        return slices, at

    def _assign_chunk(self, ordinal: int, messages: int, slices: list[Slice]) -> bool:
        """Assign one chunk or park it; False if no consumer could be chosen."""
        uuid, last = self._chunks[ordinal]
        owner = self._owner.get(uuid)
        if owner is None:
            owner = self._next()
            self._begun = None
            if owner is None:
                return False
            if len(self._owner) >= _OPEN_MESSAGES_MAX:
                del self._owner[next(iter(self._owner))]
            self._owner[uuid] = owner
        parked = self._parked.get(owner)
        if not owner.available or (parked is not None and len(parked) and parked.front(1)[0] < ordinal):
            if parked is None:
                parked = self._parked[owner] = SortedOrdinals()
            parked.add(ordinal)
            return True
        if last:
            del self._owner[uuid]
        owner.pending[ordinal] = messages
        if self._holders.noting:
            self._holders.note(owner, (ordinal,))
        self._charge(owner, messages)
        if slices and slices[-1].consumer is owner and slices[-1].stop == ordinal:
            slices[-1] = Slice(owner, slices[-1].start, ordinal + 1)
        else:
            slices.append(Slice(owner, ordinal, ordinal + 1))
        return True

    @override
    def replay(self, start: int, stop: int, counts: Sequence[int] | None) -> list[Slice]:
        waiting = [*self._replay.within(start, stop)]
        for parked in self._parked.values():
            waiting += parked.within(start, stop)
        waiting.sort()
        slices: list[Slice] = []
        for first, last in stretches(waiting):
            for parked in self._parked.values():
                parked.remove_range(first, last)
            self._replay.remove_range(first, last)
            part = None if counts is None else counts[first - start : last - start]
            some, reached = self.assign(first, last, part, None)
            slices += some
            if reached < last:
                self._replay.extend(range(reached, last))
                break
        return slices

    @override
    def acknowledged(self, consumer: ConsumerState, ordinals: Iterable[int]) -> bool:
        if self._chunks:
            ordinals = list(ordinals)
            for ordinal in ordinals:
                self._chunks.pop(ordinal, None)
        return super().acknowledged(consumer, ordinals)

    @override
    def acknowledged_until(self, ordinal: int) -> None:
        super().acknowledged_until(ordinal)
        for parked in self._parked.values():
            parked.remove_until(ordinal)
        for chunk in [chunk for chunk in self._chunks if chunk <= ordinal]:
            del self._chunks[chunk]

    @override
    def _unqueue(self, ordinal: int) -> bool:
        return super()._unqueue(ordinal) or any(parked.discard(ordinal) for parked in self._parked.values())

    @override
    def _queued(self, ordinal: int) -> bool:
        return super()._queued(ordinal) or any(ordinal in parked for parked in self._parked.values())

    @override
    def _forget(self) -> None:
        super()._forget()
        self._chunks.clear()
        self._owner.clear()
        self._parked.clear()

    @override
    def check(self) -> None:
        super().check()
        assert set(self._owner.values()) <= set(self.consumers)
        assert self._parked.keys() <= set(self.consumers)
        for owner, parked in self._parked.items():
            parked.check()
            for ordinal in parked.front(len(parked)):
                assert ordinal not in self._replay
                assert not any(ordinal in consumer.pending for consumer in self.consumers)
                assert self._owner.get(self._chunks[ordinal].uuid, owner) is owner
