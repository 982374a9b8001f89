"""Entries that do not go out as they are: those with a redelivery count, and batches of which a part is left."""

from __future__ import annotations

from magnetar.broker.topic.dispatch.consumer import Consumer
from magnetar.broker.topic.ports import EntryRun, RemainingIndexes


def send_marked(
    consumer: Consumer, parts: RemainingIndexes, run: EntryRun, low: int, high: int, counts: dict[int, int]
) -> None:
    """Send ``run.entries[low:high]``: what carries a redelivery count or an ack set one by one."""
    plain = low
    connection, epoch = consumer.connection, consumer.epoch
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
