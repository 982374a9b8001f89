"""What Shared and Key_Shared have in common: many consumers, each with entries out.

An entry given away is pending on exactly one consumer until it is acknowledged, asked for again, or its consumer
leaves; then it is queued for replay. Too many unacknowledged messages block a consumer, and at a higher count the
whole subscription; both resume at half the limit (rule 5.9.10). When the last consumer leaves, replay and
redelivery counts are forgotten, and the next one starts with a rewind (rule 5.5.4).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from typing import Final

from typing_extensions import override

from magnetar.broker.delivery.consumer_state import ConsumerState
from magnetar.broker.delivery.dispatch_limits import DispatchLimits
from magnetar.broker.delivery.dispatchers.dispatcher import Dispatcher
from magnetar.broker.delivery.instructions import Do, Instruction
from magnetar.broker.delivery.redelivery import RedeliveryCounts

_UNLIMITED: Final = 1 << 62


class MultipleConsumers(Dispatcher):
    """Pending entries, blocking and redelivery; subclasses decide which consumer gets an entry."""

    def __init__(self, limits: DispatchLimits | None = None) -> None:
        self.consumers = []
        self._redelivered = RedeliveryCounts()
        self.limits = DispatchLimits()
        self._subscription_limit = self._consumer_limit = _UNLIMITED
        self.set_limits(limits or DispatchLimits())

    @override
    def set_limits(self, limits: DispatchLimits) -> None:
        if self.limits.of_share and not limits.of_share:
            # the broker's limit has let go of it: it need not come down to half of its own
            self.blocked = False
        self.limits = limits
        self._subscription_limit = limits.unacked_per_subscription or _UNLIMITED
        self._consumer_limit = limits.unacked_per_consumer or _UNLIMITED
        self.blocked |= self.unacked >= self._subscription_limit
        for consumer in self.consumers:
            consumer.blocked |= consumer.unacked >= self._consumer_limit
            self._credit(consumer, 0)  # it may be free now, and the subscription

    # -- for the subclasses ------------------------------------------------------------------------------------

    @abstractmethod
    def _requeue(self, ordinals: Iterable[int]) -> None:
        """These entries are pending on no consumer and must be sent again."""

    @abstractmethod
    def _unqueue(self, ordinal: int) -> bool:
        """An entry need not go out again; returns whether it was queued."""

    @abstractmethod
    def _holder(self, ordinal: int) -> ConsumerState | None:
        """The consumer that has an entry out, found without asking all of them for each entry."""

    @abstractmethod
    def _queued(self, ordinal: int) -> bool:
        """Whether an entry waits to go out again."""

    @abstractmethod
    def _released(self, ordinals: Iterable[int]) -> None:
        """These entries stopped being pending without being acknowledged."""

    def _settled(self, ordinal: int) -> bool:
        """A pending entry was acknowledged; returns whether that lets others flow. Called only if keys matter."""
        return False

    @abstractmethod
    def _forget(self) -> None:
        """The last consumer left."""

    def _charge(self, consumer: ConsumerState, messages: int) -> None:
        """``messages`` go out to ``consumer``."""
        consumer.permits -= messages
        consumer.unacked += messages
        self.unacked += messages
        if consumer.unacked >= self._consumer_limit:
            consumer.blocked = True
        if self.unacked >= self._subscription_limit:
            self.blocked = True

    def _credit(self, consumer: ConsumerState, messages: int) -> bool:
        """``messages`` of ``consumer`` are not out any more; returns whether that unblocked it or the subscription."""
        consumer.unacked -= messages
        self.unacked -= messages
        unblocked = False
        if consumer.blocked and consumer.unacked <= self._consumer_limit // 2:
            consumer.unblock()
            unblocked = True
        if self.blocked and self.unacked <= self._subscription_limit // 2:
            self.blocked = False
            unblocked = True
        return unblocked

    # -- events ------------------------------------------------------------------------------------------------

    def _enter(self, consumer: ConsumerState) -> list[Instruction]:
        """Insert the consumer by priority, then in join order (rule 5.5.1)."""
        at = len(self.consumers)
        while at and self.consumers[at - 1].priority > consumer.priority:
            at -= 1
        self.consumers.insert(at, consumer)
        return [Do.REWIND] if len(self.consumers) == 1 else []

    @override
    def remove(self, consumer: ConsumerState) -> list[Instruction]:
        self.consumers.remove(consumer)
        pending = consumer.pending
        consumer.pending = {}
        self.unacked -= consumer.unacked
        consumer.unacked = 0
        consumer.unblock()
        if self.blocked and self.unacked <= self._subscription_limit // 2:
            self.blocked = False
        if self.consumers:
            self._released(pending)
            self._requeue(pending)
        else:
            self._redelivered.clear()
            self._forget()
        return []

    @override
    def acknowledged(self, consumer: ConsumerState, ordinals: Iterable[int]) -> bool:
        """Acknowledgements are credited to the consumer that holds the entry, not to the one that sent them (rule
        5.7.4)."""
        unblocked = False
        counts = self._redelivered.counts
        slotted = self.key_slot is not None
        for ordinal in ordinals:
            owner = consumer
            messages = owner.pending.pop(ordinal, 0)
            if not messages:
                holder = self._holder(ordinal)
                if holder is None:
                    # as long as it waited, what it kept from being read had to wait too
                    unblocked |= self._unqueue(ordinal)
                    counts.pop(ordinal, None)
                    continue
                owner = holder
                messages = owner.pending.pop(ordinal)
            owner.unacked -= messages
            self.unacked -= messages
            if (owner.blocked or self.blocked) and self._credit(owner, 0):
                unblocked = True
            if counts:
                counts.pop(ordinal, None)
            if slotted and self._settled(ordinal):
                unblocked = True
        return unblocked

    @override
    def acknowledged_until(self, ordinal: int) -> None:
        counts = self._redelivered.counts
        for gone in [counted for counted in counts if counted <= ordinal]:
            del counts[gone]

    @override
    def withdraw(self, ordinals: Iterable[int]) -> bool:
        some = False
        for ordinal in ordinals:
            some |= self._unqueue(ordinal)
        return some

    @override
    def has(self, ordinal: int) -> bool:
        return self._queued(ordinal) or self._holder(ordinal) is not None

    @override
    def take_back(self, ordinals: Iterable[int]) -> list[int]:
        unassigned: list[int] = []
        for ordinal in ordinals:
            owner = self._holder(ordinal)
            if owner is not None:
                messages = owner.pending.pop(ordinal)
                self._released((ordinal,))
                self._requeue((ordinal,))
                self._credit(owner, messages)
            elif not self._queued(ordinal):
                unassigned.append(ordinal)
        return unassigned

    @override
    def partly_acknowledged(self, consumer: ConsumerState, ordinal: int, live: int) -> bool:
        """A batch that was acknowledged in part starts to count its redeliveries again (rule 5.8.3).

        One of which nothing is left, because transactions have the rest, is out no more.
        """
        if not live:
            return self.acknowledged(consumer, (ordinal,))
        self._redelivered.forget(ordinal)
        owner = consumer if ordinal in consumer.pending else self._holder(ordinal)
        if owner is None or owner.pending[ordinal] <= live:
            return False
        gone = owner.pending[ordinal] - live
        owner.pending[ordinal] = live
        return self._credit(owner, gone)

    @override
    def redeliver(self, consumer: ConsumerState, ordinals: Iterable[int] | None) -> list[Instruction]:
        """What is pending on ``consumer`` goes out again, one redelivery more; the rest is ignored (rule 5.8.1)."""
        pending = consumer.pending
        if ordinals is None:
            again = list(pending)
        else:
            again = [ordinal for ordinal in dict.fromkeys(ordinals) if ordinal in pending]
        messages = 0
        for ordinal in again:
            messages += pending.pop(ordinal)
        self._redelivered.bump(again)
        self._released(again)
        self._requeue(again)
        self._credit(consumer, messages)
        return []

    @override
    def redelivery_counts(self) -> dict[int, int]:
        return self._redelivered.counts

    def _room(self, consumer: ConsumerState) -> int:
        """Messages that may still go to an available consumer before its permits or a limit are used up."""
        return min(consumer.permits, self._consumer_limit - consumer.unacked, self._subscription_limit - self.unacked)

    @override
    def check(self) -> None:
        assert self.unacked == sum(c.unacked for c in self.consumers)
        assert [c.priority for c in self.consumers] == sorted(c.priority for c in self.consumers)
        seen: set[int] = set()
        for consumer in self.consumers:
            consumer.check()
            assert seen.isdisjoint(consumer.pending), "an entry is out twice"
            seen |= consumer.pending.keys()
            assert consumer.blocked or consumer.unacked < self._consumer_limit
            assert not consumer.blocked or consumer.unacked > self._consumer_limit // 2
        assert self.blocked or self.unacked < self._subscription_limit
        assert not self.blocked or self.unacked > self._subscription_limit // 2
        if not self.consumers:
            assert not self._redelivered.counts


def total_room(dispatcher: MultipleConsumers, entries_max: int) -> int:
    """Entries worth reading: the permits of all available consumers, at most ``entries_max``."""
    if dispatcher.blocked:
        return 0
    total = 0
    for consumer in dispatcher.consumers:
        if consumer.available:
            total += consumer.permits
            if total >= entries_max:
                return entries_max
    return total
