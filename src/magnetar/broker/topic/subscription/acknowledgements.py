"""Acknowledgements of consumers: the cursor moves, the dispatcher lets go, the consumer's counters grow.

Every one is answered, also where it means nothing: from a consumer that is gone (after a seek its ids mean nothing,
rule 5.9.4), of parts of batches while that is off (rule 5.7.7) or with sizes that cannot be true, cumulative where
there is no order (rule 5.5.6). Those of transactions are in
:mod:`magnetar.broker.topic.subscription.transactional_acks`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from magnetar.broker.delivery.dispatchers.single_active_consumer import SingleActiveConsumer
from magnetar.broker.topic.dispatch.batch_sizes import live_messages
from magnetar.broker.topic.dispatch.consumer import Consumer
from magnetar.broker.topic.dispatch.pump import Pump
from magnetar.broker.topic.ports import Done, SubscriptionCursor, notify
from magnetar.runtime.clock import Clock


class IndexAck(NamedTuple):
    """An acknowledgement with an ack set: the bits that are set stay unacknowledged (rule 5.7.6)."""

    ordinal: int
    ack_set: tuple[int, ...]
    batch_size: int
    """The size that the client claims, below 1 when it claims none.

    See :mod:`magnetar.broker.topic.dispatch.batch_sizes`.
    """


class Acknowledgements:
    """The acknowledgements of one subscription; ``mark_moved`` gets the time when its cursor may have moved."""

    __slots__ = ("_clock", "_cursor", "_mark_moved", "_pump", "parts_count", "remaining")

    def __init__(
        self,
        pump: Pump,
        cursor: SubscriptionCursor,
        clock: Clock,
        mark_moved: Callable[[int], None],
        *,
        parts_count: bool,
    ) -> None:
        self.parts_count = parts_count
        """Whether messages of a batch are acknowledged one by one: acknowledgmentAtBatchIndexLevelEnabled."""
        self._pump = pump
        self.remaining = pump.sizes.remaining
        self._cursor = cursor
        self._clock = clock
        self._mark_moved = mark_moved

    def take(self, consumer: Consumer, ordinals: Sequence[int], durable: Done | None = None) -> None:
        """Individual acknowledgement of whole entries; ``durable`` is called once the cursor has it on disk."""
        dispatcher = self._pump.members.dispatcher
        if consumer.state not in self._pump.consumers:
            notify(durable)
            return
        self._cursor.acknowledge(ordinals, durable)
        if dispatcher is not None and dispatcher.acknowledged(consumer.state, ordinals):
            self._pump.turn()
        self._count_acked(consumer, len(ordinals))

    def take_sets(self, consumer: Consumer, acks: Sequence[IndexAck], durable: Done | None = None) -> None:
        """Individual acknowledgement of messages within batches; without effect if that is off (rule 5.7.7)."""
        dispatcher = self._pump.members.dispatcher
        if not self.parts_count or not acks or dispatcher is None or consumer.state not in self._pump.consumers:
            notify(durable)
            return
        freed = False
        complete = 0
        for i, (ordinal, ack_set, batch_size) in enumerate(acks, 1):
            done = durable if i == len(acks) else None
            left = self.remaining(ordinal, ack_set, batch_size)
            if left is None:
                if done is not None:
                    self._cursor.acknowledge((), done)  # those before it are not durable yet
            elif self._cursor.acknowledge_indexes(ordinal, left.words, left.size, done):
                freed |= dispatcher.acknowledged(consumer.state, (ordinal,))
                complete += 1
            else:
                live = live_messages(self._cursor.remaining_indexes(ordinal) or left.words)
                freed |= dispatcher.partly_acknowledged(consumer.state, ordinal, live)
        if freed:
            self._pump.turn()
        self._count_acked(consumer, complete)

    def take_until(
        self, consumer: Consumer, ordinal: int, durable: Done | None = None, batch: IndexAck | None = None
    ) -> None:
        """Cumulative: everything up to ``ordinal``; with ``batch`` everything before it and a part of it (rule 5.7.3).

        Ignored, but answered, on Shared and Key_Shared (rule 5.5.6). Allowed from a consumer that is not active (rule
        5.4.7).
        """
        gone = consumer.state not in self._pump.consumers
        if gone or not isinstance(self._pump.members.dispatcher, SingleActiveConsumer):
            notify(durable)
            return
        before = self._cursor.backlog()
        if batch is None:
            self._cursor.acknowledge_until(ordinal, durable)
        elif not self.parts_count:
            self._cursor.acknowledge_until(ordinal - 1, durable)
        else:
            left = self.remaining(ordinal, batch.ack_set, batch.batch_size)
            self._cursor.acknowledge_until(ordinal - 1, durable if left is None else None)
            if left is not None:
                self._cursor.acknowledge_indexes(ordinal, left.words, left.size, durable)
        self._count_acked(consumer, before - self._cursor.backlog())

    def _count_acked(self, consumer: Consumer, entries: int) -> None:
        now = self._clock.now_ms()
        consumer.last_acked_ms = now
        consumer.acked_entries += entries
        self._mark_moved(now)
