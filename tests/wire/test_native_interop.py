"""Our native client and the official one on the same topics: what one writes the other reads, byte for byte."""

from __future__ import annotations

import asyncio
import os
import urllib.request
from typing import Any

import pulsar  # type: ignore[import-untyped]  # the official client carries no types
import pytest
from tools.servers.process import Server

from magnetar import aio
from tests.wire.conftest import SETTINGS, received

LIMIT = int(SETTINGS["maxMessageSize"])
KINDS = ["NONE", "LZ4", "ZLib", "ZSTD", "SNAPPY"]
PAYLOADS = [b"-", b"\x00\xff" * 10, b"abc" * 10_000, os.urandom(3_000), "ä".encode()]
EVENT_TIME = 1_700_000_000_123


def fields(number: int) -> dict[str, Any]:
    """What differs from message to message."""
    return {
        "properties": {"n": str(number), "ü": ""},
        "partition_key": f"k{number}",
        "ordering_key": f"o{number}",
        "event_timestamp": EVENT_TIME + number,
    }


def fields_of(message: Any) -> tuple[object, ...]:
    """Return what a message says, in terms that both clients have."""
    return (
        message.data(), dict(message.properties()), message.partition_key(), message.ordering_key(),
        message.event_timestamp(), message.producer_name(),
    )  # fmt: skip


def expected(name: str) -> list[tuple[object, ...]]:
    return [
        (payload, {"n": str(number), "ü": ""}, f"k{number}", f"o{number}", EVENT_TIME + number, name)
        for number, payload in enumerate(PAYLOADS)
    ]


@pytest.mark.parametrize("batching", [False, True], ids=["plain", "batched"])
@pytest.mark.parametrize("kind", KINDS)
def test_official_to_ours(server: Server, client: Any, topic: str, kind: str, batching: bool) -> None:
    """Compression, batches, keys, properties and times of the official client (rules 3.7.1, 3.8.1)."""

    async def read() -> list[tuple[object, ...]]:
        async with aio.Client(server.broker_url) as ours:
            consumer = await ours.subscribe(topic, "s", initial_position=aio.InitialPosition.Earliest)
            producer = client.create_producer(
                topic, "theirs", compression_type=getattr(pulsar.CompressionType, kind), batching_enabled=batching
            )
            for number, payload in enumerate(PAYLOADS):
                producer.send_async(payload, None, **fields(number))
            producer.flush()
            found = [await consumer.receive(10_000) for _ in PAYLOADS]
            for message in found:
                await consumer.acknowledge(message)
            return [fields_of(message) for message in found]

    assert asyncio.run(read()) == expected("theirs")


@pytest.mark.parametrize("batching", [False, True], ids=["plain", "batched"])
@pytest.mark.parametrize("kind", KINDS)
def test_ours_to_official(server: Server, client: Any, topic: str, kind: str, batching: bool) -> None:
    """The reverse; ids are the same on both sides (rule 3.5.9)."""
    consumer = client.subscribe(topic, "s")

    async def write() -> list[aio.MessageId]:
        async with aio.Client(server.broker_url) as ours:
            producer = await ours.create_producer(
                topic, "ours", compression_type=aio.CompressionType[kind], batching_enabled=batching
            )
            sends = (producer.send(payload, **fields(number)) for number, payload in enumerate(PAYLOADS))
            return await asyncio.gather(*sends)

    ids = asyncio.run(write())
    found = received(consumer, len(PAYLOADS))
    assert [fields_of(message) for message in found] == expected("ours")
    places = [message.message_id() for message in found]
    assert [(one.ledger_id(), one.entry_id(), one.batch_index()) for one in ids] == [
        (one.ledger_id(), one.entry_id(), one.batch_index()) for one in places
    ]
    assert [pulsar.MessageId.deserialize(one.serialize()) for one in ids] == [
        pulsar.MessageId.deserialize(one.serialize()) for one in places
    ]
    assert [aio.MessageId.deserialize(one.serialize()) for one in places] == ids


def test_chunks_both_ways(server: Server, client: Any, topic: str) -> None:
    """A message of several chunks (rule 3.6.2), and the acknowledgement of all of them (rule 6.6.5)."""
    payload = os.urandom(LIMIT * 3 + 17)
    theirs = client.subscribe(topic, "theirs")

    async def run() -> bytes:
        async with aio.Client(server.broker_url) as ours:
            consumer = await ours.subscribe(topic, "ours", initial_position=aio.InitialPosition.Earliest)
            client.create_producer(topic, chunking_enabled=True).send(payload)
            message = await consumer.receive(10_000)
            await consumer.acknowledge(message)
            producer = await ours.create_producer(topic, chunking_enabled=True)
            sent = await producer.send(payload[::-1])
            again = await consumer.receive(10_000)
            assert again.data() == payload[::-1] and again.message_id().chunks == sent.chunks
            await consumer.acknowledge(again)
            await consumer.close()
            empty = await ours.subscribe(topic, "ours")
            with pytest.raises(aio.ClientTimeoutError):
                await empty.receive(200)
            return message.data()

    assert asyncio.run(run()) == payload
    assert [message.data() for message in received(theirs, 2)] == [payload, payload[::-1]]


def test_partitions_both_ways(server: Server, client: Any, topic: str) -> None:
    """Keys go to one partition each; what either client writes to any partition the other reads."""
    url = f"{server.http_url}/admin/v2/persistent/public/default/{topic}/partitions"
    headers = {"Content-Type": "application/json"}
    urllib.request.urlopen(urllib.request.Request(url, b"3", headers, method="PUT"), timeout=10).close()

    async def run() -> None:
        async with aio.Client(server.broker_url) as ours:
            consumer = await ours.subscribe(topic, "s", aio.ConsumerType.KeyShared)
            producer = client.create_producer(topic)
            for number in range(12):
                producer.send(b"%d" % number, partition_key=f"k{number % 4}")
            mine = await ours.create_producer(topic)
            for number in range(12, 24):
                await mine.send(b"%d" % number, partition_key=f"k{number % 4}")
            found = [await consumer.receive(10_000) for _ in range(24)]
            assert {int(message.data()) for message in found} == set(range(24))
            partitions: dict[tuple[str, str], set[str]] = {}
            for message in found:
                writer = "ours" if int(message.data()) >= 12 else "theirs"
                partitions.setdefault((writer, message.partition_key()), set()).add(message.topic_name())
            assert all(len(topics) == 1 for topics in partitions.values())

    asyncio.run(run())
