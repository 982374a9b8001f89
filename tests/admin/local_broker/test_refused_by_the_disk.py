"""What REST and the wire say on a disk that takes nothing, and what is there then, now and after a restart."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from random import Random
from typing import Any

import pytest

from magnetar.admin.local_broker.broker import local_ports
from magnetar.admin.ports import BrokerPorts
from magnetar.app.node import Broker
from magnetar.config.settings import Settings
from magnetar.model.errors import MetadataError, PersistenceError
from magnetar.model.ids import EARLIEST
from magnetar.model.names import TopicName
from magnetar.runtime.clock import SystemClock
from magnetar.storage.metadata_log.metadata_log import MetadataLog
from magnetar.testing.faultfiles import FaultFileSystem

T = TopicName.parse("persistent://public/default/t")
P = TopicName.parse("persistent://public/default/p")


class Disk:
    """A disk, and brokers that one after the other live on it."""

    def __init__(self) -> None:
        self.files = FaultFileSystem(Random(1))
        self.broker: Broker

    async def start(self) -> BrokerPorts:
        self.broker = Broker(self.files, MetadataLog(self.files), Settings(), SystemClock(), Random(1))
        await self.broker.start()
        self.broker.service.service_url = "pulsar://broker:6650"
        return local_ports(self.broker.service, self.broker.rates, self.broker.connections)

    async def restarted(self) -> BrokerPorts:
        await self.broker.stop()
        return await self.start()


def on_disk(scenario: Callable[[Disk, BrokerPorts], Coroutine[Any, Any, None]]) -> None:
    async def run() -> None:
        disk = Disk()
        await scenario(disk, await disk.start())
        await disk.broker.stop()

    asyncio.run(run())


@pytest.mark.parametrize("properties", [{}, {"a": "b"}])
def test_a_topic_that_was_refused_is_not_there(properties: dict[str, str]) -> None:
    async def scenario(disk: Disk, ports: BrokerPorts) -> None:
        disk.files.fail("sync")
        with pytest.raises(PersistenceError, match="nothing of it was accepted"):
            await ports.topics.create_topic(T, properties)
        assert not ports.topics.topic_exists(T)
        assert list(ports.topics.topics_of(T.namespace)) == []
        ports = await disk.restarted()
        assert not ports.topics.topic_exists(T)
        await ports.topics.create_topic(T, {"c": "d"})
        ports = await disk.restarted()
        assert ports.operations.topic_properties(T) == {"c": "d"}

    on_disk(scenario)


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("cut", [True, False])
def test_what_a_crash_may_bring_back_is_said(cut: bool, first: bool) -> None:
    """A disk that refuses to sync the record of a topic, and perhaps to cut it off; then the process is killed."""

    async def scenario(disk: Disk, ports: BrokerPorts) -> None:
        if not first:
            await ports.topics.create_topic(P, {})  # the refused write is no beginning of a segment then
        disk.files.fail("sync")
        if not cut:
            disk.files.fail("truncate", skip=int(first))
        with pytest.raises(PersistenceError, match="nothing of it was accepted") as refused:
            await ports.topics.create_topic(T, {})
        assert ("a crash may bring it back" in str(refused.value)) != cut
        assert not ports.topics.topic_exists(T)
        disk.files = disk.files.reopened()
        ports = await disk.start()
        assert ports.topics.topic_exists(T) != cut

    on_disk(scenario)


def test_refusals_leave_nothing_that_waits_for_the_disk() -> None:
    async def scenario(disk: Disk, ports: BrokerPorts) -> None:
        disk.files.faults.capacity_bytes = 0
        for _ in range(5):
            with pytest.raises(PersistenceError):
                await ports.topics.create_topic(T, {"a": "b"})
        group = disk.broker.service.store.journal._group
        assert not group.records
        assert not group.kept
        assert not group.waiters
        disk.files.faults.capacity_bytes = None

    on_disk(scenario)


def test_who_asks_for_a_topic_at_once_with_its_creation_is_refused_with_it() -> None:
    async def scenario(disk: Disk, ports: BrokerPorts) -> None:
        disk.files.fail("sync")
        made = ports.subscriptions.create_subscription(T, "s", EARLIEST, {}, replicated=False)
        answers = await asyncio.gather(ports.topics.create_topic(T, {}), made, return_exceptions=True)
        assert [type(answer) for answer in answers] == [PersistenceError] * 2
        assert not ports.topics.topic_exists(T)

    on_disk(scenario)


@pytest.mark.parametrize("change", ["properties", "deletion", "subscription"])
def test_a_change_that_is_kept_until_the_disk_takes_it_is_not_called_refused(change: str) -> None:
    async def scenario(disk: Disk, ports: BrokerPorts) -> None:
        await ports.topics.create_topic(T, {})
        disk.files.fail("sync")
        if change == "properties":
            await ports.operations.set_topic_properties(T, {"a": "b"})
        elif change == "deletion":
            await ports.topics.delete_topic(T, force=False)
        else:
            await ports.subscriptions.create_subscription(T, "s", EARLIEST, {}, replicated=False)
            disk.files.fail("sync")
            await ports.subscriptions.set_replicated(T, "s", replicated=True)
        ports = await disk.restarted()
        assert ports.topics.topic_exists(T) == (change != "deletion")
        if change == "properties":
            assert ports.operations.topic_properties(T) == {"a": "b"}
        elif change == "subscription":
            assert ports.subscriptions.is_replicated(T, "s")

    on_disk(scenario)


def test_a_change_that_the_disk_does_not_take_in_time_is_said_to_be_open(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(disk: Disk, ports: BrokerPorts) -> None:
        await ports.topics.create_topic(T, {})
        monkeypatch.setattr("magnetar.admin.local_broker.loaded_topics._DURABLE_SECONDS", 0.3)
        disk.files.faults.capacity_bytes = 0
        with pytest.raises(PersistenceError, match="it may still become durable: look again"):
            await ports.operations.set_topic_properties(T, {"a": "b"})
        disk.files.faults.capacity_bytes = None

    on_disk(scenario)


def test_partitions_that_are_not_on_the_disk_are_said_to_come_later(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(disk: Disk, ports: BrokerPorts) -> None:
        resources = disk.broker.resources
        monkeypatch.setattr("magnetar.broker.namespaces.partition_creation.DURABLE_SECONDS", 0.3)
        await resources.partitioned.create(P, 3, {}, to_make=True)
        disk.files.faults.capacity_bytes = 0
        with pytest.raises(PersistenceError, match="is there with its 3 partitions") as refused:
            await ports.topics.create_partitions(P, 0, 3)
        assert "nothing" not in str(refused.value)
        disk.files.faults.capacity_bytes = None
        await disk.restarted()
        await disk.broker.service.partitions.finish()
        assert [partition.fqn for partition in disk.broker.service.partitions_of(P)] == [
            P.partition(index).fqn for index in range(3)
        ]

    on_disk(scenario)


def test_metadata_that_was_refused_is_as_it_was() -> None:
    async def scenario(disk: Disk, _: BrokerPorts) -> None:
        resources = disk.broker.resources
        disk.files.faults.capacity_bytes = 0
        with pytest.raises(MetadataError, match="nothing was changed"):
            await resources.partitioned.create(P, 3, {}, to_make=True)
        assert resources.partitioned.count(P) == 0
        disk.files.faults.capacity_bytes = None
        await disk.restarted()
        assert disk.broker.resources.partitioned.count(P) == 0

    on_disk(scenario)
