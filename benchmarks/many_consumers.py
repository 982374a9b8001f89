"""Many consumers of one subscription: what it costs that they come, that they get messages, and that they go.

On the log, cursor and connections of :mod:`benchmarks.delivery`: 20,000 entries of 5,000 keys, one at a time,
acknowledged one at a time. ``python -m benchmarks.many_consumers`` prints seconds, and milliseconds of the longest
single step.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from dataclasses import replace

from benchmarks.delivery import SETTINGS, CountingConnection, ReadyLog
from magnetar.broker.topic.dispatch.consumer import Consumer
from magnetar.broker.topic.dispatch.dispatcher_choice import TopicIdentity
from magnetar.broker.topic.subscription.subscription import Subscription
from magnetar.model.subscription_types import AUTO_SPLIT, IntRange, KeySharedMeta, KeySharedMode, SubType
from magnetar.protocol.sticky_key import sticky_keys
from magnetar.runtime.clock import SystemClock
from magnetar.storage.ledgers.cursor import Cursor

DELIVERED = 20_000


def timed(steps: Iterable[Callable[[], object]]) -> str:
    """Seconds for all, milliseconds of the longest."""
    total = longest = 0.0
    for step in steps:
        begin = time.perf_counter()
        step()
        took = time.perf_counter() - begin
        total += took
        longest = max(longest, took)
    return f"{total:>9.3f} s {longest * 1000:>7.2f} ms"


def measure(kind: str, sub_type: SubType, members: int, held: int, *, ring: bool) -> None:
    """One row; ``held`` entries are out and not acknowledged when the last ones come, and when all go."""
    log = ReadyLog()
    subscription = Subscription(
        TopicIdentity("persistent://a/b/c"), "bench", log, Cursor(log, 1, "bench", -1, None),
        replace(SETTINGS, subscription_key_shared_use_consistent_hashing=ring), SystemClock(), sticky_keys,
    )  # fmt: skip
    everybody: list[tuple[Consumer, CountingConnection]] = []

    def join(i: int) -> None:
        width = 65_536 // members
        own = IntRange(i * width, (i + 1) * width - 1 if i + 1 < members else 65_535)
        meta = KeySharedMeta(KeySharedMode.STICKY, (own,)) if kind == "sticky" else AUTO_SPLIT
        connection = CountingConnection()
        consumer = subscription.add_consumer(
            connection, name=f"c{i}", consumer_id=i, sub_type=sub_type, key_shared=meta
        )
        everybody.append((consumer, connection))
        subscription.flow(consumer, 100_000)

    def publish() -> None:
        log.end += 1
        subscription.entries_appended()

    def acknowledge() -> None:
        for consumer, connection in everybody:
            for start, stop in connection.slices:
                for ordinal in range(start, stop):
                    subscription.acks.take(consumer, (ordinal,))
            connection.slices.clear()

    join(0)
    for _ in range(held):
        publish()
    joining = timed(lambda i=i: join(i) for i in range(1, members))  # type: ignore[misc]  # mypy cannot infer it
    acknowledge()
    delivering = timed(publish for _ in range(DELIVERED))
    acknowledge()
    for _ in range(held):
        publish()
    leaving = timed(lambda c=c: subscription.remove_consumer(c) for c, _ in everybody)  # type: ignore[misc]  # the same
    print(f"{kind:<12}{members:>8}{held:>7}   join {joining}   deliver {delivering}   leave {leaving}")


async def main() -> None:
    """All rows."""
    for kind, sub_type, ring in [
        ("ring", SubType.Key_Shared, True),
        ("ranges", SubType.Key_Shared, False),
        ("sticky", SubType.Key_Shared, False),
        ("shared", SubType.Shared, False),
        ("failover", SubType.Failover, False),
    ]:
        for members in (500, 1000, 2000):
            measure(kind, sub_type, members, 0, ring=ring)
    for kind, ring in (("ring", True), ("ranges", False), ("sticky", False)):
        measure(kind, SubType.Key_Shared, 1000, 2_000, ring=ring)


if __name__ == "__main__":
    asyncio.run(main())
