"""What transactions do to entries that consumers have: set aside, acknowledged at a commit, sent again after an abort.

As a rule of Apache Pulsar's, an abort counts as a redelivery, and acknowledging in a transaction does not make an
entry's redeliveries forgotten; a commit does (rules 9.12, 5.8.3).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from magnetar.broker.topic.dispatch.batch_sizes import live_messages
from magnetar.broker.topic.dispatch.consumer import Consumer
from magnetar.broker.topic.dispatch.pump import Pump
from magnetar.broker.topic.ports import RemainingIndexes, SubscriptionCursor
from magnetar.transactions.pending_acks import PartialBatch


class TransactionalAcks:
    """What transactions do on one subscription; ``mark_moved`` is called when its cursor may have moved."""

    def __init__(self, pump: Pump, cursor: SubscriptionCursor, mark_moved: Callable[[], None]) -> None:
        self._pump = pump
        self._cursor = cursor
        self._mark_moved = mark_moved

    def show_parts(self, parts: RemainingIndexes | None) -> None:
        """Who says what of a batch is to be sent; None: the cursor."""
        self._pump.sender.parts = parts or self._cursor

    def set_aside(self, consumer: Consumer, whole: Sequence[int], parts: Sequence[tuple[int, int]]) -> None:
        """A transaction has these entries, and of batches all but so many messages: no consumer has to hold them."""
        dispatcher = self._pump.dispatcher
        if dispatcher is None or consumer.state not in self._pump.consumers:
            return
        counts = dispatcher.redelivery_counts()
        kept = {ordinal: counts[ordinal] for ordinal in (*whole, *(o for o, _ in parts)) if ordinal in counts}
        freed = dispatcher.acknowledged(consumer.state, whole)
        for ordinal, left in parts:
            freed |= dispatcher.partly_acknowledged(consumer.state, ordinal, left)
        counts.update(kept)
        if freed:
            self._pump.turn()

    def commit(self, whole: Iterable[int], parts: Iterable[PartialBatch], until: PartialBatch | None) -> None:
        """A transaction that acknowledged these was committed."""
        cursor, pump = self._cursor, self._pump
        dispatcher, anybody = pump.dispatcher, next(iter(pump.consumers), None)
        if until is not None:
            cursor.acknowledge_until(until.ordinal - 1 if until.size else until.ordinal)
            if until.size:
                cursor.acknowledge_indexes(until.ordinal, until.left, until.size)
        done = sorted(whole)
        cursor.acknowledge(done)
        for part in parts:
            if cursor.acknowledge_indexes(part.ordinal, part.left, part.size):
                done.append(part.ordinal)
            elif dispatcher is not None and anybody is not None:
                left = live_messages(pump.sender.parts.remaining_indexes(part.ordinal))
                dispatcher.partly_acknowledged(anybody, part.ordinal, left)
        if dispatcher is not None and anybody is not None:
            dispatcher.acknowledged(anybody, done)
        self._mark_moved()

    def given_back(self, ordinals: Iterable[int]) -> list[int]:
        """A transaction that acknowledged these was aborted; those that have to be sent again, and count as that."""
        left = [ordinal for ordinal in ordinals if not self._cursor.acknowledged(ordinal)]
        if self._pump.dispatcher is not None and self._pump.consumers:
            counts = self._pump.dispatcher.redelivery_counts()
            counts.update({ordinal: counts.get(ordinal, 0) + 1 for ordinal in left})
        return left
