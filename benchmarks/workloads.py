"""The canonical workloads, by name. Each runs against one broker's address and returns what it did, checked.

| name | what one entry is | producers | consumers |
|---|---|---|---|
| produce-100b, produce-batch | 100 B message; batch of 100 messages of 1 KiB | 1 | none |
| catchup-100b-shared, catchup-batch-shared | the same | 1, before the clock starts | 1 |
| tail-{100b,batch}-{shared,exclusive,keyshared} | the same | 1 | 1; Key_Shared 2 |
| tail-{100b,batch}-two-shared | those of Key_Shared | 1 | 2, Shared: what the second connection costs |
| topics-1000, topics-10000 | 100 B message | one for each of so many topics | one for each, Exclusive |
| latency-1k, latency-20k | 100 B message | 1, open loop | none |

A window bounds what a producer has outstanding: 1,000 unbatched messages (the default of the C++ client's pending
queue), 64 batches (6.5 MB, a tenth of the Java client's memory limit), 10 per topic with many topics. Consumers have
a receiver queue of 1,000 messages, as clients have, which is 10 batches. Every entry is acknowledged with an individual
ACK command of its own.

The clock of a produce workload runs from the first byte sent to the last receipt read; of a catch-up, from the first
FLOW until the broker answers a PING that was sent after the last ACK; of a tail, from the first byte produced until
that PONG. CPU time of the broker is taken over the same interval.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from benchmarks.load import wire
from benchmarks.load.bare_sync import BareSync
from benchmarks.load.connection import Address, Connection
from benchmarks.load.consume import Arrivals, ConsumeLoad, Order, Verdict, one_line
from benchmarks.load.entries import Shape
from benchmarks.load.latency import Floats, LatencyLoad
from benchmarks.load.loop import drive
from benchmarks.load.produce import ProduceLoad
from benchmarks.load.runs import Run
from benchmarks.load.wire import SubscriptionType

SMALL = Shape(100)
SMALL_KEYED = Shape(100, keys=1000)
BATCH = Shape(1024, batch=100)
BATCH_KEYED = Shape(1024, batch=100, keys=1000)

REDELIVERY_SECONDS = 0.3
PER_TOPIC = 10  # outstanding
TOPICS_FIRST_ID = 128  # ids of two bytes throughout, up to 16,255 topics


@dataclass
class Meter:
    """Called when the clock of a workload starts and stops; the caller measures the broker between the two."""

    on_start: Callable[[], None] = lambda: None
    on_stop: Callable[[], None] = lambda: None

    def start(self) -> None:
        self.on_start()
        self.generator = time.process_time()
        self.started = time.perf_counter()

    def stop(self) -> None:
        self.seconds = time.perf_counter() - self.started
        self.generator_seconds = time.process_time() - self.generator
        self.on_stop()


@dataclass
class Outcome:
    """What one run of a workload did."""

    entries: int
    messages: int
    payload_bytes: int
    seconds: float
    generator_seconds: float
    problems: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    latency_ms: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Workload:
    name: str
    entries: int
    shape: Shape
    window: int
    run: Callable[[Workload, Address, int, Meter], Outcome]
    subscription: SubscriptionType = SubscriptionType.SHARED
    consumers: int = 1
    queue: int = 1000
    rate: float = 0.0
    topics: int = 1

    def outcome(self, count: int, meter: Meter, found: list[str], noted: Sequence[str] = ()) -> Outcome:
        messages, size = count * self.shape.batch, count * self.shape.payload_bytes
        return Outcome(count, messages, size, meter.seconds, meter.generator_seconds, found, list(noted))


def fresh_topic() -> str:
    return f"persistent://public/default/bench-{uuid.uuid4().hex[:12]}"


def produced(workload: Workload, address: Address, count: int, topic: str, meter: Meter | None) -> ProduceLoad:
    connection = Connection(address)
    try:
        connection.producer(topic, 1)
        load = ProduceLoad(connection, workload.shape, count, workload.window)
        connection.start()
        if meter:
            meter.start()
        load.start()
        drive([connection], lambda: load.done, lambda: f"{load.received} of {count} receipts")
        if meter:
            meter.stop()
    finally:
        connection.close()
    return load


def produce(workload: Workload, address: Address, count: int, meter: Meter) -> Outcome:
    load = produced(workload, address, count, fresh_topic(), meter)
    return workload.outcome(count, meter, load.problems())


class Consumers:
    """The consumers of one workload on one topic, each on a connection of its own."""

    def __init__(self, workload: Workload, address: Address, count: int, topic: str) -> None:
        self.address, self.topic, self.kind = address, topic, workload.subscription
        self.arrivals = Arrivals(count)
        self.connections: list[Connection] = []
        self.loads: list[ConsumeLoad] = []
        for consumer in range(1, workload.consumers + 1):
            connection = Connection(address)
            connection.subscribe(topic, self.kind, consumer)
            self.connections.append(connection)
            self.loads.append(
                ConsumeLoad(connection, self.arrivals, workload.shape, workload.queue, first_consumer=consumer)
            )
        for connection in self.connections:
            connection.start()

    def settle(self, others: list[Connection]) -> None:
        """Wait until the broker has read every ACK: commands of one connection are handled in order (rule 1.1.12)."""
        settle([*self.connections, *others], self.connections)

    def close(self) -> None:
        for connection in self.connections:
            connection.close()

    def redelivered(self) -> list[str]:
        """Whether acknowledged entries come again to a later consumer; they must not."""
        connection = Connection(self.address)
        try:
            _subscribe_again(connection, self.topic, self.kind)
            again = 0

            def count(run: Run) -> None:
                nonlocal again
                again += run.count

            connection.handlers[wire.Command.MESSAGE] = count
            connection.start()
            connection.send([wire.flow(1, 100)])
            until = time.perf_counter() + REDELIVERY_SECONDS
            drive([connection], lambda: time.perf_counter() >= until, lambda: "")
            return [f"{again} or more acknowledged entries came again"] if again else []
        finally:
            connection.close()


def _subscribe_again(connection: Connection, topic: str, kind: SubscriptionType) -> None:
    """A consumer that just left may still be there for a moment: then try again."""
    for last in (False,) * 9 + (True,):
        try:
            connection.subscribe(topic, kind, 1)
            return
        except wire.WireError:
            if last:
                raise
            time.sleep(0.1)


def settle(connections: list[Connection], pinged: list[Connection]) -> None:
    for connection in pinged:
        connection.pongs = 0
        connection.send([wire.ping()])
    drive(connections, lambda: all(one.pongs for one in pinged), lambda: "waiting for PONG")


def catch_up(workload: Workload, address: Address, count: int, meter: Meter) -> Outcome:
    topic = fresh_topic()
    subscribed_once(address, topic, workload.subscription)
    load = produced(workload, address, count, topic, None)
    consumers = Consumers(workload, address, count, topic)
    try:
        meter.start()
        for one in consumers.loads:
            one.start()
        arrivals = consumers.arrivals
        drive(consumers.connections, lambda: arrivals.done, lambda: f"{arrivals.count} of {count} messages")
        consumers.settle([])
        meter.stop()
    finally:
        consumers.close()
    return judged(workload, count, meter, load, consumers)


def subscribed_once(address: Address, topic: str, kind: SubscriptionType) -> None:
    """Make the subscription before anything is produced, or the broker may delete what no subscription waits for."""
    connection = Connection(address)
    try:
        connection.subscribe(topic, kind, 1)
        connection.call(wire.close_consumer(1, connection.next_request()), wire.Command.SUCCESS)
    finally:
        connection.close()


def judged(workload: Workload, count: int, meter: Meter, load: ProduceLoad, consumers: Consumers) -> Outcome:
    """The outcome with all checks: receipts, messages, order, redelivery."""
    if found := load.problems():
        return workload.outcome(count, meter, found)
    if workload.subscription is SubscriptionType.KEY_SHARED:
        order = Order(workload.shape.keys_of, one_consumer=True)
    else:
        order = Order(one_line, promised=workload.subscription is not SubscriptionType.SHARED)
    verdict = Verdict(consumers.loads, load.positions(), order)
    return workload.outcome(count, meter, verdict.problems or consumers.redelivered(), verdict.remarks)


def tail(workload: Workload, address: Address, count: int, meter: Meter) -> Outcome:
    topic = fresh_topic()
    consumers = Consumers(workload, address, count, topic)
    connection = Connection(address)
    try:
        connection.producer(topic, 1)
        load = ProduceLoad(connection, workload.shape, count, workload.window)
        connection.start()
        for one in consumers.loads:
            one.start()
        settle([*consumers.connections, connection], consumers.connections)
        meter.start()
        load.start()
        arrivals = consumers.arrivals
        say = lambda: f"{load.received} receipts, {arrivals.count} messages of {count}"  # noqa: E731
        drive([*consumers.connections, connection], lambda: arrivals.done and load.done, say)
        consumers.settle([connection])
        meter.stop()
    finally:
        connection.close()
        consumers.close()
    return judged(workload, count, meter, load, consumers)


def many_topics(workload: Workload, address: Address, count: int, meter: Meter) -> Outcome:
    topics = workload.topics
    count = max(count - count % topics, topics)
    prefix = fresh_topic()
    producing, consuming = Connection(address), Connection(address)
    try:
        for at in range(topics):
            consuming.subscribe(f"{prefix}-{at}", workload.subscription, TOPICS_FIRST_ID + at)
            producing.producer(f"{prefix}-{at}", TOPICS_FIRST_ID + at)
        load = ProduceLoad(producing, workload.shape, count, workload.window, topics, TOPICS_FIRST_ID)
        arrivals = Arrivals(count)
        consumers = ConsumeLoad(consuming, arrivals, workload.shape, workload.queue, topics, TOPICS_FIRST_ID)
        producing.start()
        consuming.start()
        consumers.start()
        settle([producing, consuming], [consuming])
        meter.start()
        load.start()
        say = lambda: f"{load.received} receipts, {arrivals.count} messages of {count}"  # noqa: E731
        drive([producing, consuming], lambda: arrivals.done and load.done, say)
        settle([producing, consuming], [consuming])
        meter.stop()
    finally:
        producing.close()
        consuming.close()
    if found := load.problems():
        return workload.outcome(count, meter, found)
    verdict = Verdict([consumers], load.positions(), Order(lambda numbers: numbers % topics))
    return workload.outcome(count, meter, verdict.problems, verdict.remarks)


def latency(workload: Workload, address: Address, count: int, meter: Meter) -> Outcome:
    connection = Connection(address)
    try:
        connection.producer(fresh_topic(), 1)
        load = LatencyLoad(connection, workload.shape, count, workload.rate)
        connection.start()
        meter.start()
        load.drive()
        meter.stop()
    finally:
        connection.close()
    return _with_quantiles(
        workload.outcome(count, meter, load.problems()), load.milliseconds(), load.lateness_milliseconds()
    )


def bare_latency(workload: Workload, directory: Path, count: int, meter: Meter) -> Outcome:
    """Let the disk alone, with nothing between it and the clock, do a latency workload in ``directory``."""
    load = BareSync(directory / "bare", count, workload.rate, workload.shape.payload_bytes)
    meter.start()
    load.drive()
    meter.stop()
    return _with_quantiles(workload.outcome(count, meter, []), load.milliseconds(), load.lateness_milliseconds())


def _with_quantiles(outcome: Outcome, values: Floats, late: Floats) -> Outcome:
    for name, quantile in (("p50", 0.5), ("p99", 0.99), ("p99.9", 0.999)):
        outcome.latency_ms[name] = float(np.quantile(values, quantile))
        outcome.latency_ms[f"generator {name}"] = float(np.quantile(late, quantile))
    outcome.latency_ms["max"] = float(values.max())
    return outcome


def _tails(name: str, plain: Shape, keyed: Shape, entries: int, window: int) -> list[Workload]:
    return [
        Workload(f"tail-{name}-shared", entries, plain, window, tail),
        Workload(f"tail-{name}-exclusive", entries, plain, window, tail, SubscriptionType.EXCLUSIVE),
        Workload(f"tail-{name}-keyshared", entries, keyed, window, tail, SubscriptionType.KEY_SHARED, consumers=2),
        Workload(f"tail-{name}-two-shared", entries, keyed, window, tail, consumers=2),
    ]


def _topics(*numbers: int) -> list[Workload]:
    return [
        Workload(
            f"topics-{topics}", 200_000, SMALL, PER_TOPIC * topics, many_topics, SubscriptionType.EXCLUSIVE,
            topics=topics,
        )
        for topics in numbers
    ]  # fmt: skip


WORKLOADS: list[Workload] = [
    Workload("produce-100b", 500_000, SMALL, 1000, produce),
    Workload("catchup-100b-shared", 200_000, SMALL, 1000, catch_up),
    *_tails("100b", SMALL, SMALL_KEYED, 200_000, 1000),
    Workload("produce-batch", 4_000, BATCH, 64, produce),
    Workload("catchup-batch-shared", 4_000, BATCH, 64, catch_up),
    *_tails("batch", BATCH, BATCH_KEYED, 3_000, 64),
    *_topics(1_000, 10_000),
    Workload("latency-1k", 5_000, SMALL, 0, latency, rate=1_000),
    Workload("latency-20k", 100_000, SMALL, 0, latency, rate=20_000),
]
