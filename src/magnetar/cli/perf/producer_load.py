"""Producers under load: ``magnetar perf produce``.

A message's latency is from the moment it was to be sent by the rate to its receipt, so that a producer that falls
behind shows it (``pulsar-perf`` counts from the moment it is really sent). Without a rate, or within transactions, it
is from the sending. What is sent during the warm-up is not recorded.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from magnetar.cli.messages.cadence import Cadence
from magnetar.cli.perf.latencies import HistogramFile, Latencies
from magnetar.cli.perf.openings import opened
from magnetar.cli.perf.report import MEGABIT, fine, say
from magnetar.client.errors import AlreadyClosedError, ClientError, QueueFullError
from magnetar.runtime.clock import SystemClock, steady_seconds

if TYPE_CHECKING:
    from magnetar.aio import Client, Producer
    from magnetar.client.machines.message_id import MessageId
    from magnetar.client.machines.outgoing.outgoing_message import OutgoingMessage

_BURST: Final = 200
"""Messages that are sent before others have their turn."""


@dataclass(kw_only=True)
class ProducerPlan:
    """What the flags ask for."""

    topics: Sequence[str]
    producers: int
    rate: float
    messages: int
    payloads: Sequence[bytes]
    warm_up: float
    options: dict[str, Any]
    name: str | None = None
    separator: str = "-"
    key_mode: str | None = None
    delays: tuple[int, int] = (0, 0)
    event_time: bool = False
    exit_on_failure: bool = False
    transaction: tuple[int, int, bool] | None = None
    """Messages of one, its time-out in seconds, and whether it is aborted."""


class _Sent:
    """The token of one message: the client completes it as it would a future."""

    __slots__ = ("_load", "_since", "_size")

    def __init__(self, load: ProducerLoad, since: float, size: int) -> None:
        self._load = load
        self._since = since
        self._size = size

    def done(self) -> bool:
        return False

    def set_result(self, _: MessageId) -> None:
        self._load.succeeded(self._since, self._size)

    def set_exception(self, error: Exception) -> None:
        self._load.failed(error)

    def exception(self) -> None:
        return None


@dataclass
class ProducerLoad:
    """Counts and latencies of all producers of a test."""

    plan: ProducerPlan
    histogram_file: HistogramFile | None = None
    threads: int = 1
    sent: int = 0
    sent_bytes: int = 0
    failures: int = 0
    transactions: int = 0
    transactions_failed: int = 0
    latencies: Latencies = field(default_factory=lambda: Latencies(1_000))
    failure: Exception | None = None
    handles: list[Producer] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._clock = SystemClock()
        self._rng = random.Random()
        self._record_from = 0.0
        self._before = (0, 0, 0, 0)
        self._time: Callable[[], float] = steady_seconds
        self._number = 0

    async def prepare(self, clients: Sequence[Client]) -> Sequence[Coroutine[Any, Any, None]]:
        """Open the producers of each thread."""
        plan = self.plan
        self._time = asyncio.get_running_loop().time
        threads = []
        for thread, client in enumerate(clients):
            producers = await opened(
                client.create_producer(topic, self._name(thread, number), **plan.options)
                for topic in plan.topics
                for number in range(plan.producers)
            )
            say(f"Created {len(producers)} producers")
            self.handles += producers
            self._rng.shuffle(producers)
            wanted = None
            if plan.messages:
                wanted = plan.messages // len(clients) + (thread < plan.messages % len(clients))
            threads.append((client, producers, wanted))
        if self.histogram_file is not None:
            self.histogram_file.begin()
        self._record_from = self._time() + plan.warm_up
        if plan.transaction is not None:
            return [self._in_transactions(*one) for one in threads]
        return [self._drive(producers, wanted) for _, producers, wanted in threads]

    def _name(self, thread: int, number: int) -> str | None:
        plan = self.plan
        if plan.name is None:
            return None
        return f"{plan.name}{plan.separator}{thread * plan.producers + number}"

    def succeeded(self, since: float, size: int) -> None:
        """Count a message that is stored."""
        self.sent += 1
        self.sent_bytes += size
        if since >= self._record_from:
            self.latencies.record(int((self._time() - since) * 1_000_000))

    def failed(self, error: Exception) -> None:
        """Count a message that is not."""
        if isinstance(error, AlreadyClosedError):
            return
        self.failures += 1
        if self.plan.exit_on_failure and self.failure is None:
            self.failure = error

    async def _drive(self, producers: Sequence[Producer], wanted: int | None) -> None:
        """``wanted``: how many messages one thread sends; None: no end."""
        plan, time = self.plan, self._time
        pace = Cadence(plan.rate / self.threads, time())
        plain = [producers[0].message(one) for one in plan.payloads]
        varied = bool(plan.key_mode or plan.delays[1] or plan.event_time) or len(plain) > 1
        message, size = plain[0], len(plain[0].payload)
        count, turn = 0, 0
        while (wanted is None or count < wanted) and self.failure is None:
            ready = _BURST
            if pace.rate:
                ready = min(pace.due(time()), _BURST)
                if ready < 1:
                    await asyncio.sleep(max(pace.intended() - time(), 0.0))
                    continue
            if wanted is not None:
                ready = min(ready, wanted - count)
            for _ in range(ready):
                if varied:
                    message = self._varied(producers[0], plain)
                    size = len(message.payload)
                since = pace.intended() if pace.rate else time()
                producer = producers[turn % len(producers)]
                try:
                    producer.send_with(message, _Sent(self, since, size))
                except QueueFullError:
                    await producer.room()
                    break
                turn += 1
                count += 1
                pace.take()
            await asyncio.sleep(0)
        await asyncio.gather(*(producer.flush() for producer in producers))
        if self.failure is not None:
            raise self.failure
        say(f"------------- DONE (reached the maximum number: {plan.messages} of production) --------------")

    def _varied(self, producer: Producer, plain: Sequence[OutgoingMessage]) -> OutgoingMessage:
        plan, rng = self.plan, self._rng
        key = None
        if plan.key_mode == "autoIncrement":
            key = str(self._number)
            self._number += 1
        elif plan.key_mode == "random":
            key = str(rng.randint(-(1 << 31), (1 << 31) - 1))
        now = self._clock.now_ms()
        delay = rng.randint(*plan.delays) if plan.delays[1] else 0
        return producer.message(
            rng.choice(plain).payload,
            partition_key=key,
            event_timestamp=now if plan.event_time else None,
            deliver_at=now + delay if delay else None,
        )

    async def _in_transactions(self, client: Client, producers: Sequence[Producer], wanted: int | None) -> None:
        """Messages of one transaction are on their way together; the next one begins when it has ended."""
        assert self.plan.transaction is not None
        size, seconds, abort = self.plan.transaction
        plan, time = self.plan, self._time
        plain = [producers[0].message(one) for one in plan.payloads]
        loop, pace = asyncio.get_running_loop(), Cadence(plan.rate / self.threads, time())
        count = 0
        while wanted is None or count < wanted:
            txn = await client.new_transaction(seconds)
            sends: list[asyncio.Task[None]] = []
            try:
                for number in range(size if wanted is None else min(size, wanted - count)):
                    await pace.turn()
                    message = self._varied(producers[0], plain)
                    sends.append(loop.create_task(self._send_in(producers[number % len(producers)], message, txn)))
                await asyncio.gather(*sends)
            finally:
                for one in sends:
                    one.cancel()
            count += len(sends)
            try:
                await (txn.abort() if abort else txn.commit())
                self.transactions += 1
            except ClientError as error:
                self.transactions_failed += 1
                if plan.exit_on_failure:
                    raise error
        say(f"------------- DONE (reached the maximum number: {plan.messages} of production) --------------")

    async def _send_in(self, producer: Producer, message: OutgoingMessage, txn: Any) -> None:
        since = self._time()
        try:
            await producer.send_message(message, txn)
        except ClientError as error:
            self.failed(error)
        else:
            self.succeeded(since, len(message.payload))

    def report(self, seconds: float) -> None:
        """Print one interval."""
        now = (self.sent, self.sent_bytes, self.failures, self.transactions)
        sent, size, failures, transactions = (new - old for new, old in zip(now, self._before, strict=True))
        self._before = now
        histogram = self.latencies.interval()
        if self.plan.transaction:
            say(
                f"--- Transaction : {self.transactions} transaction end successfully --- {self.transactions_failed} "
                f"transaction end failed --- {transactions / seconds:.3f} Txn/s"
            )
        say(
            f"Throughput produced: {self.sent:7d} msg --- {sent / seconds:8.1f} msg/s --- "
            f"{size / seconds / MEGABIT:8.1f} Mbit/s  --- failure {failures / seconds:8.1f} msg/s --- "
            + fine(self.latencies, histogram)
        )
        if self.histogram_file is not None:
            self.histogram_file.add(histogram)

    def conclude(self, seconds: float) -> None:
        """Print the whole test."""
        if self.plan.transaction:
            say(
                f"--- Transaction : {self.transactions} transaction end successfully --- {self.transactions_failed} "
                f"transaction end failed --- {self.transactions / seconds:.3f} Txn/s"
            )
        say(
            f"Aggregated throughput stats --- {self.sent} records sent --- {self.sent / seconds:.3f} msg/s --- "
            f"{self.sent_bytes / seconds / MEGABIT:.3f} Mbit/s "
        )
        last = self.latencies.interval()
        say("Aggregated latency stats --- " + fine(self.latencies, self.latencies.total(), last=True))
        if self.histogram_file is not None:
            self.histogram_file.add(last)
