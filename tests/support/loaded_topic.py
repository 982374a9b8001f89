"""A loaded topic with all its features, on a store in memory."""

from __future__ import annotations

import asyncio
from random import Random
from typing import Any

from magnetar.broker.topic.compaction.compactor import Compactor
from magnetar.broker.topic.dispatch.dispatch_settings import DispatchSettings
from magnetar.broker.topic.topic import Topic
from magnetar.model.names import TopicName
from magnetar.model.subscription_types import SubType
from magnetar.model.topic_policies import TopicPolicies
from magnetar.protocol.commands.ids import TxnId
from magnetar.protocol.entries import EntryMetadata, build_entry, payload_of
from magnetar.storage.local_store import LocalLedgerStore
from magnetar.storage.store_settings import StoreSettings
from magnetar.testing.faultfiles import FaultFileSystem
from magnetar.testing.simloop import SimClock
from tests.support.topic_bench import OrdinalConnection

NAME = TopicName.parse("persistent://public/default/together")

SMALL = StoreSettings(segment_bytes=8192, cache_bytes=1, ledger_entries_max=10, ledger_min_rollover_ms=0)


class LoadedTopic:
    """A topic on a disk that can refuse and forget."""

    def __init__(self, policies: TopicPolicies | None = None) -> None:
        self.loaded_with = policies or TopicPolicies()
        self.files = FaultFileSystem(Random(1))
        self.clock = SimClock(asyncio.get_running_loop())
        self.boot()

    def boot(self) -> None:
        self.store = LocalLedgerStore(self.files, self.clock, SMALL)
        self.store.open()
        self.load()

    def load(self) -> None:
        self.topic = Topic(NAME, self.store, DispatchSettings(), self.clock, Random(1), self.loaded_with)
        self.topic.log.on_durable = lambda extent: None
        self.topic.log.on_failed = lambda extent, error: None

    async def restart(self) -> None:
        self.topic.close()
        await self.store.close()
        self.boot()

    def kill(self) -> None:
        self.topic.close()
        self.files = self.files.reopened()
        self.boot()

    def append(self, key: str, value: str, txn: TxnId | None = None) -> int:
        metadata = EntryMetadata("p", 0, 1000, partition_key=key)
        ordinal = self.topic.log.append(build_entry(metadata, value.encode()), 1, None)
        if txn is not None:
            self.topic.transacting().wrote(txn, ordinal)
        return ordinal

    async def durable(self) -> None:
        done = asyncio.Event()
        self.topic.log.barrier(done.set)
        await done.wait()

    async def compact(self) -> Compactor:
        compactor = self.topic.compaction()
        compactor.begin(retain_keyless=False)
        await compactor.wait()
        assert (compactor.status, compactor.last_error) == ("SUCCESS", "")
        return compactor

    async def compacted(self, name: str = "r") -> list[str]:
        """What a compacted reader gets."""
        topic, connection = self.topic, ValueConnection()
        found = topic.subscription(name, durable=False, ordinal=lambda: 0, properties={}, done=lambda: None)
        topic.read_by(found, compacted=True)
        consumer = found.add_consumer(connection, name="c", consumer_id=1, sub_type=SubType.Exclusive)
        found.flow(consumer, 1000)
        await asyncio.sleep(1)
        return connection.values


class ValueConnection(OrdinalConnection):
    def __init__(self) -> None:
        super().__init__()
        self.values: list[str] = []

    def _take(self, run: Any, index: int, count: int, ack_set: tuple[int, ...], epoch: int | None) -> None:
        self.values.append(payload_of(run.entries[index]).decode())
