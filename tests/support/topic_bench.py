"""A topic on a real store whose clock is the simulator's, with delayed messages."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any, cast

from magnetar.broker.topic.dispatch.consumer import Consumer
from magnetar.broker.topic.dispatch.dispatch_settings import DispatchSettings
from magnetar.broker.topic.publish.producer import PendingEntry, Producer, ProducerInfo
from magnetar.broker.topic.subscription.subscription import Subscription
from magnetar.broker.topic.topic import Topic
from magnetar.model.names import TopicName
from magnetar.model.subscription_types import SubType
from magnetar.model.topic_policies import DelayedDelivery, TopicPolicies
from magnetar.protocol.commands import ProducerAccessMode
from magnetar.protocol.entries import EntryMetadata, build_entry
from magnetar.storage.backends.files import OsFileSystem
from magnetar.storage.local_store import LocalLedgerStore
from magnetar.storage.store_settings import StoreSettings
from magnetar.testing.simloop import SimClock, SimLoop, run_in
from tests.support.subscription_fakes import FakeConnection

NAME = TopicName.parse("persistent://public/default/delayed")

SETTINGS = StoreSettings(segment_bytes=1 << 20, cache_bytes=1 << 20, ledger_min_rollover_ms=0)


class OrdinalConnection(FakeConnection):
    def _take(self, run: Any, index: int, count: int, ack_set: tuple[int, ...], epoch: int | None) -> None:
        self.got.append((run.first + index, count, ack_set, epoch))


@dataclass
class TopicBench:
    """A topic whose clock is the simulator's."""

    path: Path
    strict: bool = True
    policy: DelayedDelivery = field(default_factory=DelayedDelivery)

    def __post_init__(self) -> None:
        self.clock = SimClock(asyncio.get_running_loop())
        self.sequence = 0
        self.boot()

    def boot(self) -> None:
        self.store = LocalLedgerStore(OsFileSystem(str(self.path)), self.clock, SETTINGS)
        self.store.open()
        self.load()

    def load(self) -> None:
        settings = DispatchSettings(deliver_at_time_strict=self.strict, active_consumer_failover_delay_ms=0)
        policies = TopicPolicies(delayed_delivery=self.policy)
        self.topic = Topic(NAME, self.store, settings, self.clock, Random(1), policies)

    async def restart(self) -> None:
        self.topic.close()
        await self.store.close()
        self.boot()

    def publish(self, *delays_ms: int, batch: int | None = None, padding: int = 0) -> None:
        """Positive: that much later; 0: plain. ``batch``: so many messages in each entry; ``padding``: bytes of a
        property, which stands before the delay."""
        for delay in delays_ms:
            self.sequence += 1
            at = self.clock.now_ms() + delay if delay else None
            properties = (("k", "v" * padding),) if padding else ()
            metadata = EntryMetadata(
                "p", self.sequence, 1, properties=properties, num_messages_in_batch=batch, deliver_at_time=at
            )
            entry = build_entry(metadata, b"m")
            self.topic.delays.append(entry, batch or 1, PendingEntry(gone_producer(), self.sequence, 0))

    async def durable(self) -> None:
        done = asyncio.Event()
        self.topic.log.barrier(done.set)
        await done.wait()

    async def subscription(self) -> Subscription:
        if "s" not in self.topic.subscriptions:
            self.topic.create_subscription("s", 0)
            await self.durable()
        return self.topic.subscriptions["s"]

    async def join(
        self, sub_type: SubType = SubType.Shared, permits: int = 1_000
    ) -> tuple[Consumer, OrdinalConnection]:
        connection = OrdinalConnection()
        subscription = await self.subscription()
        consumer = subscription.add_consumer(connection, name="c", consumer_id=1, sub_type=sub_type)
        if permits:
            subscription.flow(consumer, permits)
        return consumer, connection


class SilentConnection:
    """The connection of a client that has left."""

    def dropped(self, count: int) -> None: ...


def gone_producer() -> Producer:
    """A producer that has gone."""
    info = ProducerInfo(1, "gone", False, 0, ProducerAccessMode.Shared, False, "", "", "", {}, False)
    producer = Producer(info, cast(Any, SimpleNamespace(append=None)), cast(Any, SilentConnection()))
    producer.close()
    return producer


def simulated(main: Callable[[], Coroutine[Any, Any, None]]) -> None:
    run_in(SimLoop(1, limit_s=1e9), main())
