"""Sends what a dispatcher has assigned to the consumers of one subscription, and has it counted.

A slice of a run goes out in one call; what carries a redelivery count, and batches of which a part is left, one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from magnetar.broker.delivery.consumer_state import ConsumerState
from magnetar.broker.delivery.dispatchers.shared import stretches
from magnetar.broker.delivery.dispatchers.shared_chunks import ChunkInfo
from magnetar.broker.delivery.instructions import Slice
from magnetar.broker.topic.dispatch.consumer import Consumer
from magnetar.broker.topic.ports import EntryRun, RemainingIndexes
from magnetar.runtime.clock import Clock


class EntrySender:
    """Owned by one pump."""

    __slots__ = ("_clock", "_consumers", "chunk_of", "parts", "sent")

    def __init__(self, consumers: Mapping[ConsumerState, Consumer], parts: RemainingIndexes, clock: Clock) -> None:
        self._consumers = consumers
        self._clock = clock
        self.parts = parts
        """What of a batch is to be sent: the cursor, unless transactions hold some of it."""
        self.chunk_of: Callable[[bytes], ChunkInfo | None] | None = None
        """How a chunk of a message is known; None: the topic has none."""
        self.sent: Callable[[Consumer, int, int, int, int], None] = Consumer.sent
        """What counts what went out; a limit of rates puts itself in between."""

    def send(self, run: EntryRun, piece: Slice, counts: dict[int, int]) -> None:
        """Send the entries of ``piece``, which are in ``run``; ``counts``: how often entries went out before."""
        if piece.picked:
            self._send_picked(run, piece, counts)
            return
        consumer = self._consumers[piece.consumer]
        low, high = piece.start - run.first, piece.stop - run.first
        if counts or self.parts.has_partial_batches:
            self._send_marked(consumer, run, low, high, counts)
        else:
            consumer.connection.deliver(run, low, high, consumer.epoch)
        if self.chunk_of is not None:
            consumer.chunks_out += sum(1 for entry in run.entries[low:high] if self.chunk_of(entry) is not None)
        messages = high - low if run.counts is None else sum(run.counts[low:high])
        self.sent(consumer, high - low, messages, sum(map(len, run.entries[low:high])), self._clock.now_ms())

    def _send_picked(self, run: EntryRun, piece: Slice, counts: dict[int, int]) -> None:
        """Send what does not stand in one row; what needs a look at each entry goes row by row."""
        if self.chunk_of is not None or self.parts.has_partial_batches or counts:
            for start, stop in stretches(piece.picked):
                self.send(run, Slice(piece.consumer, start, stop), counts)
            return
        consumer, first, entries = self._consumers[piece.consumer], run.first, run.entries
        indexes = [ordinal - first for ordinal in piece.picked]
        consumer.connection.deliver_picked(run, indexes, consumer.epoch)
        size = sum([len(entries[index]) for index in indexes])
        messages = len(indexes) if run.counts is None else sum([run.counts[index] for index in indexes])
        self.sent(consumer, len(indexes), messages, size, self._clock.now_ms())

    def _send_marked(self, consumer: Consumer, run: EntryRun, low: int, high: int, counts: dict[int, int]) -> None:
        """Send ``run.entries[low:high]``: what carries a redelivery count or an ack set one by one."""
        plain = low
        connection, epoch, parts = consumer.connection, consumer.epoch, self.parts
        for index in range(low, high):
            ordinal = run.first + index
            count = counts.get(ordinal, 0)
            ack_set = parts.remaining_indexes(ordinal)
            if not count and not ack_set:
                continue
            if plain < index:
                connection.deliver(run, plain, index, epoch)
            connection.deliver_one(run, index, count, ack_set, epoch)
            plain = index + 1
            if count:
                consumer.messages_redelivered += 1 if run.counts is None else run.counts[index]
        if plain < high:
            connection.deliver(run, plain, high, epoch)
