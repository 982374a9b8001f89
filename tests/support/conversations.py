"""Talking to a simulated broker over its wire: a client, what it publishes and gets, what statistics say, one run."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from magnetar.admin.local_broker.broker import local_ports
from magnetar.admin.ports import StatsOptions
from magnetar.config.settings import Settings
from magnetar.model.names import TopicName
from magnetar.protocol import commands as c
from magnetar.protocol.entries import EntryMetadata, SingleMessageMetadata, build_entry, join_batch
from magnetar.testing.broker import HOST, PORT
from magnetar.testing.rawclient import RawClient, RawConsumer, RawProducer
from tests.sim.world import T, World, run_seed

Talk = Callable[[World], Coroutine[Any, Any, None]]


async def connected(*, answer_pings: bool = True, version: str = "raw") -> RawClient:
    client = await RawClient.open(HOST, PORT, answer_pings=answer_pings)
    await client.connect(version=version)
    return client


async def stats(world: World, topic: str = T) -> Any:
    broker = world.machine.broker
    ports = local_ports(broker.service, broker.rates, broker.connections)
    return await ports.statistics.topic_stats(TopicName.parse(topic), StatsOptions())


def talk(simulation: Talk, settings: Settings | None = None) -> None:
    async def booted(world: World) -> None:
        await world.boot()
        await simulation(world)

    run_seed(booted, 1, settings=settings)


async def batch(producer: RawProducer, count: int) -> c.MessageIdData:
    """Publish ``count`` messages in one entry."""
    sequence_id = producer.next_sequence_id
    metadata = EntryMetadata("p", sequence_id, 1, num_messages_in_batch=count)
    entry = build_entry(metadata, join_batch([(SingleMessageMetadata(), b"m")] * count))
    receipt = await producer.receipt(producer.send(b"", entry=entry, count=count, sequence_id=sequence_id))
    assert receipt.message_id is not None
    return receipt.message_id


async def entries_of(consumer: RawConsumer, count: int) -> list[int]:
    """The numbers of the next entries within their ledgers."""
    consumer.flow(100)
    return [(await consumer.receive()).message_id.entry for _ in range(count)]


async def again(client: RawClient) -> None:
    """All that was said before has been handled."""
    await client.partitions(T)
