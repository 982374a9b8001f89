"""The index of messages that a broker shows to clients that ask for it (rule 1.1.6, decision 075), in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import pytest

from magnetar.model.names import TopicName
from magnetar.protocol import commands as c
from magnetar.protocol.entries import EntryMetadata, SingleMessageMetadata, build_entry, join_batch
from magnetar.testing.broker import HOST, PORT
from magnetar.testing.rawclient import RawClient, RawConsumer, RawProducer
from tests.wire.bench import Wires, on_broker

T: Final = "persistent://public/default/t"
KEPT: Final = {"brokerEntryMetadataInterceptors": "org.apache.pulsar.common.intercept.AppendIndexMetadataInterceptor"}
SHOWN: Final = {**KEPT, "exposingBrokerEntryMetadataToClientEnabled": True}


async def curious() -> RawClient:
    """A client that can read what a broker says of an entry."""
    client = await RawClient.open(HOST, PORT)
    await client.connect(feature_flags=c.FeatureFlags(supports_broker_entry_metadata=True))
    return client


async def send(producer: RawProducer, *sizes: int, keys: Sequence[str] = ()) -> None:
    """One entry of so many messages each, and its receipt."""
    for number, size in enumerate(sizes):
        metadata = EntryMetadata("p", 0, 1, partition_key=keys[number] if keys else None)
        payload = b"m"
        if size > 1:
            payload = join_batch([(SingleMessageMetadata(partition_key=metadata.partition_key), b"m")] * size)
            metadata = replace(metadata, num_messages_in_batch=size)
        await producer.receipt(producer.send(b"", entry=build_entry(metadata, payload), count=size))


async def indexes(consumer: RawConsumer, count: int) -> list[int | None]:
    found: list[int | None] = []
    for _ in range(count):
        metadata = (await consumer.receive()).broker_metadata
        found.append(None if metadata is None else metadata.index)
    return found


@pytest.mark.parametrize("sub_type", list(c.SubType))
def test_it_counts_messages_and_goes_on_after_all(sub_type: c.SubType) -> None:
    """A batch has the index of its last message. It is the same from memory, from disk, and once more; it goes on after
    an unload, a stop and a crash."""

    async def test(wires: Wires) -> None:
        client = await curious()
        await send(await client.producer(T), 1, 5, 1, 2)
        consumer = await client.subscribe(T, "s", sub_type, initial_position=c.InitialPosition.Earliest)
        consumer.flow(100)
        assert await indexes(consumer, 4) == [0, 5, 6, 8]
        wires.world.machine.broker.service.unload(TopicName.parse(T))
        client = await curious()
        await send(await client.producer(T), 1, 3)
        await wires.world.restart()
        client = await curious()
        await send(await client.producer(T), 1)
        wires.world.machine.kill()
        await asyncio.sleep(1)
        await wires.world.machine.start()
        client = await curious()
        await send(await client.producer(T), 2)
        consumer = await client.subscribe(T, "s", sub_type)
        consumer.flow(100)
        assert await indexes(consumer, 8) == [0, 5, 6, 8, 9, 12, 13, 15]
        consumer.redeliver([])
        assert await indexes(consumer, 8) == [0, 5, 6, 8, 9, 12, 13, 15]

    on_broker(test, **SHOWN)


def test_parts_of_a_batch_that_come_again_have_the_same() -> None:
    async def test(wires: Wires) -> None:
        client = await curious()
        consumer = await client.subscribe(T, "s", c.SubType.Shared)
        consumer.flow(10)
        await send(await client.producer(T), 1, 3)
        await consumer.receive()
        got = await consumer.receive()
        await consumer.ack(got.message_id._replace(ack_set=(0b110,), batch_size=3))
        consumer.redeliver([got.message_id])
        again = await consumer.receive()
        assert again.ack_set == (0b110,) and again.broker_metadata is not None and again.broker_metadata.index == 3

    on_broker(test, acknowledgmentAtBatchIndexLevelEnabled=True, **SHOWN)


def test_the_compacted_view_keeps_it() -> None:
    """Also where the messages before are gone, and after the view was compacted again."""

    async def test(wires: Wires) -> None:
        client = await curious()
        producer = await client.producer(T)
        await send(producer, 1, 3, 1, 1, keys=["a", "b", "a", "c"])
        for _ in range(2):
            topic = wires.world.machine.broker.service.topics[T]
            compactor = topic.compaction()
            compactor.begin(retain_keyless=False, keep_index=True)
            await compactor.wait()
            reader = await client.subscribe(
                T, "r", read_compacted=True, durable=False, start_message_id=c.MessageIdData(0, -1)
            )
            reader.flow(100)
            assert await indexes(reader, 3) == [3, 4, 5]
            await reader.close()
            await wires.world.restart()
            client = await curious()
            producer = await client.producer(T)
        await send(producer, 1, keys=["a"])
        compactor = wires.world.machine.broker.service.topics[T].compaction()
        compactor.begin(retain_keyless=False, keep_index=True)
        await compactor.wait()
        reader = await client.subscribe(
            T, "r", read_compacted=True, durable=False, start_message_id=c.MessageIdData(0, -1)
        )
        reader.flow(100)
        assert await indexes(reader, 3) == [3, 5, 6]

    on_broker(test, **SHOWN)


@pytest.mark.parametrize("settings", [{}, KEPT, {"exposingBrokerEntryMetadataToClientEnabled": True}])
def test_it_is_not_shown_unless_that_is_asked_for(settings: dict[str, object]) -> None:
    async def test(wires: Wires) -> None:
        client = await curious()
        consumer = await client.subscribe(T, "s")
        consumer.flow(10)
        await send(await client.producer(T), 1)
        assert await indexes(consumer, 1) == [None]

    on_broker(test, **settings)


def test_a_client_that_does_not_ask_gets_entries_as_they_were_sent() -> None:
    async def test(wires: Wires) -> None:
        client = await wires.open()
        consumer = await client.subscribe(T, "s")
        consumer.flow(10)
        await send(await client.producer(T), 1, 2)
        assert await indexes(consumer, 2) == [None, None]

    on_broker(test, **SHOWN)
