"""What delayed messages cost: memory of a million of them, and the search at publish.

    python -m benchmarks.delayed_delivery [messages]

A whole topic on a store in a temporary directory: the messages are published, a Shared consumer waits, the store is
closed and opened again, all become due. Printed: growth of the resident memory of the process in each step (everything
included: the index, the log's own tables, caches), the largest stall of the loop, nanoseconds per published entry.
"""

from __future__ import annotations

import asyncio
import gc
import multiprocessing
import random
import resource
import sys
import tempfile
import time
import timeit
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from magnetar.broker.topic.dispatch.delays import Delays
from magnetar.broker.topic.dispatch.dispatch_settings import DispatchSettings
from magnetar.broker.topic.topic import Topic
from magnetar.model.names import TopicName
from magnetar.model.subscription_types import SubType
from magnetar.model.topic_policies import TopicPolicies
from magnetar.protocol.entries import EntryMetadata, build_entry, deliver_at
from magnetar.storage.backends.files import OsFileSystem
from magnetar.storage.local_store import LocalLedgerStore
from magnetar.storage.store_settings import StoreSettings

NAME = TopicName.parse("persistent://public/default/delayed")
STORE = StoreSettings(cache_bytes=8 << 20)


class SteppedClock:
    """Stands still until it is set."""

    def __init__(self) -> None:
        self.ms = int(time.time() * 1000)

    def now_ms(self) -> int:
        return self.ms


class CountingConnection:
    """A consumer that takes everything."""

    writable = True

    def __init__(self) -> None:
        self.entries = 0

    def deliver(self, run: Any, start: int, stop: int, epoch: int | None) -> None:
        self.entries += stop - start

    def deliver_picked(self, run: Any, indexes: Sequence[int], epoch: int | None) -> None:
        self.entries += len(indexes)

    def deliver_one(self, run: Any, index: int, count: int, ack_set: tuple[int, ...], epoch: int | None) -> None:
        self.entries += 1

    def deliver_unstored(self, entries: Sequence[bytes]) -> None: ...
    def active_change(self, active: bool) -> None: ...
    def close(self) -> None: ...
    def end_of_topic(self) -> None: ...


class Gone:
    """The producer of the entries: not there to be answered."""

    open = False
    msg_in = bytes_in = 0

    class connection:
        @staticmethod
        def dropped(count: int) -> None: ...


def resident_mb() -> float:
    """Return the resident memory of this process after a collection."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1e6


async def measure(messages: int, spread_ms: int) -> None:
    clock, rng = SteppedClock(), random.Random(1)
    settings = DispatchSettings(deliver_at_time_strict=True, max_unacked_messages_per_consumer=0,
                                max_unacked_messages_per_subscription=0)  # fmt: skip
    with tempfile.TemporaryDirectory() as directory:
        store = LocalLedgerStore(OsFileSystem(directory), clock, STORE)
        store.open()
        topic = Topic(NAME, store, settings, clock, rng, TopicPolicies())
        created = asyncio.Event()
        topic.create_subscription("s", 0, created.set)
        await created.wait()
        before = resident_mb()
        producer = Gone()
        for number in range(messages):
            at = clock.ms + 60_000 + rng.randrange(spread_ms)
            entry = build_entry(EntryMetadata("p", number, 1, deliver_at_time=at), b"x" * 100)
            topic.delays.append(entry, 1, (producer, number, 0))
            if number % 2_000 == 1_999:
                await durable(topic)
        await durable(topic)
        print(
            f"  published: {resident_mb() - before:7.1f} MB more, index says {topic.delays.memory_bytes / 1e6:.1f} MB"
        )
        topic.close()
        await store.close()
        del store, topic
        gc.collect()
        before = resident_mb()
        started = time.perf_counter()
        store = LocalLedgerStore(OsFileSystem(directory), clock, STORE)
        store.open()
        topic = Topic(NAME, store, settings, clock, rng, TopicPolicies())
        subscription = topic.subscriptions["s"]
        connection = CountingConnection()
        consumer = subscription.add_consumer(connection, name="c", consumer_id=1, sub_type=SubType.Shared)
        subscription.flow(consumer, 1_000)
        print(
            f"  restarted: {resident_mb() - before:7.1f} MB more, open and passed over in "
            f"{time.perf_counter() - started:.2f} s, msgDelayed {subscription.stats().delayed_entries}"
        )
        clock.ms += 60_000 + spread_ms
        topic.delays._wake()
        worst, started = 0.0, time.perf_counter()
        while topic.delays.memory_bytes:
            turn = time.perf_counter()
            await asyncio.sleep(0)
            worst = max(worst, time.perf_counter() - turn)
        print(
            f"  all due:   {resident_mb() - before:7.1f} MB more than before the start; let through in "
            f"{time.perf_counter() - started:.2f} s, longest turn of the loop {worst * 1e3:.0f} ms, "
            f"sent {connection.entries}"
        )
        topic.close()
        await store.close()


async def durable(topic: Topic) -> None:
    done = asyncio.Event()
    topic.log.barrier(done.set)
    await done.wait()


def search() -> None:
    """The price at publish."""
    for size in (100, 1_024, 100_000):
        entry = build_entry(EntryMetadata("standalone-0-12", 123_456, int(time.time() * 1000)), b"x" * size)
        best = min(timeit.repeat(partial(deliver_at, entry), number=100_000, repeat=7)) / 100_000
        print(f"  deliver_at of an entry with {size} B of payload: {best * 1e9:.0f} ns")
    print(f"  (batches are not looked into: {Delays._append.__name__} returns after one comparison)")


def run(messages: int, spread_ms: int) -> None:
    """Measure; called in a process of its own, so that nothing is there before."""
    asyncio.run(measure(messages, spread_ms))


def main() -> None:
    messages = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    search()
    for title, spread_ms in (("due within 15 minutes", 900_000), ("due within 30 days", 30 * 86_400_000)):
        print(f"{messages} delayed messages of 100 B, {title}:")
        alone = multiprocessing.get_context("spawn").Process(target=run, args=(messages, spread_ms))
        alone.start()
        alone.join()


if __name__ == "__main__":
    main()
