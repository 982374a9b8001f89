"""Transactions under load: ``magnetar perf transaction``, each with messages taken, messages sent, and its end."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from magnetar.cli.messages.cadence import Cadence
from magnetar.cli.perf.latencies import Latencies
from magnetar.cli.perf.openings import opened
from magnetar.cli.perf.payloads import payloads
from magnetar.cli.perf.report import fine, say
from magnetar.client.errors import ClientError

if TYPE_CHECKING:
    from magnetar.aio import Client, ClientTransaction, Consumer, Producer

_SIZE = 1024


@dataclass(kw_only=True)
class TransactionPlan:
    """What the flags ask for."""

    consumed: Sequence[str]
    produced: Sequence[str]
    subscriptions: Sequence[str]
    consume_each: int
    produce_each: int
    count: int
    rate: float
    timeout: int
    disabled: bool
    abort: bool
    options: dict[str, Any]


@dataclass
class TransactionLoad:
    """Counts and latencies of all transactions of a test."""

    plan: TransactionPlan
    threads: int = 1
    opened: int = 0
    open_failed: int = 0
    ended: int = 0
    end_failed: int = 0
    ack_failed: int = 0
    send_failed: int = 0
    acked: int = 0
    sent: int = 0
    ack_latencies: Latencies = field(default_factory=lambda: Latencies(1_000))
    send_latencies: Latencies = field(default_factory=lambda: Latencies(1_000))
    handles: list[Producer | Consumer] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._before = 0
        (self._payload,) = payloads(_SIZE, None, "")

    async def prepare(self, clients: Sequence[Client]) -> Sequence[Coroutine[Any, Any, None]]:
        """Open producers and consumers of each thread."""
        plan, work = self.plan, []
        for client in clients:
            producers = await opened(client.create_producer(one) for one in plan.produced)
            consumers = await opened(
                client.subscribe(topic, one, **plan.options) for topic in plan.consumed for one in plan.subscriptions
            )
            self.handles += [*producers, *consumers]
            work.append(self._drive(client, producers, consumers))
        return work

    async def _drive(self, client: Client, producers: Sequence[Producer], consumers: Sequence[Consumer]) -> None:
        plan = self.plan
        pace = Cadence(plan.rate / self.threads, asyncio.get_running_loop().time())
        while not plan.count or self.opened + self.open_failed < plan.count:
            await pace.turn()
            self.opened += 1
            try:
                txn = None if plan.disabled else await client.new_transaction(plan.timeout)
            except ClientError:
                self.opened -= 1
                if not self.opened:
                    raise  # none can be had at all, and this says why
                self.open_failed += 1
                continue
            for consumer in consumers:
                for _ in range(plan.consume_each):
                    await self._take(consumer, txn)
            await asyncio.gather(
                *(self._send(producer, txn) for producer in producers for _ in range(plan.produce_each))
            )
            try:
                if txn is not None:
                    await (txn.abort() if plan.abort else txn.commit())
                self.ended += 1
            except ClientError:
                self.end_failed += 1
        for consumer in consumers:
            self.handles.remove(consumer)
            await consumer.close()  # what it has fetched goes to the threads that still wait for messages
        say("------------------- DONE -----------------------")

    async def _take(self, consumer: Consumer, txn: ClientTransaction | None) -> None:
        time = asyncio.get_running_loop().time
        message = await consumer.receive()
        since = time()
        try:
            await consumer.acknowledge(message, txn=txn)
        except ClientError:
            self.ack_failed += 1
        else:
            self.acked += 1
            self.ack_latencies.record(int((time() - since) * 1_000_000))

    async def _send(self, producer: Producer, txn: ClientTransaction | None) -> None:
        time = asyncio.get_running_loop().time
        since = time()
        try:
            await producer.send(self._payload, txn=txn)
        except ClientError:
            self.send_failed += 1
        else:
            self.sent += 1
            self.send_latencies.record(int((time() - since) * 1_000_000))

    def report(self, seconds: float) -> None:
        """Print one interval."""
        done, self._before = self.ended - self._before, self.ended
        what = "task" if self.plan.disabled else "transaction"
        say(
            f"Throughput {what}: {self.ended:7d} {what} executes --- {done / seconds:7.3f} {what}/s  --- send "
            f"{fine(self.send_latencies, self.send_latencies.interval())} --- ack "
            f"{fine(self.ack_latencies, self.ack_latencies.interval())}"
        )

    def conclude(self, seconds: float) -> None:
        """Print the whole test."""
        what = "task" if self.plan.disabled else "transaction"
        ends = (
            ""
            if self.plan.disabled
            else f" --- {self.opened} transaction open successfully --- {self.open_failed} transaction open failed --- "
            f"{self.ended} transaction end successfully --- {self.end_failed} transaction end failed"
        )
        say(
            f"Aggregated throughput stats --- {self.ended} {what} executed --- {self.ended / seconds:7.3f} {what}/s "
            f"{ends} --- {self.ack_failed} message ack failed --- {self.send_failed} message send failed --- "
            f"{self.acked} message ack success --- {self.sent} message send success "
        )
        for name, one in (("ack", self.ack_latencies), ("send", self.send_latencies)):
            say(f"Messages {name} aggregated latency stats --- {fine(one, one.total(), last=True)}")
