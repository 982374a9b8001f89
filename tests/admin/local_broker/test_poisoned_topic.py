"""Entries that cannot be parsed are stored between others, each with its receipt: everything of the topic goes on.

Any producer can store them, as in Apache Pulsar: the broker does not parse what it stores.
"""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from magnetar.broker.topic.cleanup.expiry import expire
from magnetar.broker.topic.cleanup.retention import apply_retention
from magnetar.model.names import TopicName
from magnetar.protocol import commands as c
from magnetar.protocol.compression import CompressionType
from magnetar.protocol.entries import EntryMetadata, build_entry
from magnetar.protocol.frames import with_checksum
from magnetar.testing.rawclient import RawClient, RawConsumer, make_entry, payload_of
from tests.support.real_broker import TOPIC, RealBroker, message_over_rest, run_on_broker

NAME = TopicName.parse("persistent://public/default/t")
URL = f"{TOPIC}/t"
OLD = 1_700_000_000_000


def claiming(metadata: bytes, payload: bytes = b"rest") -> bytes:
    return with_checksum(len(metadata).to_bytes(4, "big") + metadata + payload)


POISON = {
    "no protobuf": claiming(b"\xff" * 20),
    "nothing at all": claiming(b""),
    "a field is missing": claiming(b"\x0a\x01p"),
    "a length that ends after the entry": claiming(b"\x0a\x7fp"),
    "a batch that is none": build_entry(EntryMetadata("p", 1, OLD, num_messages_in_batch=(1 << 31) - 1), b"x"),
    "a negative batch": build_entry(EntryMetadata("p", 1, OLD, num_messages_in_batch=-1), b"x"),
    "four gigabytes": build_entry(
        EntryMetadata("p", 1, OLD, compression=CompressionType.LZ4, uncompressed_size=(1 << 32) - 1), b"x"
    ),
    "four gigabytes of a batch": build_entry(
        EntryMetadata("p", 1, OLD, compression=CompressionType.ZSTD, uncompressed_size=(1 << 32) - 1,
                      num_messages_in_batch=5), b"x",
    ),
    "not what it is packed with": build_entry(
        EntryMetadata("p", 1, OLD, compression=CompressionType.SNAPPY, uncompressed_size=100), b"x" * 50
    ),
    "delivery at the end of time": build_entry(EntryMetadata("p", 1, OLD, deliver_at_time=-(1 << 63)), b"x"),
    "a chunk of none": build_entry(
        EntryMetadata("p", 1, OLD, uuid="u", chunk_id=-5, num_chunks_from_msg=(1 << 31) - 1, total_chunk_msg_size=-1),
        b"x",
    ),
}  # fmt: skip
UNREADABLE = list(POISON)[:4]


async def fill(broker: RealBroker, client: RawClient, *entries: bytes) -> list[c.MessageIdData]:
    """Publish ``entries``; each has its receipt."""
    producer = await client.producer(NAME.fqn)
    ids = []
    for i, entry in enumerate(entries):
        receipt = await producer.receipt(producer.send(b"", sequence_id=i, entry=entry, count=2 if i % 2 else 1))
        assert receipt.message_id is not None
        ids.append(receipt.message_id)
    await producer.close()
    return ids


def good(number: int, published_ms: int) -> bytes:
    return make_entry(b"%d" % number, producer="p", sequence_id=number, publish_time_ms=published_ms)


@pytest.mark.parametrize("where", ["front", "middle", "end"])
def test_expiry_goes_past_unreadable_entries(tmp_path: Path, where: str) -> None:
    async def scenario(broker: RealBroker) -> None:
        client = await broker.client()
        assert (await broker.ask("PUT", f"{URL}/subscription/s", "earliest"))[0] == 204
        old, young = [good(i, OLD) for i in range(3)], [good(9, int(time.time() * 1000))]
        bad = [POISON[kind] for kind in UNREADABLE]
        entries = {"front": [*bad, *old, *young], "middle": [*old, *bad, *old, *young], "end": [*old, *bad, *young]}
        await fill(broker, client, *entries[where])
        status, _ = await broker.ask("POST", f"{URL}/subscription/s/expireMessages/100")
        assert status == 204
        subscription = broker.node.broker.service.topics[NAME.fqn].subscriptions["s"]
        left = {"front": 1, "middle": 1, "end": 1 + len(bad)}[where]  # their age is unknown
        assert subscription.cursor.backlog() == left
        assert await expire(subscription, 1 << 62) == left

    run_on_broker(tmp_path, scenario)


def test_an_unreadable_last_entry_expires_with_its_ledger(tmp_path: Path) -> None:
    async def scenario(broker: RealBroker) -> None:
        client = await broker.client()
        assert (await broker.ask("PUT", f"{URL}/subscription/s", "earliest"))[0] == 204
        await fill(broker, client, *[POISON[kind] for kind in UNREADABLE])
        topic = broker.node.broker.service.topics[NAME.fqn]
        subscription = topic.subscriptions["s"]
        now = int(time.time() * 1000)
        assert await expire(subscription, now + 1000) == 0
        topic.log.table.ledgers[-1].closed_ms = now - 1000
        assert await expire(subscription, now - 2000) == 0
        assert await expire(subscription, now) == len(UNREADABLE)
        topic.log.table.ledgers[-1].closed_ms = 0

    run_on_broker(tmp_path, scenario)


@pytest.mark.parametrize("kind", POISON)
def test_reading_counting_compaction_and_deletion_go_on(
    tmp_path: Path, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Messages are shown, found by time, delivered, counted, compacted and deleted around unreadable ones."""

    async def scenario(broker: RealBroker) -> None:
        client = await broker.client()
        service = broker.node.broker.service
        assert (await broker.ask("PUT", f"{URL}/subscription/s", "earliest"))[0] == 204
        bad = POISON[kind]
        ids = await fill(broker, client, bad, good(0, OLD), bad, bad, good(1, OLD + 1000), good(2, OLD + 2000), bad)
        for place in ("/subscription/s/position/1", "/examinemessage", f"/ledger/{ids[2].ledger}/entry/{ids[2].entry}"):
            status, headers, body = await message_over_rest(broker, place)
            assert status == 200, body
            assert headers["message-id"]
            assert body
        topic = service.topics[NAME.fqn]

        # searched for, by time
        for since, number, count in ((OLD + 500, 1, 3), (OLD + 1000, 1, 3), (OLD + 1500, 2, 2)):
            status, found = await broker.ask("GET", f"{URL}/messageid/{since}")
            assert status == 200, found
            consumer = await reader(client, f"since-{since}")
            await consumer.seek(publish_time_ms=since)
            assert number in await numbers(client, f"since-{since}", count)

        # shown from the end, and counted
        consumer = await reader(client, "last")
        assert (await consumer.last_message_id()).last_message_id.entry == ids[-1].entry
        for path in ("stats?getEarliestTimeInBacklog=true", "internalStats", "lastMessageId", "subscriptions"):
            status, answer = await broker.ask("GET", f"{URL}/{path}")
            assert status == 200, answer
        status, found = await broker.ask("POST", f"{URL}/subscription/s/analyzeBacklog")
        assert (status, found["entries"]) == (200, 7)

        # every type gets everything
        for sub_type in c.SubType:
            assert await numbers(client, f"all-{sub_type}", 7, sub_type) >= {0, 1, 2}

        # compacted
        assert (await broker.ask("PUT", f"{URL}/compaction"))[0] == 204
        for _ in range(1000):
            found = (await broker.ask("GET", f"{URL}/compaction"))[1]
            if found["status"] != "RUNNING":
                break
            await asyncio.sleep(0.02)
        assert found["status"] == "SUCCESS", found
        compacted = await client.subscribe(
            NAME.fqn, "compacted", c.SubType.Exclusive, read_compacted=True,
            initial_position=c.InitialPosition.Earliest,
        )  # fmt: skip
        await compacted.last_message_id()
        await compacted.seek(publish_time_ms=OLD + 1000)

        # let go of
        await apply_retention(topic, 1 << 50)
        status, _ = await broker.ask("POST", f"{URL}/subscription/s/skip_all")
        assert status in (200, 204)
        assert (await broker.ask("DELETE", f"{URL}?force=true"))[0] == 204
        await client.close()

    run_on_broker(tmp_path, scenario, defaultRetentionTimeInMinutes=1, backlogQuotaDefaultLimitSecond=1)
    errors = [record for record in caplog.records if record.levelname == "ERROR"]
    assert not errors, errors


async def reader(client: RawClient, name: str, sub_type: c.SubType = c.SubType.Shared) -> RawConsumer:
    return await client.subscribe(NAME.fqn, name, sub_type, initial_position=c.InitialPosition.Earliest)


async def numbers(client: RawClient, name: str, count: int, sub_type: c.SubType = c.SubType.Shared) -> set[int]:
    """The numbers of the good entries among ``count``."""
    consumer = await reader(client, name, sub_type)
    consumer.flow(1000)
    entries = [(await consumer.receive()).entry for _ in range(count)]
    await consumer.close()
    return {int(payload_of(entry)) for entry in entries if payload_of(entry) in (b"0", b"1", b"2")}
