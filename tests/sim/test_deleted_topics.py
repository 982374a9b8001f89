"""A topic that is deleted or unloaded leaves nothing behind that only the cyclic garbage collector could find."""

from __future__ import annotations

import asyncio
import gc
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import replace
from typing import Any

import pytest

from magnetar.admin.local_broker.broker import local_ports
from magnetar.broker.service import BrokerService
from magnetar.broker.topic.dispatch.consumer import Consumer
from magnetar.broker.topic.nonpersistent.nonpersistent_subscription import NonPersistentSubscription
from magnetar.broker.topic.nonpersistent.nonpersistent_topic import NonPersistentTopic
from magnetar.broker.topic.publish.producer import Producer
from magnetar.broker.topic.subscription.subscription import Subscription
from magnetar.broker.topic.topic import Topic
from magnetar.config.settings import Settings
from magnetar.model.names import TopicName
from magnetar.protocol import commands as c
from magnetar.testing.broker import HOST, PORT
from magnetar.testing.rawclient import RawClient, make_entry
from magnetar.testing.rawtransaction import RawTransaction
from tests.sim.world import World, caught, run_seeds

Use = Callable[[World, RawClient, str], Awaitable[None]]

SETTINGS = Settings(transactionCoordinatorEnabled=True)
TOPICS = 5


async def used(
    client: RawClient, topic: str, sub_type: c.SubType = c.SubType.Shared, consumers: int = 2
) -> None:  # fmt: skip
    """Messages, acknowledgements and a redelivery; producer and consumers stay connected."""
    producer = await client.producer(topic)
    joined = [await client.subscribe(topic, "s", sub_type) for _ in range(consumers)]
    for consumer in joined:
        consumer.flow(100)
    for i in range(5):
        await producer.publish(b"%d" % i, key=f"key-{i}")
    message = await client.hear(c.CommandMessage)
    joined[0].ack_unconfirmed(message.message_id)
    joined[0].redeliver()
    await asyncio.sleep(0.1)


async def exclusive(world: World, client: RawClient, topic: str) -> None:
    await used(client, topic, c.SubType.Exclusive, consumers=1)


async def failover(world: World, client: RawClient, topic: str) -> None:
    await used(client, topic, c.SubType.Failover)


async def shared(world: World, client: RawClient, topic: str) -> None:
    await used(client, topic)


async def key_shared(world: World, client: RawClient, topic: str) -> None:
    await used(client, topic, c.SubType.Key_Shared)


async def in_flight(world: World, client: RawClient, topic: str) -> None:
    """The topic is deleted while entries are on their way to the disk."""
    producer = await client.producer(topic)
    for i in range(50):
        producer.send(b"%d" % i)


async def deduplicated(world: World, client: RawClient, topic: str) -> None:
    policies = world.machine.broker.resources.topic_policies
    await policies.update(TopicName.parse(topic), "deduplicationEnabled", True)
    await used(client, topic)


async def rate_limited(world: World, client: RawClient, topic: str) -> None:
    policies = world.machine.broker.resources.topic_policies
    await policies.update(TopicName.parse(topic), "publishRate", {"publishThrottlingRateInMsg": 100})
    await used(client, topic)


async def delayed(world: World, client: RawClient, topic: str) -> None:
    """A message is not due yet when the topic goes."""
    await used(client, topic)
    producer = await client.producer(topic)
    due_ms = world.machine.broker.service.clock.now_ms() + 3_600_000
    entry = make_entry(b"later", producer=producer.name, sequence_id=0, deliver_at_ms=due_ms)
    await producer.receipt(producer.send(b"", entry=entry))


async def chunked(world: World, client: RawClient, topic: str) -> None:
    await used(client, topic)
    producer = await client.producer(topic)
    await producer.receipt(producer.send(b"chunk", chunk=True))


async def compacted(world: World, client: RawClient, topic: str) -> None:
    await used(client, topic)
    compactor = world.machine.broker.service.topics[topic].compaction()
    compactor.begin(retain_keyless=False)
    await compactor.wait()
    reader = await client.subscribe(topic, "r", c.SubType.Exclusive, durable=False, read_compacted=True)
    reader.flow(100)
    await asyncio.sleep(0.1)


async def exclusive_producers(world: World, client: RawClient, topic: str) -> None:
    """One producer owns the topic, another one waits for it."""
    await client.producer(topic, producer_access_mode=c.ProducerAccessMode.Exclusive)
    command = c.CommandProducer(topic, 1000, 1000, producer_access_mode=c.ProducerAccessMode.WaitForExclusive)
    client.say(command)
    await asyncio.sleep(0.1)


async def in_transactions(world: World, client: RawClient, topic: str) -> None:
    """One transaction was committed, another one is open when the topic goes."""
    await used(client, topic)
    producer = await client.producer(topic)
    consumer = await client.subscribe(topic, "t", c.SubType.Shared)
    consumer.flow(100)
    for commit in (True, False):
        await producer.publish(b"input")
        message = await consumer.receive()
        txn = await RawTransaction.begin(client, 600_000)
        await txn.add_partitions(topic)
        await txn.publish(producer, b"output")
        await txn.ack(consumer, message.message_id)
        if commit:
            await txn.commit()


async def left(world: World, client: RawClient, topic: str) -> None:
    """The clients have gone before the topic does."""
    other = await RawClient.open(HOST, PORT)
    await other.connect()
    await used(other, topic)
    other.transport.close()
    await asyncio.sleep(0.1)


async def unused(world: World, client: RawClient, topic: str) -> None:
    """The producer has gone, and there was never a subscription."""
    other = await RawClient.open(HOST, PORT)
    await other.connect()
    await (await other.producer(topic)).publish(b"1")
    other.transport.close()
    await asyncio.sleep(0.1)


async def unloaded(world: World, client: RawClient, topic: str) -> None:
    """The topic is unloaded, loaded again and then deleted."""
    await used(client, topic)
    world.machine.broker.service.unload(TopicName.parse(topic))
    await used(client, topic)


USES = [
    exclusive, failover, shared, key_shared, in_flight, deduplicated, rate_limited, delayed, chunked, compacted,
    exclusive_producers, in_transactions, left, unloaded,
]  # fmt: skip


def deleting(use: Use, domain: str) -> Callable[[World], Coroutine[Any, Any, None]]:
    async def simulation(world: World) -> None:
        await world.boot()
        client = await RawClient.open(HOST, PORT)
        await client.connect()
        broker = world.machine.broker
        service, ports = broker.service, local_ports(broker.service, broker.rates, broker.connections)

        async def all_of_it(topic: str) -> None:
            await use(world, client, topic)
            name = TopicName.parse(topic)
            if name.persistent:
                await ports.topics.delete_topic(name, force=True)
            else:
                await service.delete_nonpersistent(name)
            await asyncio.sleep(0.5)

        await all_of_it(f"{domain}://public/default/warm-up")
        gc.collect()
        gc.disable()
        gc.freeze()
        try:
            for i in range(TOPICS):
                await all_of_it(f"{domain}://public/default/topic-{i}")
            assert not service.topics.keys() & {f"{domain}://public/default/topic-{i}" for i in range(TOPICS)}
            assert not garbage()
        finally:
            gc.unfreeze()
            gc.enable()

    return simulation


def garbage() -> Counter[str]:
    """What only the collector finds of the product's own objects."""
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        gc.collect()
        types = [type(found) for found in gc.garbage]
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
    return Counter(
        f"{each.__module__}.{each.__qualname__}"
        for each in types
        if each.__module__.startswith("magnetar.") and not each.__module__.startswith("magnetar.testing")
    )


@pytest.mark.parametrize("use", USES, ids=lambda use: use.__name__)
def test_a_deleted_topic_is_no_reference_cycle(use: Use) -> None:
    run_seeds(deleting(use, "persistent"), 1, settings=SETTINGS)


@pytest.mark.parametrize("use", [exclusive, failover, shared, key_shared, left], ids=lambda use: use.__name__)
def test_a_deleted_nonpersistent_topic_is_no_reference_cycle(use: Use) -> None:
    run_seeds(deleting(use, "non-persistent"), 1, settings=SETTINGS)


PASSES = 130.0
"""Seconds in which all periodic passes have gone over a topic, those of a minute twice."""

MEMBERS = (Topic, NonPersistentTopic, Producer, Subscription, NonPersistentSubscription, Consumer)


def forgetting(use: Use, domain: str) -> Callable[[World], Coroutine[Any, Any, None]]:
    async def simulation(world: World) -> None:
        await world.boot()
        client = await RawClient.open(HOST, PORT)
        await client.connect()
        broker = world.machine.broker
        ports = local_ports(broker.service, broker.rates, broker.connections)

        async def all_of_it(topic: str) -> None:
            await use(world, client, topic)
            await asyncio.sleep(PASSES)
            name = TopicName.parse(topic)
            if name.persistent:
                await ports.topics.delete_topic(name, force=True)
            else:
                await broker.service.delete_nonpersistent(name)
            await asyncio.sleep(0.5)

        await all_of_it(f"{domain}://public/default/warm-up")
        gc.collect()
        gc.disable()
        gc.freeze()
        try:
            await all_of_it(f"{domain}://public/default/topic")
            left = Counter(type(each).__qualname__ for each in gc.get_objects() if isinstance(each, MEMBERS))
            assert not left, f"alive half a second after the deletion: {left}"
        finally:
            gc.unfreeze()
            gc.enable()

    return simulation


@pytest.mark.parametrize(
    "use", [shared, failover, delayed, compacted, in_transactions, unused], ids=lambda use: use.__name__
)
def test_a_deleted_topic_that_all_passes_have_seen_is_freed_at_once(use: Use) -> None:
    settings = replace(SETTINGS, brokerDeleteInactiveTopicsMaxInactiveDurationSeconds=10_000)
    run_seeds(forgetting(use, "persistent"), 1, settings=settings)


def test_a_deleted_nonpersistent_topic_that_all_passes_have_seen_is_freed_at_once() -> None:
    run_seeds(forgetting(shared, "non-persistent"), 1, settings=SETTINGS)


def test_a_cycle_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    load = BrokerService._load

    def cyclic(self: BrokerService, name: TopicName) -> object:
        topic = load(self, name)
        topic.log.properties["magnetar.cycle"] = topic.log
        return topic

    monkeypatch.setattr(BrokerService, "_load", cyclic)
    caught(deleting(shared, "persistent"), lambda broker: None, settings=SETTINGS)
