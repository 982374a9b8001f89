"""Consumers and readers under load: ``magnetar perf consume`` and ``magnetar perf read``.

A message's latency is from its publish time (its event time, where it has one) to its arrival, in milliseconds by the
clocks of the two machines.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from magnetar.cli.messages.cadence import Cadence
from magnetar.cli.perf.latencies import HistogramFile, Latencies
from magnetar.cli.perf.openings import opened
from magnetar.cli.perf.report import MEGABIT, coarse, say
from magnetar.client.errors import ClientError
from magnetar.runtime.clock import SystemClock

if TYPE_CHECKING:
    from magnetar.aio import Client, Consumer, Message, Reader
    from magnetar.client.machines.message_id import MessageId

_BURST: Final = 500
"""Messages that are taken before others have their turn."""


@dataclass(kw_only=True)
class ConsumerPlan:
    """What the flags ask for."""

    topics: Sequence[str]
    subscriptions: Sequence[str] = ()
    """Empty: readers."""
    consumers: int = 1
    """Of each subscription."""
    messages: int = 0
    rate: float = 0.0
    options: dict[str, Any] = field(default_factory=dict)
    start: MessageId | None = None
    transaction: tuple[int, int, bool] | None = None
    """Acknowledgements of one, its time-out in seconds, and whether it is aborted."""
    transactions_max: int = 0


@dataclass
class ConsumerLoad:
    """Counts and latencies of all consumers or readers of a test."""

    plan: ConsumerPlan
    histogram_file: HistogramFile | None = None
    received: int = 0
    received_bytes: int = 0
    acknowledged: int = 0
    acknowledgements_failed: int = 0
    transactions: int = 0
    transactions_failed: int = 0
    latencies: Latencies = field(default_factory=lambda: Latencies(1))
    handles: list[Consumer | Reader] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._clock = SystemClock()
        self._before = (0, 0, 0, 0)
        self._full = asyncio.Event()
        """Set when all messages that are wanted were received."""

    async def prepare(self, clients: Sequence[Client]) -> Sequence[Coroutine[Any, Any, None]]:
        """Subscribe, or open the readers."""
        plan = self.plan
        (client,) = clients
        if not plan.subscriptions:
            assert plan.start is not None
            readers = await opened(client.create_reader(topic, plan.start, **plan.options) for topic in plan.topics)
            self.handles += readers
            say(f"Start reading from {len(readers)} topics")
            return [self._until_enough([self._read(one.read_next) for one in readers])]
        consumers = await opened(
            client.subscribe(topic, subscription, **plan.options)
            for topic in plan.topics
            for subscription in plan.subscriptions
            for _ in range(plan.consumers)
        )
        self.handles += consumers
        if self.histogram_file is not None:
            self.histogram_file.begin()
        say(f"Start receiving from {plan.consumers} consumers per subscription on {len(plan.topics)} topics")
        if plan.transaction is not None:
            return [self._until_enough([self._in_transactions(client, one) for one in consumers])]
        return [self._until_enough([self._consume(one) for one in consumers])]

    async def _until_enough(self, work: Sequence[Coroutine[Any, Any, None]]) -> None:
        loop = asyncio.get_running_loop()
        tasks = [loop.create_task(one) for one in work]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
            if self.plan.transaction is not None and self._full.is_set():
                await asyncio.gather(*tasks)  # each ends the transaction that its messages are in
            say("------------------- DONE -----------------------")
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def _count(self, message: Message, now: int) -> None:
        self.received += 1
        self.received_bytes += len(message.data())
        since = message.event_timestamp() or message.publish_timestamp()
        if now >= since:
            self.latencies.record(now - since)
        if self.plan.messages and self.received >= self.plan.messages:
            self._full.set()

    async def _consume(self, consumer: Consumer) -> None:
        pace = Cadence(self.plan.rate, asyncio.get_running_loop().time())
        while True:
            message: Message | None = await consumer.receive()
            now = self._clock.now_ms()
            taken = 0
            while message is not None:
                await pace.turn()
                if self._full.is_set():
                    return
                self._count(message, now)
                await consumer.acknowledge(message)
                self.acknowledged += 1
                taken += 1
                if self._full.is_set():
                    return
                message = consumer.receive_nowait() if taken < _BURST else None
            await asyncio.sleep(0)

    async def _read(self, read_next: Callable[[], Awaitable[Message]]) -> None:
        pace = Cadence(self.plan.rate, asyncio.get_running_loop().time())
        while True:
            for _ in range(_BURST):
                await pace.turn()
                message = await read_next()
                if not self._full.is_set():
                    self._count(message, self._clock.now_ms())
                if self._full.is_set():
                    return
            await asyncio.sleep(0)

    async def _in_transactions(self, client: Client, consumer: Consumer) -> None:
        assert self.plan.transaction is not None
        size, seconds, abort = self.plan.transaction
        pace = Cadence(self.plan.rate, asyncio.get_running_loop().time())
        loop, most = asyncio.get_running_loop(), self.plan.transactions_max
        while not self._full.is_set() and (not most or self.transactions < most):
            txn = await client.new_transaction(seconds)
            waiting: list[asyncio.Task[None]] = []
            try:
                while len(waiting) < size:
                    await pace.turn()
                    message = await self._next(consumer)
                    if message is None:
                        break
                    self._count(message, self._clock.now_ms())
                    waiting.append(loop.create_task(consumer.acknowledge(message, txn=txn)))
                results = await asyncio.gather(*waiting, return_exceptions=True)
            finally:
                for one in waiting:
                    one.cancel()
            failed = sum(isinstance(one, BaseException) for one in results)
            self.acknowledgements_failed += failed
            self.acknowledged += len(results) - failed
            try:
                await (txn.abort() if abort else txn.commit())
                self.transactions += 1
            except ClientError:
                self.transactions_failed += 1

    async def _next(self, consumer: Consumer) -> Message | None:
        """Return the next message, None once there are enough."""
        if self._full.is_set():
            return None
        found: Message | None = consumer.receive_nowait()
        if found is not None:
            return found
        loop = asyncio.get_running_loop()
        receiving, full = loop.create_task(consumer.receive()), loop.create_task(self._full.wait())
        try:
            await asyncio.wait([receiving, full], return_when=asyncio.FIRST_COMPLETED)
            return None if self._full.is_set() else receiving.result()
        finally:
            receiving.cancel()
            full.cancel()

    def report(self, seconds: float) -> None:
        """Print one interval."""
        now = (self.received, self.received_bytes, self.transactions, self.acknowledged)
        received, size, transactions, acknowledged = (new - old for new, old in zip(now, self._before, strict=True))
        self._before = now
        histogram = self.latencies.interval()
        if self.plan.transaction:
            say(
                f"--- Transaction: {self.transactions} transaction end successfully --- {self.transactions_failed} "
                f"transaction end failed --- {transactions / seconds:.3f}  Txn/s --- AckRate: "
                f"{acknowledged / seconds:.3f} msg/s"
            )
        rates = f"{received / seconds:.3f}  msg/s --- {size / seconds / MEGABIT:.3f} Mbit/s"
        if self.plan.subscriptions:
            say(f"Throughput received: {self.received:7d} msg --- {rates}  --- " + coarse(self.latencies, histogram))
        else:
            say(
                f"Read throughput: {self.received:7d} msg --- {received / seconds:.3f} msg/s --- "
                f"{size / seconds / MEGABIT:.3f} Mbit/s --- " + coarse(self.latencies, histogram)
            )
        if self.histogram_file is not None:
            self.histogram_file.add(histogram)

    def conclude(self, seconds: float) -> None:
        """Print the whole test."""
        text = (
            f"Aggregated throughput stats --- {self.received} records received --- {self.received / seconds:.3f} msg/s"
            f" --- {self.received_bytes / seconds / MEGABIT:.3f} Mbit/s"
        )
        if self.plan.transaction:
            say(
                f"--- Transaction: {self.transactions} transaction end successfully --- {self.transactions_failed} "
                f"transaction end failed --- {self.transactions / seconds:.3f}  Txn/s"
            )
        if self.plan.subscriptions:
            rate = self.acknowledged / seconds
            text += f" --- AckRate: {rate:.3f}  msg/s --- ack failed {self.acknowledgements_failed} msg"
        say(text)
        last = self.latencies.interval()
        say("Aggregated latency stats --- " + coarse(self.latencies, self.latencies.total(), last=True))
        if self.histogram_file is not None:
            self.histogram_file.add(last)
