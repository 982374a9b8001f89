"""What delivery costs: read from memory, assign, connection.deliver and acknowledge, in microseconds per entry.

The log is a list of ready runs, the connection notes slices, the cursor is the real one without a journal: what is
measured is the dispatcher, the pump and the subscription; for Key_Shared also finding the key in a real entry.
``python benchmarks/delivery.py`` prints the best of five rounds.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from magnetar.broker.topic.dispatch.consumer import Consumer
from magnetar.broker.topic.dispatch.dispatch_settings import DispatchSettings
from magnetar.broker.topic.dispatch.dispatcher_choice import TopicIdentity
from magnetar.broker.topic.ports import EntryRun as AnyRun
from magnetar.broker.topic.subscription.subscription import Subscription
from magnetar.model.ids import Position
from magnetar.model.subscription_types import AUTO_SPLIT, SubType
from magnetar.protocol.entries import EntryMetadata, build_entry
from magnetar.protocol.sticky_key import sticky_keys
from magnetar.runtime.clock import SystemClock
from magnetar.storage.ledgers.cursor import Cursor
from magnetar.storage.ledgers.stored_run import StoredRun, cut

ENTRIES = 100_000
EXTENT = 1_000
SETTINGS = replace(DispatchSettings(), turn_entries_max=1 << 60)


def _entry(number: int) -> bytes:
    return build_entry(
        EntryMetadata("producer", number, 1_700_000_000_000, partition_key=f"key-{number % 5000}"), b"x" * 100
    )


class ReadyLog:
    """All entries in memory, in extents as the cache keeps them."""

    def __init__(self) -> None:
        self.id = 1
        self.first = 0
        self.end = 0
        self.runs = [
            StoredRun(first, 1, first, [_entry(first + i) for i in range(EXTENT)], None)
            for first in range(0, ENTRIES, EXTENT)
        ]

    def cached(self, start: int, entries_max: int, bytes_max: int) -> StoredRun | None:
        run = self.runs[start // EXTENT]
        return cut(run, start - run.first, entries_max, bytes_max)

    def read(self, start: int, entries_max: int, bytes_max: int, done: Callable[[AnyRun | Exception], None]) -> None:
        raise AssertionError("everything is in memory")

    def position(self, ordinal: int) -> Position:
        return Position(1, ordinal)

    def ordinal(self, position: Position) -> int:
        return position.entry

    def exact_ordinal(self, position: Position) -> int | None:
        return position.entry if position.entry < self.end else None


class CountingConnection:
    """Keeps what it got as slices of ordinals."""

    writable = True

    def __init__(self) -> None:
        self.slices: list[tuple[int, int]] = []

    def deliver(self, run: AnyRun, start: int, stop: int, epoch: int | None) -> None:
        self.slices.append((run.first + start, run.first + stop))

    def deliver_picked(self, run: AnyRun, indexes: Sequence[int], epoch: int | None) -> None:
        self.slices.extend((run.first + index, run.first + index + 1) for index in indexes)

    def deliver_one(
        self, run: AnyRun, index: int, redelivery_count: int, ack_set: tuple[int, ...], epoch: int | None
    ) -> None:
        self.slices.append((run.first + index, run.first + index + 1))

    def deliver_unstored(self, entries: Sequence[bytes]) -> None: ...
    def active_change(self, active: bool) -> None: ...
    def close(self) -> None: ...
    def end_of_topic(self) -> None: ...


def measure(sub_type: SubType, consumers: int, group: int, acks: str) -> tuple[float, float]:
    """Microseconds per entry for delivering and for acknowledging; ``group`` entries are appended at a time."""
    log = ReadyLog()
    cursor = Cursor(log, 1, "bench", -1, None)
    subscription = Subscription(
        TopicIdentity("persistent://a/b/c"), "bench", log, cursor, SETTINGS, SystemClock(), sticky_keys
    )
    members: list[tuple[Consumer, CountingConnection]] = []
    for i in range(consumers):
        connection = CountingConnection()
        consumer = subscription.add_consumer(
            connection, name=f"c{i}", consumer_id=i, sub_type=sub_type, key_shared=AUTO_SPLIT
        )
        members.append((consumer, connection))
        subscription.flow(consumer, 1 << 40)
    delivering = acknowledging = 0.0
    clock = time.perf_counter
    done = 0
    while done < ENTRIES:
        begin = clock()
        done += group
        log.end = done
        subscription.entries_appended()
        delivering += clock() - begin
        batches = [(c, [o for start, stop in s.slices for o in range(start, stop)]) for c, s in members]
        for _, connection in members:
            connection.slices.clear()
        begin = clock()
        for consumer, ordinals in batches:
            if acks == "cumulative" and ordinals:
                subscription.acks.take_until(consumer, ordinals[-1])
            elif acks == "single":
                acknowledge = subscription.acks.take
                for ordinal in ordinals:
                    acknowledge(consumer, (ordinal,))
            elif ordinals:
                subscription.acks.take(consumer, ordinals)
        acknowledging += clock() - begin
    assert cursor.backlog() == 0
    return delivering / ENTRIES * 1e6, acknowledging / ENTRIES * 1e6


async def main() -> None:
    """All rows."""
    print(f"{'type':<12}{'consumers':>10}{'group':>7}  {'acks':<11}{'deliver us':>11}{'ack us':>8}{'sum':>7}")
    for sub_type, consumers, group, acks in [
        (SubType.Shared, 1, 200, "single"),
        (SubType.Shared, 1, 200, "list"),
        (SubType.Shared, 3, 200, "single"),
        (SubType.Shared, 1, 1, "single"),
        (SubType.Exclusive, 1, 200, "cumulative"),
        (SubType.Exclusive, 1, 200, "single"),
        (SubType.Exclusive, 1, 200, "list"),
        (SubType.Exclusive, 1, 1, "single"),
        (SubType.Key_Shared, 3, 200, "single"),
        (SubType.Key_Shared, 3, 200, "list"),
    ]:
        rounds = [measure(sub_type, consumers, group, acks) for _ in range(5)]
        deliver, ack = min(rounds, key=sum)
        print(
            f"{sub_type.name:<12}{consumers:>10}{group:>7}  {acks:<11}{deliver:>11.2f}{ack:>8.2f}{deliver + ack:>7.2f}"
        )


if __name__ == "__main__":
    asyncio.run(main())
