"""A partitioned topic is whole: whatever crashes while it is made or grows, each partition has the subscriptions."""

from __future__ import annotations

import asyncio
import contextlib
import zlib

import pytest

from magnetar.admin.local_broker.broker import local_ports
from magnetar.admin.ports import TopicsPort
from magnetar.admin.routes.namespaces.removal import remove_partitioned
from magnetar.admin.routes.topics.partitions import make_missing
from magnetar.app.node import Broker
from magnetar.broker.namespaces.partition_creation import PartitionCreator
from magnetar.metadata.partitioned import PartitionedTopics
from magnetar.model.errors import ServerError, ServiceNotReadyError, TopicNotFoundError
from magnetar.model.ids import EARLIEST
from magnetar.model.names import TopicName
from magnetar.model.policies import PartitionedTopic
from magnetar.protocol import commands as c
from magnetar.testing.broker import HOST, PORT
from magnetar.testing.rawclient import RawClient, payload_of
from tests.sim.clients import TROUBLE
from tests.sim.world import World, caught, run_seeds
from tests.support.partitioned_record import left_behind

PARENT = TopicName.parse("persistent://public/default/growing")
OTHER = TopicName.parse("persistent://public/default/other")
SUBSCRIPTIONS = ("s", "other")
KEYS = tuple(f"k{number}" for number in range(12))


class KeyedPublisher:
    """Sends one message after the other, each to its key's partition of those that the metadata names."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.sent = 0
        self.stopped = False
        self.receipted: list[tuple[str, str]] = []
        """Partition and value, in the order of the receipts."""

    async def run(self) -> None:
        while not self.stopped:
            try:
                await self._life()
            except TROUBLE:
                await asyncio.sleep(0.05)

    async def _life(self) -> None:
        client = await RawClient.open(HOST, PORT, patience_s=3.0)
        try:
            await client.connect()
            producers = {}
            while not self.stopped:
                answer = await client.partitions(PARENT.fqn)
                count = answer.partitions or 1
                for _ in range(self.world.rng.randint(1, 4)):
                    key = self.world.rng.choice(KEYS)
                    partition = PARENT.partition(zlib.crc32(key.encode()) % count).fqn
                    if partition not in producers:
                        producers[partition] = await client.producer(partition)
                    value = f"{key}-{self.sent}"
                    self.sent += 1
                    await producers[partition].publish(value.encode(), key=key)
                    self.receipted.append((partition, value))
        finally:
            client.transport.close()


async def grow(broker: Broker, count: int) -> None:
    """What POST .../partitions does, and PUT if there is no topic yet."""
    partitioned = broker.resources.partitioned
    if not partitioned.count(PARENT):
        await partitioned.create(PARENT, count, to_make=True)
    else:
        await partitioned.grow(PARENT, count)
    await make_missing(topics_of(broker), broker.resources, PARENT)


async def grow_other(broker: Broker, count: int) -> None:
    await broker.resources.partitioned.create(OTHER, count, to_make=True)
    await make_missing(topics_of(broker), broker.resources, OTHER)


async def subscribe_all(broker: Broker) -> None:
    """The durable subscriptions, once the topic is there."""
    subscriptions = local_ports(broker.service, broker.rates, broker.connections).subscriptions
    for partition in PARENT.partitions(broker.resources.partitioned.count(PARENT)):
        for name in SUBSCRIPTIONS:
            if name not in await subscriptions.subscriptions_of(partition):
                await subscriptions.create_subscription(partition, name, EARLIEST, {}, replicated=False)


async def backlog_of(partition: str, subscription: str) -> list[str]:
    """Everything that the subscription has, from a consumer that would begin at the end if it did not exist."""
    client = await RawClient.open(HOST, PORT)
    await client.connect()
    consumer = await client.subscribe(
        partition, subscription, c.SubType.Exclusive, initial_position=c.InitialPosition.Latest
    )
    consumer.flow(10_000)
    got: list[str] = []
    try:
        while True:
            message = await asyncio.wait_for(consumer.receive(), 5.0)
            got.append(payload_of(message.entry).decode())
    except TimeoutError:
        pass
    await client.close()
    return got


async def growth(world: World) -> None:
    """Grow again and again under traffic; the broker crashes at any moment of it."""
    await world.boot()
    rng, machine = world.rng, world.machine
    first = machine.run(grow(machine.broker, rng.randint(1, 3)))
    if rng.random() < 0.4:
        await asyncio.sleep(rng.uniform(0, 0.003))
        await world.crash()
    else:
        await first
    await finished(machine.broker)
    assert_there(machine.broker)
    await machine.run(subscribe_all(machine.broker))
    publisher = KeyedPublisher(world)
    world.start(publisher.run())
    for _ in range(rng.randint(2, 4)):
        await asyncio.sleep(rng.uniform(0.1, 1.0))
        count = machine.broker.resources.partitioned.count(PARENT) + rng.choice((1, 2, 60))
        task = machine.run(grow(machine.broker, count))
        await asyncio.sleep(rng.choice((0.0, rng.uniform(0, 0.004), 0.5)))
        if rng.random() < 0.8:
            await world.crash()
        elif not task.done():
            await asyncio.wait_for(task, 30.0)
        await finished(machine.broker)
        assert_whole(machine.broker)
    await asyncio.sleep(rng.uniform(0.1, 1.0))
    publisher.stopped = True
    await asyncio.sleep(5.0)
    world.check_tasks()
    await check_backlogs(publisher, machine.broker.resources.partitioned.count(PARENT))


async def finished(broker: Broker) -> None:
    """What a crash interrupted is made after the start."""
    for _ in range(50):
        if not broker.resources.partitioned.all_unmade():
            return
        await asyncio.sleep(0.1)


def assert_there(broker: Broker) -> None:
    count = broker.resources.partitioned.count(PARENT)
    missing = [name.fqn for name in PARENT.partitions(count) if not broker.service.exists(name)]
    assert not missing, missing


def assert_whole(broker: Broker) -> None:
    """What the metadata names is there, with every subscription, and nothing else is."""
    assert_there(broker)
    count = broker.resources.partitioned.count(PARENT)
    for name in PARENT.partitions(count):
        topic = broker.service.find(name)
        assert topic is not None
        assert set(topic.durable_subscriptions()) == set(SUBSCRIPTIONS), name.fqn
    names = [name for name in broker.service.names_in(PARENT.namespace) if name.startswith(PARENT.fqn)]
    assert len(names) == count, names


async def check_backlogs(publisher: KeyedPublisher, count: int) -> None:
    """Every receipted message waits in its partition for every subscription; per key and partition in order."""
    assert publisher.receipted
    used = {partition for partition, _ in publisher.receipted}
    assert used <= {name.fqn for name in PARENT.partitions(count)}
    for partition in sorted(used):
        sent = [value for where, value in publisher.receipted if where == partition]
        for subscription in SUBSCRIPTIONS:
            got = await backlog_of(partition, subscription)
            assert not set(sent) - set(got), (partition, subscription, sorted(set(sent) - set(got)))
            for key in KEYS:
                numbers = [int(value.partition("-")[2]) for value in got if value.startswith(f"{key}-")]
                assert numbers == sorted(numbers), (partition, key)


def test_growth_under_traffic_leaves_no_partition_half_made() -> None:
    run_seeds(growth, 8)


def test_no_finishing_after_a_crash_is_noticed() -> None:
    def tamper(broker: Broker) -> None:
        broker.service.partitions.start = lambda: None  # type: ignore[method-assign]

    caught(growth, tamper)


def test_partitions_without_subscriptions_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def bare(maker: PartitionCreator, partition: TopicName, like: object) -> None:
        maker._enter(partition)
        maker._store.unopened_log(partition.fqn)

    monkeypatch.setattr(PartitionCreator, "_whole", bare)
    caught(growth, lambda broker: None)


def test_a_note_that_goes_too_early_is_noticed() -> None:
    def tamper(broker: Broker) -> None:
        partitioned = broker.resources.partitioned
        grow_only = partitioned.grow

        async def hasty(topic: TopicName, partitions: int) -> None:
            await grow_only(topic, partitions)
            await partitioned.made(topic, partitions)

        partitioned.grow = hasty  # type: ignore[method-assign]

    caught(growth, tamper)


async def removal(broker: Broker) -> None:
    """What DELETE .../partitions?force=true does."""
    await remove_partitioned(topics_of(broker), broker.resources, PARENT, force=True)


def topics_of(broker: Broker) -> TopicsPort:
    return local_ports(broker.service, broker.rates, broker.connections).topics


async def too_many(world: World) -> None:
    """A directory in which somebody once asked for a thousand million partitions: it starts, serves, and lets go."""
    await world.boot()
    partitioned = world.machine.broker.resources.partitioned
    for name, value in ((PARENT, PartitionedTopic(1_000_000_000)), (OTHER, PartitionedTopic(700))):
        await left_behind(partitioned, name, value)
    await world.crash()
    broker = world.machine.broker
    await asyncio.sleep(5.0)
    client = await RawClient.open(HOST, PORT)
    await client.connect()
    assert set(broker.resources.partitioned.all_unmade()) == {PARENT}, "the other one is made meanwhile"
    assert len(broker.service.partitions_of(OTHER)) == 700
    assert broker.service.partitions_of(PARENT) == []
    await client.producer(PARENT.partition(999_999_999).fqn)
    refused = await client.partitions(PARENT.fqn)
    assert refused.error is ServerError.MetadataError
    assert "1000000000 partitions, a broker serves 10000: delete it" in str(refused.message)
    await world.machine.run(removal(broker))
    await world.crash()
    assert not world.machine.broker.resources.partitioned.count(PARENT)
    assert not world.machine.broker.service.partitions_of(PARENT)


async def cancelled(world: World) -> None:
    """A topic is deleted while its partitions are made: nothing of it is left, whatever crashes."""
    await world.boot()
    broker = world.machine.broker
    making = world.machine.run(grow(broker, 2000))
    await asyncio.sleep(world.rng.uniform(0.0, 0.2))
    removing = world.machine.run(removal(broker))
    crash = world.rng.random() < 0.5
    if crash:
        await asyncio.sleep(world.rng.uniform(0.0, 0.1))
        await world.crash()
        await asyncio.sleep(1.0)
        broker = world.machine.broker
        assert not broker.resources.partitioned.all_unmade(), "the next start makes none"
        if broker.resources.partitioned.count(PARENT):
            await world.machine.run(removal(broker))
    else:
        with contextlib.suppress(TopicNotFoundError):
            await making
        await removing
    await asyncio.sleep(1.0)
    assert not broker.resources.partitioned.count(PARENT)
    assert not broker.service.partitions_of(PARENT)


async def stopped(world: World) -> None:
    """The broker stops in the middle of making partitions, at once, and goes on when it starts again."""
    await world.boot()
    broker = world.machine.broker
    await left_behind(broker.resources.partitioned, PARENT, PartitionedTopic(5000))
    await world.crash()
    broker = world.machine.broker
    await asyncio.sleep(0.05)
    made = len(broker.service.partitions_of(PARENT))
    assert made < 5000
    asked = world.machine.run(grow_other(broker, 5000))
    await asyncio.sleep(0.01)
    begun = asyncio.get_running_loop().time()
    broker.service.partitions.end()
    with pytest.raises(ServiceNotReadyError, match="the broker stops"):
        await asked
    await broker.service.partitions.close()
    assert asyncio.get_running_loop().time() - begun < 1.0
    assert len(broker.service.partitions_of(PARENT)) < 5000
    await world.crash()
    for _ in range(40):
        await finished(world.machine.broker)
    assert_there(world.machine.broker)
    assert len(world.machine.broker.service.partitions_of(OTHER)) == 5000


def test_what_no_broker_can_serve_does_not_keep_it_from_starting() -> None:
    run_seeds(too_many, 1)


def test_deleting_a_topic_cancels_the_making_of_its_partitions() -> None:
    run_seeds(cancelled, 6)


def test_making_partitions_stops_with_the_broker() -> None:
    run_seeds(stopped, 1)


def test_a_note_that_outlives_the_removal_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PartitionedTopics, "removal", lambda self, topic: contextlib.nullcontext())
    caught(cancelled, lambda broker: None)
