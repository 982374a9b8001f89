"""One active consumer gets all entries in order: what Exclusive and Failover have in common.

Nothing is remembered per entry: the cursor knows what is acknowledged, and a redelivery is a rewind (rules 5.7.5,
5.8.2). A read asks for as many entries as there are permits, at most ``read_max``, and all of it is sent, so permits
may go far below zero on batches (rule 5.1.10). The number of pieces in which storage hands it over makes no difference.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from operator import itemgetter

from typing_extensions import override

from magnetar.broker.delivery.consumer_state import ConsumerState
from magnetar.broker.delivery.dispatch_limits import DispatchLimits
from magnetar.broker.delivery.dispatchers.dispatcher import Dispatcher
from magnetar.broker.delivery.instructions import Do, Instruction, Slice


class SingleActiveConsumer(Dispatcher):
    """What Exclusive and Failover share: at most one consumer, ``active``, is served."""

    only_forward = True

    def __init__(self, read_max: int = 100) -> None:
        self.consumers = []
        self.active: ConsumerState | None = None
        self.waiting = False
        """Between the choice of an active consumer and its activation; nothing is sent meanwhile (rule 5.4.6)."""
        self._read_max = read_max
        self._ranges: list[tuple[int, int]] = []
        """Hash ranges of the active consumer, if it declared any, ascending and not adjacent."""
        self._allowance = 0
        """Entries of the current read that are still to be sent, however few permits are left by now (rule 5.1.10)."""

    @override
    def set_limits(self, limits: DispatchLimits) -> None:
        self._read_max = limits.read_entries_max

    @override
    def new_turn(self) -> None:
        self._allowance = 0

    @override
    def wanted(self) -> int:
        active = self.active
        if active is None or self.waiting or not active.connection.writable:
            return 0
        if not self._allowance and active.permits > 0:
            self._allowance = min(active.permits, self._read_max)
        return self._allowance

    @override
    def assign(
        self, start: int, stop: int, counts: Sequence[int] | None, slots: Sequence[int] | None
    ) -> tuple[list[Slice], int]:
        active = self.active
        if active is None or self.waiting:
            return [], start
        self._allowance = max(self._allowance - (stop - start), 0)
        if slots is not None:
            return self._of_ranges(active, start, counts, slots), stop
        active.permits -= stop - start if counts is None else sum(counts)
        return [Slice(active, start, stop)], stop

    @override
    def take_all(self, count: int) -> ConsumerState | None:
        active = self.active
        if active is None or self.waiting or self.key_slot is not None or not active.connection.writable:
            return None
        if active.permits < count or self._read_max < count:
            return None
        active.permits -= count
        return active

    def _of_ranges(
        self, active: ConsumerState, start: int, counts: Sequence[int] | None, slots: Sequence[int]
    ) -> list[Slice]:
        ranges = self._ranges
        slices: list[Slice] = []
        for i, slot in enumerate(slots):
            at = bisect_right(ranges, slot, key=itemgetter(0)) - 1
            if at < 0 or slot > ranges[at][1]:
                continue
            active.permits -= 1 if counts is None else counts[i]
            at = start + i
            if slices and slices[-1].stop == at:
                slices[-1] = Slice(active, slices[-1].start, at + 1)
            else:
                slices.append(Slice(active, at, at + 1))
        return slices

    @override
    def redeliver(self, consumer: ConsumerState, ordinals: Iterable[int] | None) -> list[Instruction]:
        """Only the active consumer may ask, and it gets all unacknowledged entries, whichever it named (rule 5.8.2)."""
        return [Do.REWIND] if consumer is self.active else []

    @override
    def check(self) -> None:
        assert (self.active is None) == (not self.consumers)
        assert self.active is None or self.active in self.consumers
        for consumer in self.consumers:
            assert not consumer.pending
            assert not consumer.blocked
            consumer.check()
