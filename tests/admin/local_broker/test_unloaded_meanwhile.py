"""Requests that wait for the disk while their topic is unloaded under them."""

from __future__ import annotations

import asyncio
from pathlib import Path

from magnetar.admin.local_broker.broker import local_ports
from magnetar.admin.local_broker.loaded_topics import LoadedTopics
from magnetar.admin.local_broker.statistics import LocalStatistics
from magnetar.admin.local_broker.topic_operations import LocalTopicOperations
from magnetar.admin.ports import StatsOptions
from magnetar.admin.values.counters import CounterOptions
from magnetar.model.names import TopicName
from magnetar.protocol.entries import EntryMetadata, build_entry
from tests.support.real_broker import TOPIC, RealBroker, run_on_broker

T = "persistent://public/default/t"
URL = f"{TOPIC}/t"


async def publish(broker: RealBroker) -> None:
    client = await broker.client()
    producer = await client.producer(T)
    await producer.receipt(producer.send(b"", entry=build_entry(EntryMetadata("p", 0, 1000), b"1")))
    await client.close()


def test_truncating_goes_on_with_the_topic_that_was_loaded_again(tmp_path: Path) -> None:
    async def scenario(broker: RealBroker) -> None:
        service, name = broker.node.broker.service, TopicName.parse(T)
        assert (await broker.ask("PUT", f"{URL}/subscription/s"))[0] == 204
        await publish(broker)
        topic = service.find(name)
        assert topic is not None
        topic.log.write_birth()  # something to wait for
        waiting = asyncio.create_task(LocalTopicOperations(LoadedTopics(service)).truncate(name))
        await asyncio.sleep(0)
        assert not waiting.done()
        service.unload(name)
        await waiting
        stats = await broker.stats("t")
        assert (stats["subscriptions"]["s"]["msgBacklog"], stats["storageSize"]) == (0, 0)

    run_on_broker(tmp_path, scenario)


def test_compaction_begins_on_the_topic_that_was_loaded_again(tmp_path: Path) -> None:
    """A run of a closed topic would never be ended by it."""

    async def scenario(broker: RealBroker) -> None:
        service, name = broker.node.broker.service, TopicName.parse(T)
        made = service.create(name)
        waiting = asyncio.create_task(LocalTopicOperations(LoadedTopics(service)).compact_topic(name))
        await asyncio.sleep(0)
        assert not waiting.done()
        service.unload(name)
        await waiting
        now = service.find(name)
        assert made.compactor is None and now is not None and now.compactor is not None

    run_on_broker(tmp_path, scenario)


def test_statistics_outlive_an_unload_while_they_read(tmp_path: Path) -> None:
    """The publish time of the oldest message is read from the disk; the topic may be unloaded meanwhile."""

    async def scenario(broker: RealBroker) -> None:
        service, name = broker.node.broker.service, TopicName.parse(T)
        assert (await broker.ask("PUT", f"{URL}/subscription/s"))[0] == 204
        await publish(broker)
        topic = service.find(name)
        assert topic is not None
        service.store.cache.clear(topic.log.cached_runs)
        options = StatsOptions(earliest_time_in_backlog=True)
        waiting = asyncio.create_task(
            LocalStatistics(LoadedTopics(service), broker.node.broker.rates).topic_stats(name, options)
        )
        await asyncio.sleep(0)
        assert not waiting.done()
        service.unload(name)
        stats = await waiting
        assert stats["earliestMsgPublishTimeInBacklogs"] == 1000

    run_on_broker(tmp_path, scenario)


def test_counters_leave_out_topics_that_are_gone_by_their_turn(tmp_path: Path) -> None:
    """A scrape of /metrics takes many turns of the loop; without this its answer broke off in the middle."""

    async def scenario(broker: RealBroker) -> None:
        service = broker.node.broker.service
        stored = [TopicName.parse(f"persistent://public/default/{one}") for one in "ab"]
        nonpersistent = TopicName.parse("non-persistent://public/default/c")
        client = await broker.client()
        for name in (*stored, nonpersistent):
            await client.producer(name.fqn)
        ports = local_ports(service, broker.node.broker.rates, broker.node.broker.connections)
        counted = ports.broker.counters(CounterOptions(cursors=True))
        first = await anext(counted)
        for name in stored:
            service.unload(name)
        service.nonpersistent_topics.remove(nonpersistent)
        assert [first.topic, *[one.topic async for one in counted]] == [first.topic]

    run_on_broker(tmp_path, scenario)
