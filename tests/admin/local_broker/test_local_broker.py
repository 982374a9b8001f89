"""The REST interface on the real broker: its changes are seen by clients and survive a restart (rules 11.4, 11.5)."""

from __future__ import annotations

import asyncio
from pathlib import Path
from random import Random
from typing import Any

import pytest

from magnetar.admin.local_broker.broker import local_ports
from magnetar.app.node import Broker
from magnetar.config.settings import Settings
from magnetar.model.errors import PersistenceError
from magnetar.model.names import TopicName
from magnetar.protocol import commands as c
from magnetar.protocol.entries import EntryMetadata, SingleMessageMetadata, build_entry, join_batch
from magnetar.runtime.clock import SystemClock
from magnetar.testing.faultfiles import FaultFileSystem
from magnetar.testing.memory_metadata import MemoryMetadataStore
from magnetar.testing.rawclient import RawConsumer, payload_of
from tests.support.real_broker import TOPIC, RealBroker, real_broker, run_on_broker

T = "persistent://public/default/t"
URL = f"{TOPIC}/t"


async def publish(broker: RealBroker, *payloads: bytes, times: tuple[int, ...] = ()) -> list[c.MessageIdData]:
    client = await broker.client()
    producer = await client.producer(T)
    ids = []
    for i, payload in enumerate(payloads):
        metadata = EntryMetadata("p", i, times[i] if times else 1)
        got = (await producer.receipt(producer.send(b"", entry=build_entry(metadata, payload)))).message_id
        assert got is not None
        ids.append(got)
    await client.close()
    return ids


async def consume(broker: RealBroker, subscription: str = "s", **options: Any) -> RawConsumer:
    client = await broker.client()
    consumer = await client.subscribe(T, subscription, **options)
    consumer.flow(100)
    return consumer


async def receives(consumer: RawConsumer, *payloads: bytes) -> None:
    """Check that the consumer receives exactly these payloads, in this order."""
    got = [payload_of((await consumer.receive()).entry) for _ in payloads]
    await consumer.client.lookup(T)
    assert (got, consumer.client.heard(c.CommandMessage)) == ([*payloads], [])


def test_partitions_are_made_grown_and_kept(tmp_path: Path) -> None:
    async def make(broker: RealBroker) -> None:
        assert (await broker.ask("PUT", URL + "/partitions", 2))[0] == 204
        assert (await broker.ask("PUT", URL + "-partition-0/subscription/s"))[0] == 204
        assert (await broker.ask("PUT", URL + "/partitions", 2))[0] == 409
        assert (await broker.ask("POST", URL + "/partitions", 4))[0] == 204
        for index in range(4):
            producer = await (await broker.client()).producer(f"{T}-partition-{index}")
            await producer.publish(b"m")

    async def look(broker: RealBroker) -> None:
        assert await broker.ask("GET", URL + "/partitions") == (200, {"partitions": 4, "deleted": False})
        assert (await (await broker.client()).partitions(T)).partitions == 4
        listed = (await broker.ask("GET", TOPIC))[1]
        assert listed == [f"{T}-partition-{index}" for index in range(4)]
        for index in range(4):
            _, names = await broker.ask("GET", f"{URL}-partition-{index}/subscriptions")
            # new partitions have the subscriptions of the first one, from their start (rule 2.14)
            assert names == (["s"] if index != 1 else [])
        stats = (await broker.ask("GET", URL + "/partitioned-stats"))[1]
        assert stats["subscriptions"]["s"]["msgBacklog"] == 3
        assert (await broker.ask("DELETE", URL + "/partitions"))[0] == 204
        assert (await broker.ask("GET", TOPIC))[1] == []

    run_on_broker(tmp_path, make)
    run_on_broker(tmp_path, look)


@pytest.mark.parametrize("aggregated", [True, False])
def test_producers_of_one_name_are_shown_as_one_where_that_is_asked_for(tmp_path: Path, aggregated: bool) -> None:
    """aggregatePublisherStatsByProducerName, for clients that say they open partitions when they use them."""

    async def scenario(broker: RealBroker) -> None:
        assert (await broker.ask("PUT", URL + "/partitions", 2))[0] == 204
        client = await broker.client(feature_flags=c.FeatureFlags(supports_partial_producer=True))
        await client.producer(f"{T}-partition-0", "b")
        await client.producer(f"{T}-partition-0", "a")
        await client.producer(f"{T}-partition-1", "b")
        stats = (await broker.ask("GET", URL + "/partitioned-stats?perPartition=true"))[1]
        shown = [(one.get("producerName"), one["supportsPartialProducer"]) for one in stats["publishers"]]
        assert shown == ([("a", True), ("b", True)] if aggregated else [(None, False)] * 2)
        (single,) = stats["partitions"][f"{T}-partition-1"]["publishers"]
        assert (single["producerName"], single["supportsPartialProducer"]) == ("b", aggregated)

    run_on_broker(tmp_path, scenario, aggregatePublisherStatsByProducerName=aggregated)


def test_unload_lets_clients_go_and_loses_nothing(tmp_path: Path) -> None:
    async def scenario(broker: RealBroker) -> None:
        consumer = await consume(broker)
        producer = await (await broker.client()).producer(T)
        ids = [await producer.publish(b"%d" % number) for number in range(4)]
        await receives(consumer, b"0", b"1", b"2", b"3")
        await consumer.ack(ids[1])
        assert (await broker.ask("PUT", URL + "/unload"))[0] == 204
        assert (await consumer.client.hear(c.CommandCloseConsumer)).consumer_id == consumer.consumer_id
        assert (await producer.client.hear(c.CommandCloseProducer)).producer_id == producer.producer_id
        # asking for statistics loads the topic again; its counters begin anew, its messages are there
        stats = await broker.stats("t")
        assert (stats["msgInCounter"], stats["subscriptions"]["s"]["msgBacklog"]) == (0, 3)
        again = await consume(broker)
        await receives(again, b"0", b"2", b"3")
        assert (await publish(broker, b"4"))[0] > ids[-1]
        await receives(again, b"4")

    run_on_broker(tmp_path, scenario)


def test_delete_refuses_while_a_client_is_connected_unless_forced(tmp_path: Path) -> None:
    async def scenario(broker: RealBroker) -> None:
        consumer = await consume(broker)
        await publish(broker, b"m")
        assert (await broker.ask("DELETE", URL))[0] == 412
        assert (await broker.ask("DELETE", URL + "?force=true"))[0] == 204
        assert (await consumer.client.hear(c.CommandCloseConsumer)).consumer_id == consumer.consumer_id
        assert (await broker.ask("GET", URL + "/stats"))[0] == 404

    async def later(broker: RealBroker) -> None:
        assert (await broker.ask("GET", URL + "/stats"))[0] == 404

    run_on_broker(tmp_path, scenario)
    run_on_broker(tmp_path, later)


def test_subscriptions_begin_at_the_given_position(tmp_path: Path) -> None:
    async def make(broker: RealBroker) -> None:
        ids = await publish(broker, b"0", b"1", b"2", b"3")
        for name, start in (
            ("latest", None),
            ("earliest", "earliest"),
            ("second", {"ledgerId": ids[1].ledger, "entryId": 1}),
        ):
            assert (await broker.ask("PUT", f"{URL}/subscription/{name}", start))[0] == 204
        assert (await broker.ask("PUT", URL + "/subscription/latest"))[0] == 409

    async def look(broker: RealBroker) -> None:
        await receives(await consume(broker, "latest"))
        await receives(await consume(broker, "earliest"), b"0", b"1", b"2", b"3")
        second = await consume(broker, "second")
        await receives(second, b"1", b"2", b"3")
        assert (await broker.ask("DELETE", URL + "/subscription/second"))[0] == 412
        assert (await broker.ask("DELETE", URL + "/subscription/second?force=true"))[0] == 204
        assert (await broker.ask("GET", URL + "/subscriptions"))[1] == ["latest", "earliest"]

    run_on_broker(tmp_path, make)
    run_on_broker(tmp_path, look)


def test_skipping_and_resetting(tmp_path: Path) -> None:
    """Messages are skipped by number or altogether, and a cursor is reset to a time or an id (rule 11.5.2)."""

    async def scenario(broker: RealBroker) -> None:
        times = (1_000, 2_000, 3_000, 4_000, 5_000)
        consumer = await consume(broker)
        ids = await publish(broker, *[b"%d" % number for number in range(5)], times=times)
        await consumer.ack(ids[1])
        await consumer.close()
        sub = URL + "/subscription/s"
        # of what is not acknowledged: 0 and 2
        assert (await broker.ask("POST", sub + "/skip/2"))[0] == 204
        consumer = await consume(broker)
        await receives(consumer, b"3", b"4")
        assert (await broker.ask("POST", sub + "/skip_all"))[0] == 204
        assert (await broker.stats("t"))["subscriptions"]["s"]["msgBacklog"] == 0
        assert (await broker.ask("POST", sub + "/resetcursor/2500"))[0] == 204
        await consumer.client.hear(c.CommandCloseConsumer)
        await receives(await consume(broker), b"2", b"3", b"4")
        assert (await broker.ask("POST", URL + "/subscription/nobody/skip_all"))[0] == 404
        found = (await broker.ask("GET", URL + "/messageid/3500"))[1]
        assert (found["ledgerId"], found["entryId"]) == (ids[3].ledger, ids[3].entry)

    run_on_broker(tmp_path, scenario)


def test_last_message_id_knows_the_batch(tmp_path: Path) -> None:
    """The id of the last message of a batch has the index of that message and the size of the batch (rule 3.5.6)."""

    async def scenario(broker: RealBroker) -> None:
        assert (await broker.ask("PUT", URL))[0] == 204
        nothing = (await broker.ask("GET", URL + "/lastMessageId"))[1]
        assert nothing["entryId"] == -1
        producer = await (await broker.client()).producer(T)
        batch = join_batch([(SingleMessageMetadata(), b"x")] * 3)
        entry = build_entry(EntryMetadata("p", 0, 1, num_messages_in_batch=3), batch)
        got = (await producer.receipt(producer.send(b"", entry=entry, count=3))).message_id
        assert got is not None
        assert (await broker.ask("GET", URL + "/lastMessageId"))[1] == {
            "ledgerId": got.ledger, "entryId": got.entry, "partitionIndex": -1, "batchIndex": 2, "batchSize": 3,
        }  # fmt: skip
        stats = await broker.stats("t")
        assert (stats["msgInCounter"], stats["storageSize"]) == (3, len(entry))

    run_on_broker(tmp_path, scenario)


def test_earliest_publish_times_are_read_when_asked_for(tmp_path: Path) -> None:
    async def scenario(broker: RealBroker) -> None:
        consumer = await consume(broker)
        ids = await publish(broker, b"0", b"1", b"2", times=(1_000, 2_000, 3_000))
        await consumer.ack(ids[0])
        plain = await broker.stats("t")
        asked = await broker.stats(
            "t", "?getEarliestTimeInBacklog=true&subscriptionBacklogSize=false&excludeConsumers=true"
        )
        name = "earliestMsgPublishTimeInBacklog"
        assert (plain["subscriptions"]["s"][name], plain[name + "s"]) == (0, 0)
        assert (asked["subscriptions"]["s"][name], asked[name + "s"]) == (2_000, 2_000)
        assert (plain["subscriptions"]["s"]["backlogSize"], asked["subscriptions"]["s"]["backlogSize"]) == (
            plain["storageSize"] * 2 // 3,
            -1,
        )
        assert (len(plain["subscriptions"]["s"]["consumers"]), asked["subscriptions"]["s"]["consumers"]) == (1, [])

    run_on_broker(tmp_path, scenario)


def test_properties_of_a_topic_and_health_survive_a_restart(tmp_path: Path) -> None:
    async def make(broker: RealBroker) -> None:
        assert (await broker.ask("PUT", URL, {"a": "b"}))[0] == 204
        for _ in range(3):
            assert await broker.ask("GET", "/admin/v2/brokers/health") == (200, "ok")

    async def look(broker: RealBroker) -> None:
        topic = broker.node.broker.service.find(TopicName.parse(T))
        assert topic is not None
        assert topic.properties() == {"a": "b"}
        assert await broker.ask("GET", "/admin/v2/brokers/health") == (200, "ok")
        # health needs a log of its own, which is no topic
        assert (await broker.ask("GET", TOPIC))[1] == [T]
        assert (await broker.ask("GET", "/admin/v2/namespaces/pulsar/system/topics"))[1] == []

    run_on_broker(tmp_path, make)
    run_on_broker(tmp_path, look)


def test_metrics_of_the_journal(tmp_path: Path) -> None:
    async def scenario(broker: RealBroker) -> None:
        await publish(broker, b"x" * 10_000, b"y" * 10_000)
        metrics = (await broker.ask("GET", "/metrics"))[1]
        values = {
            line.partition("{")[0]: float(line.rpartition(" ")[2]) for line in metrics.splitlines() if line[0] != "#"
        }
        journal = broker.node.broker.store.journal
        assert values["magnetar_journal_written_bytes_total"] == journal.bytes_written == journal.length > 20_000
        assert values["magnetar_journal_syncs_total"] >= 2
        assert values["magnetar_journal_sync_data"] == 1
        assert values["pulsar_ml_cache_used_size"] > 20_000
        assert values["pulsar_in_messages_total"] == 2

    run_on_broker(tmp_path, scenario)


def test_metrics_show_receipts_without_sync(tmp_path: Path) -> None:
    async def run() -> None:
        async with real_broker(tmp_path, journalSyncData=False) as broker:
            await publish(broker, b"m")
            metrics = (await broker.ask("GET", "/metrics"))[1]
            assert 'magnetar_journal_sync_data{cluster="standalone"} 0' in metrics
            assert 'magnetar_journal_syncs_total{cluster="standalone"} 0' in metrics

    asyncio.run(run())


def test_health_fails_while_the_disk_refuses_and_recovers() -> None:
    async def run() -> None:
        files, settings = FaultFileSystem(Random(1)), Settings()
        broker = Broker(files, MemoryMetadataStore(), settings, SystemClock(), Random(1))
        await broker.start()
        broker.service.service_url = "pulsar://broker:6650"
        ports = local_ports(broker.service, broker.rates, broker.connections)

        def failing() -> list[float]:
            return [one.value for one in ports.broker.measurements() if one.family == "magnetar_journal_failing"]

        await ports.broker.check_health(with_cluster=False)
        files.fail("sync", times=2)
        with pytest.raises(PersistenceError, match="nothing of it was accepted"):
            await ports.broker.check_health(with_cluster=False)
        assert failing() == [1]
        with pytest.raises(PersistenceError):
            await ports.topics.create_topic(TopicName.parse(T), {})
        await ports.broker.check_health(with_cluster=False)
        assert failing() == [0]
        await broker.stop()

    asyncio.run(run())
