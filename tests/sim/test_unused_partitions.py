"""Partitions that were made and never used stay, however long; what was used and is idle goes (rule 4.7.6)."""

from __future__ import annotations

import asyncio

import pytest

from magnetar.admin.ports import StatsOptions
from magnetar.admin.routes.topics.partitions import make_missing
from magnetar.app.node import Broker
from magnetar.broker.namespaces.partition_creation import PartitionCreator
from magnetar.config.settings import Settings
from magnetar.model.ids import EARLIEST
from magnetar.model.names import TopicName
from magnetar.testing.broker import HOST, PORT
from magnetar.testing.rawclient import RawClient
from tests.sim.world import World, caught, ports_of, run_seeds

PARENT = TopicName.parse("persistent://public/default/prepared")
LONG_S = 300.0
"""Five times as long as an unused topic stays."""
CAUGHT_UP = Settings(brokerDeleteInactiveTopicsMode="delete_when_subscriptions_caught_up")


async def make(world: World, count: int) -> None:
    """What PUT .../partitions does, or POST if there is such a topic."""
    partitioned = world.machine.broker.resources.partitioned
    if partitioned.count(PARENT):
        await partitioned.grow(PARENT, count)
    else:
        await partitioned.create(PARENT, count, to_make=True)
    await make_missing(ports_of(world).topics, world.machine.broker.resources, PARENT)


async def use(name: TopicName) -> None:
    """A producer comes and goes."""
    client = await RawClient.open(HOST, PORT)
    await client.connect()
    await client.producer(name.fqn)
    await client.close()


async def look_at(world: World, name: TopicName) -> None:
    """An administrator asks for statistics."""
    await ports_of(world).statistics.topic_stats(name, StatsOptions())


def there(world: World) -> list[int]:
    """The indexes of the partitions that exist."""
    return [name.partition_index for name in world.machine.broker.service.partitions_of(PARENT)]


async def prepared(world: World) -> None:
    """A topic is created, waits for its first client over a restart and a crash, and grows."""
    await world.boot()
    plain = TopicName.parse("persistent://public/default/plain")
    await world.machine.run(ports_of(world).topics.create_topic(plain, {}))
    await world.machine.run(make(world, 2))
    await asyncio.sleep(LONG_S)
    assert there(world) == [0, 1]
    assert not world.machine.broker.service.exists(plain), "one without partitions is loaded when it is created"
    await world.restart()
    await asyncio.sleep(LONG_S)
    assert there(world) == [0, 1]
    await world.machine.run(make(world, 45))
    await world.crash()
    await asyncio.sleep(LONG_S)
    assert there(world) == list(range(45))
    assert not world.machine.broker.service.topics.keys() & {name.fqn for name in PARENT.partitions(45)}


async def partly_used(world: World) -> None:
    """What clients and operations used goes when it is idle, the others stay, and so does the partitioned topic."""
    await world.boot()
    await world.machine.run(make(world, 4))
    await use(PARENT.partition(1))
    await world.machine.run(look_at(world, PARENT.partition(2)))
    await asyncio.sleep(LONG_S)
    assert there(world) == [0, 3]
    assert world.machine.broker.resources.partitioned.count(PARENT) == 4
    await world.machine.run(ports_of(world).topics.create_partitions(PARENT, 0, 4))
    await asyncio.sleep(LONG_S)
    assert there(world) == [0, 1, 2, 3], "createMissedPartitions uses none either"
    for name in PARENT.partitions(4):
        await use(name)
    await asyncio.sleep(LONG_S)
    assert there(world) == []
    kept = not world.settings.brokerDeleteInactivePartitionedTopicMetadataEnabled
    assert world.machine.broker.resources.partitioned.count(PARENT) == 4 * kept


async def grown(world: World) -> None:
    """The partitions that a topic gets besides have its subscriptions, and are as unused as without."""
    await world.boot()
    await world.machine.run(make(world, 1))
    first = PARENT.partition(0)
    await world.machine.run(
        ports_of(world).subscriptions.create_subscription(first, "s", EARLIEST, {}, replicated=False)
    )
    await world.machine.run(make(world, 3))
    await asyncio.sleep(LONG_S)
    assert there(world) == [1, 2], "the first one was used, and has nothing for its subscription"
    await world.restart()
    await asyncio.sleep(LONG_S)
    assert there(world) == [1, 2]
    topic = world.machine.broker.service.find(PARENT.partition(2))
    assert topic is not None
    assert topic.durable_subscriptions() == ["s"]


async def looked_up(world: World) -> None:
    """A lookup that creates a partitioned topic makes none of its partitions: they come with their clients."""
    await world.boot()
    client = await RawClient.open(HOST, PORT)
    await client.connect()
    assert (await client.partitions(PARENT.fqn)).partitions == 3
    producer = await client.producer(PARENT.partition(1).fqn)
    await asyncio.sleep(LONG_S)
    assert there(world) == [1]
    await producer.close()
    await asyncio.sleep(LONG_S)
    assert there(world) == []
    assert (await client.partitions(PARENT.fqn)).partitions == 3
    await client.close()


def test_prepared_partitions_wait_for_their_first_client() -> None:
    run_seeds(prepared, 4)


@pytest.mark.parametrize("metadata_go", [False, True])
def test_used_partitions_go_when_they_are_idle(metadata_go: bool) -> None:
    settings = Settings(brokerDeleteInactivePartitionedTopicMetadataEnabled=metadata_go)
    run_seeds(partly_used, 1, settings=settings)


def test_partitions_with_caught_up_subscriptions_are_unused_too() -> None:
    run_seeds(grown, 2, settings=CAUGHT_UP)


def test_partitions_of_a_lookup_come_with_their_clients() -> None:
    settings = Settings(allowAutoTopicCreationType="partitioned", defaultNumPartitions=3)
    run_seeds(looked_up, 1, settings=settings)


def test_loading_what_is_made_is_noticed() -> None:
    def tamper(broker: Broker) -> None:
        service = broker.service
        make_only = PartitionCreator.make

        def eager(name: TopicName, first: int, end: int) -> None:
            make_only(service.partitions, name, first, end)
            for index in range(first, end):
                service.find(name.partition(index))

        service.partitions.make = eager  # type: ignore[method-assign]

    caught(prepared, tamper)
