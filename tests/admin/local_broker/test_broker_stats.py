"""broker-stats on a real broker, in the shapes of Apache Pulsar (rule 11.2.5)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from magnetar.protocol.commands import SubType
from tests.support.real_broker import RealBroker, run_on_broker

T = "persistent://public/default/t"
STATS = "/admin/v2/broker-stats"


async def work(broker: RealBroker) -> None:
    client = await broker.client()
    producer = await client.producer(T)
    consumer = await client.subscribe(T, "s")
    await producer.publish(b"12345")
    consumer.flow(1)
    await consumer.receive()
    await client.subscribe("non-persistent://public/default/np", "n")
    await broker.node.broker.rates.look()


def group(found: Any, **dimensions: str) -> dict[str, Any]:
    return {
        name: number
        for one in found
        if one["dimensions"].items() >= dimensions.items()
        for name, number in one["metrics"].items()
    }


def test_numbers_topics_and_the_load_report(tmp_path: Path) -> None:
    async def scenario(broker: RealBroker) -> None:
        await work(broker)
        status, found = await broker.ask("GET", f"{STATS}/metrics")
        assert status == 200
        mine = group(found, namespace="public/default")
        assert mine["brk_no_of_producers"] == mine["brk_msg_backlog"] == mine["brk_ml_AddEntrySucceed"] == 1
        assert mine["brk_in_rate"] > 0
        assert sum(mine[name] for name in mine if name.startswith("brk_AddEntryLatencyBuckets_")) == 1
        assert mine["brk_ml_EntrySizeBuckets_0.0_128.0"] == 1
        assert group(found, metric="broker_connection")["brk_active_connections"] == 1
        assert group(found, metric="pulsar_topic_load_times")["brk_topic_load_time_mean_ms"] > 0
        assert found[0]["metrics"]["brk_ml_count"] == 1

        topics = (await broker.ask("GET", f"{STATS}/topics"))[1]["public/default"]
        domains = {domain: one for bundle in topics.values() for domain, one in bundle.items()}
        shown = domains["persistent"][T]
        assert (shown["msgInCount"], shown["msgOutCount"], shown["producerCount"]) == (1, 1, 1)
        assert shown["publishers"][0]["producerName"]
        assert (shown["subscriptions"]["s"]["msgBacklog"], shown["subscriptions"]["s"]["type"]) == (1, "Exclusive")
        assert "unackedMessages" not in shown["subscriptions"]["s"]
        assert domains["non-persistent"]["non-persistent://public/default/np"]["subscriptions"]["n"]["msgDropRate"] == 0

        report = (await broker.ask("GET", f"{STATS}/load-report"))[1]
        assert report["numTopics"] == 2
        assert report["cpu"]["usage"] > 0
        assert 0 < report["memory"]["usage"] < report["memory"]["limit"]
        assert sum(one["topics"] for one in report["lastStats"].values()) == 2
        assert report["pulsarServiceUrl"] == broker.node.broker.service.service_url

    run_on_broker(tmp_path, scenario)


def test_topics_have_what_only_the_older_json_shows(tmp_path: Path) -> None:
    """How far a subscription has read beyond what it acknowledged, and in how many pieces: Pulsar Manager asks."""

    async def scenario(broker: RealBroker) -> None:
        client = await broker.client()
        producer = await client.producer(T)
        consumer = await client.subscribe(T, "s", SubType.Shared)
        for _ in range(5):
            await producer.publish(b"m")
        consumer.flow(4)
        received = [await consumer.receive() for _ in range(4)]
        await consumer.ack(received[1].message_id, received[3].message_id)
        await client.subscribe("non-persistent://public/default/np", "n")
        topics = (await broker.ask("GET", f"{STATS}/topics"))[1]["public/default"]
        domains = {domain: one for bundle in topics.values() for domain, one in bundle.items()}
        shown = domains["persistent"][T]
        subscription = shown["subscriptions"]["s"]
        assert subscription["numberOfEntriesSinceFirstNotAckedMessage"] == 5
        assert subscription["totalNonContiguousDeletedMessagesRange"] == 2
        assert (shown["pendingAddEntriesCount"], shown["filteredEntriesCount"]) == (0, 0)
        unstored = domains["non-persistent"]["non-persistent://public/default/np"]
        assert unstored["filteredEntriesCount"] == 0
        assert "pendingAddEntriesCount" not in unstored
        stats = (await broker.ask("GET", "/admin/v2/persistent/public/default/t/stats"))[1]
        assert "pendingAddEntriesCount" not in stats
        assert "numberOfEntriesSinceFirstNotAckedMessage" not in stats["subscriptions"]["s"]

    run_on_broker(tmp_path, scenario)


def test_producers_are_left_out_if_a_setting_says_so_and_no_topics_are_an_empty_object(tmp_path: Path) -> None:
    async def scenario(broker: RealBroker) -> None:
        await broker.node.broker.store.journal.drain()
        assert (await broker.ask("GET", f"{STATS}/topics"))[1] == {}
        await work(broker)
        topics = (await broker.ask("GET", f"{STATS}/topics"))[1]["public/default"]
        shown = next(bundle["persistent"][T] for bundle in topics.values() if "persistent" in bundle)
        assert (shown["publishers"], shown["msgInCount"]) == ([], 1)

    run_on_broker(tmp_path, scenario, exposePublisherStats=False)


@pytest.mark.parametrize(
    ("path", "status", "word"),
    [
        ("mbeans", 501, "a Java virtual machine"),
        ("allocator-stats/default", 501, "Netty"),
        ("bookieops", 501, "bookies"),
        ("broker-resource-availability/public/default", 409, "does not support this operation"),
    ],
)
def test_what_only_java_has_is_refused_by_name(shared_world: Any, path: str, status: int, word: str) -> None:
    answered = shared_world.rest.get(f"{STATS}/{path}")
    assert answered.status_code == status
    assert word in answered.json()["reason"]
