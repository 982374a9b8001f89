"""Compaction through REST and real sockets (rules 4.7.4, 4.7.5, 5.9.12, 5.9.13)."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from magnetar.model.errors import ServerError
from magnetar.protocol import commands as c
from magnetar.protocol.entries import (
    EntryMetadata,
    SingleMessageMetadata,
    build_entry,
    join_batch,
    metadata_of,
    split_batch,
)
from magnetar.testing.rawclient import RawClientError, RawConsumer, payload_of
from tests.admin.conftest import World
from tests.support.compacted_by_rest import URL, T, compact, finished, publish
from tests.support.real_broker import RealBroker, Scenario, real_broker

EARLIEST = c.MessageIdData(-1, -1)


def run(path: Path, scenario: Scenario, **settings: Any) -> None:
    async def on_a_broker() -> None:
        async with asyncio.timeout(60), real_broker(path, **settings) as broker:
            await scenario(broker)

    asyncio.run(on_a_broker())


async def reader(broker: RealBroker, name: str = "r", start: c.MessageIdData = EARLIEST, **options: Any) -> RawConsumer:
    client = await broker.client()
    wanted: dict[str, Any] = {"durable": False, "read_compacted": True, "start_message_id": start, **options}
    consumer = await client.subscribe(T, name, **wanted)
    consumer.flow(100)
    return consumer


async def take(consumer: RawConsumer, count: int) -> list[c.CommandMessage]:
    """Receive ``count`` messages and check that no other one follows."""
    got = [await consumer.receive() for _ in range(count)]
    consumer.client.say(c.CommandPing())
    await consumer.client.hear(c.CommandPong)
    await asyncio.sleep(0.05)
    assert not consumer.client.heard(c.CommandMessage)
    return got


def values(messages: list[c.CommandMessage]) -> list[str]:
    return [payload_of(message.entry).decode() for message in messages]


def test_the_last_value_of_each_key_under_its_own_id(tmp_path: Path) -> None:
    async def scenario(broker: RealBroker) -> None:
        ids = await publish(broker, ("a", "a1"), ("b", "b1"), ("a", "a2"), ("", "keyless"), ("c", "c1"))
        assert await broker.ask("GET", f"{URL}/compaction") == (200, {"status": "NOT_RUN", "lastError": ""})
        await compact(broker)
        consumer = await reader(broker)
        got = await take(consumer, 3)
        assert values(got) == ["b1", "a2", "c1"]
        assert [(m.message_id.ledger, m.message_id.entry) for m in got] == [
            (ids[i].ledger, ids[i].entry) for i in (1, 2, 4)
        ]
        after = await publish(broker, ("a", "a3"))
        assert values(await take(consumer, 1)) == ["a3"], "the log goes on after the horizon"
        last = (await consumer.last_message_id()).last_message_id
        assert (last.ledger, last.entry) == (after[0].ledger, after[0].entry)
        plain = await reader(broker, "plain", read_compacted=False)
        assert values(await take(plain, 6)) == ["a1", "b1", "a2", "keyless", "c1", "a3"]
        later = await reader(broker, "later", ids[2])
        assert values(await take(later, 3)) == ["a2", "c1", "a3"]
        await consumer.seek(ids[1])
        again = await reader(broker, "r", ids[1])
        assert values(await take(again, 4)) == ["b1", "a2", "c1", "a3"]
        stats = await broker.stats("t")
        assert stats["compaction"]["lastCompactionRemovedEventCount"] == 2
        assert stats["compaction"]["lastCompactionSucceedTimestamp"] > 0
        shown = stats["subscriptions"]["__compaction"]
        assert (shown["type"], shown["msgBacklog"], shown["subscriptionProperties"]) == ("Exclusive", 1, {})
        _, inside = await broker.ask("GET", f"{URL}/internalStats")
        ledger = inside["compactedLedger"]
        assert ledger["entries"] == 3
        _, metrics = await broker.ask("GET", "/metrics")
        label = f'cluster="standalone",namespace="public/default",topic="{T}"'
        assert f"pulsar_compaction_compacted_entries_count{{{label}}} 3\n" in metrics
        assert f"pulsar_compaction_succeed_count{{{label}}} 1\n" in metrics
        assert inside["cursors"]["__compaction"]["properties"] == {"CompactedTopicLedger": ledger["ledgerId"]}

    run(tmp_path, scenario)


def test_a_durable_consumer_survives_a_restart(tmp_path: Path) -> None:
    async def before(broker: RealBroker) -> None:
        await publish(broker, *[(f"k{i % 4}", f"{i}") for i in range(40)])
        await compact(broker)
        client = await broker.client()
        consumer = await client.subscribe(T, "d", read_compacted=True, initial_position=c.InitialPosition.Earliest)
        consumer.flow(100)
        got = await take(consumer, 4)
        assert values(got) == ["36", "37", "38", "39"]
        await consumer.ack(got[1].message_id, cumulative=True)
        assert (await broker.ask("PUT", f"{URL}/unload"))[0] == 204

    async def after(broker: RealBroker) -> None:
        client = await broker.client()
        consumer = await client.subscribe(T, "d", c.SubType.Failover, read_compacted=True)
        consumer.flow(100)
        assert values(await take(consumer, 2)) == ["38", "39"]
        _, answer = await broker.ask("GET", f"{URL}/compaction")
        assert answer["status"] == "NOT_RUN"

    run(tmp_path, before)
    run(tmp_path, after)


def test_batches_keep_the_places_of_their_messages(tmp_path: Path) -> None:
    async def scenario(broker: RealBroker) -> None:
        client = await broker.client()
        producer = await client.producer(T)
        inside = [("a", b"1"), ("b", b"1"), (None, b"keyless"), ("a", b"2"), ("b", b"")]
        payload = join_batch((SingleMessageMetadata(partition_key=key), value) for key, value in inside)
        entry = build_entry(EntryMetadata("p", 0, 1, num_messages_in_batch=len(inside)), payload)
        await producer.receipt(producer.send(b"", entry=entry, count=len(inside)))
        await compact(broker)
        consumer = await reader(broker)
        (got,) = await take(consumer, 1)
        metadata = metadata_of(got.entry)
        assert (metadata.num_messages_in_batch, metadata.uncompressed_size) == (5, len(payload_of(got.entry)))
        found = split_batch(payload_of(got.entry), 5)
        assert [(s.partition_key, s.compacted_out, value) for s, value in found] == [
            (None, True, b""), (None, True, b""), (None, True, b""), ("a", False, b"2"), (None, True, b""),
        ]  # fmt: skip
        assert (await consumer.last_message_id()).last_message_id.batch_index == 3

    run(tmp_path, scenario)


def test_keyless_messages_stay_if_the_setting_keeps_them(tmp_path: Path) -> None:
    async def scenario(broker: RealBroker) -> None:
        await publish(broker, ("a", "1"), ("", "x"), ("a", "2"), ("", "y"))
        await compact(broker)
        assert values(await take(await reader(broker), 3)) == ["x", "2", "y"]

    run(tmp_path, scenario, topicCompactionRetainNullKey=True)


def test_a_threshold_begins_a_run(tmp_path: Path) -> None:
    async def scenario(broker: RealBroker) -> None:
        namespace = "/admin/v2/namespaces/public/default/compactionThreshold"
        await publish(broker, ("a", "1"))
        assert (await broker.ask("PUT", namespace, 500))[0] == 204
        assert "__compaction" in (await broker.stats("t"))["subscriptions"], "nothing is trimmed from now on"
        await asyncio.sleep(1.5)
        _, answer = await broker.ask("GET", f"{URL}/compaction")
        assert answer["status"] == "NOT_RUN", "still below the threshold"
        await publish(broker, *[(f"k{i % 2}", f"{i:0100}") for i in range(10)])
        for _ in range(200):
            if (await broker.ask("GET", f"{URL}/compaction"))[1]["status"] != "NOT_RUN":
                break
            await asyncio.sleep(0.05)
        await finished(broker)
        await compact(broker)  # that one may have begun while messages still came
        assert values(await take(await reader(broker), 3)) == ["1", f"{8:0100}", f"{9:0100}"]

    run(tmp_path, scenario, brokerServiceCompactionMonitorIntervalInSeconds=1)


def test_deleting_the_topic_deletes_the_view(tmp_path: Path) -> None:
    async def scenario(broker: RealBroker) -> None:
        await publish(broker, ("a", "1"))
        await compact(broker)
        names = broker.node.broker.store.names
        assert [name for name in names() if name.startswith("internal://compacted/")]
        assert (await broker.ask("DELETE", f"{URL}?force=true"))[0] == 204
        assert not [name for name in names() if name.startswith("internal://compacted/")]

    run(tmp_path, scenario)


def test_read_compacted_is_refused_for_shared_subscriptions(tmp_path: Path) -> None:
    async def scenario(broker: RealBroker) -> None:
        client = await broker.client()
        for kind in (c.SubType.Shared, c.SubType.Key_Shared):
            with pytest.raises(RawClientError) as refused:
                await client.subscribe(T, "s", kind, read_compacted=True)
            assert refused.value.code is ServerError.NotAllowedError
            assert refused.value.message == "readCompacted only allowed on failover or exclusive subscriptions"

    run(tmp_path, scenario)


def test_refusals_are_those_of_pulsar(own_world: World) -> None:
    """Compaction is refused with the statuses and reasons that were observed on Apache Pulsar 4.0.8."""
    rest, base = own_world.rest, "/admin/v2/persistent/ref/main"
    for method in ("GET", "PUT"):
        missing = rest.request(method, f"{base}/nope/compaction")
        assert (missing.status_code, missing.json()["reason"]) == (404, "Topic persistent://ref/main/nope not found")
    assert rest.request("PUT", f"{base}/t").status_code == 204
    assert rest.request("GET", f"{base}/t/compaction").json() == {"status": "NOT_RUN", "lastError": ""}
    assert rest.request("PUT", f"{base}/t/compaction").status_code == 204
    again = rest.request("PUT", f"{base}/t/compaction")
    assert (again.status_code, again.json()["reason"]) == (409, "Compaction already in progress")
    assert rest.request("PUT", f"{base}/p/partitions", json=2).status_code == 204
    assert rest.request("PUT", f"{base}/p/compaction").status_code == 204
    assert [topic.local_name for topic in own_world.broker.compacting] == ["t", "p-partition-0", "p-partition-1"]
    assert rest.request("GET", f"{base}/p/compaction").status_code == 404


def test_clearing_the_backlog_of_a_namespace_keeps_the_cursor_of_compaction(tmp_path: Path) -> None:
    """The cursor of compaction moves only if its subscription is named in the request."""

    async def scenario(broker: RealBroker) -> None:
        await publish(broker, ("a", "a1"))
        await compact(broker)
        await publish(broker, ("b", "b1"))
        namespace = "/admin/v2/namespaces/public/default/clearBacklog"
        assert (await broker.ask("POST", namespace))[0] == 204
        assert (await broker.stats("t"))["subscriptions"]["__compaction"]["msgBacklog"] == 1
        assert (await broker.ask("POST", f"{namespace}/__compaction"))[0] == 204
        assert (await broker.stats("t"))["subscriptions"]["__compaction"]["msgBacklog"] == 0

    run(tmp_path, scenario)


def test_a_truncated_topic_announces_its_compacted_view(tmp_path: Path) -> None:
    """Truncating lets go of the log; what the view keeps is announced as long as it can be read (rule 5.9.12)."""

    async def scenario(broker: RealBroker) -> None:
        ids = await publish(broker, ("a", "a1"), ("b", "b1"))
        await compact(broker)
        await publish(broker, ("a", "a2"))
        assert (await broker.ask("DELETE", f"{URL}/truncate"))[0] == 204
        for unloaded in (False, True):
            if unloaded:
                assert (await broker.ask("PUT", f"{URL}/unload"))[0] == 204
            consumer = await reader(broker, f"r{unloaded}")
            assert values(await take(consumer, 2)) == ["a1", "b1"]
            last = (await consumer.last_message_id()).last_message_id
            assert (last.ledger, last.entry) == (ids[1].ledger, ids[1].entry)
            plain = await reader(broker, f"p{unloaded}", read_compacted=False)
            last = (await plain.last_message_id()).last_message_id
            assert (last.ledger, last.entry) == (-1, -1), "the log itself has none"

    run(tmp_path, scenario)
