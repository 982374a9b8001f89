"""Connections that wait: for a disk that failed, for a client that takes nothing, for one that we do not read from."""

from __future__ import annotations

import asyncio

from magnetar.config.settings import Settings
from magnetar.protocol import commands as c
from magnetar.storage.store_settings import StoreSettings
from magnetar.testing.broker import HOST, PORT
from magnetar.testing.network import Direction
from magnetar.testing.rawclient import RawClient
from tests.sim.world import T, World, run_seed

FEW = Settings(maxPendingPublishRequestsPerConnection=10, keepAliveIntervalSeconds=5)
S = "sub"


async def connected(**options: bool) -> RawClient:
    client = await RawClient.open(HOST, PORT, answer_pings=options.get("answer_pings", True))
    await client.connect()
    return client


def test_a_failed_write_leaves_no_pending_publishes_behind() -> None:
    """Entries of a second group in flight are answered and counted off when the disk fails, so that the connection goes
    on (rule
    3.3.5)."""

    async def simulation(world: World) -> None:
        await world.boot()
        client = await connected()
        producer = await client.producer(T)
        await producer.publish(b"first")
        for _ in range(4):
            world.machine.files.fail("append")
            for _ in range(9):
                producer.send(b"x")
                await asyncio.sleep(0.0005)
            await client.hear(c.CommandCloseProducer)
            await asyncio.sleep(1)
            producer = await client.producer(T)  # which begins a segment, and so seals the one before
            await asyncio.sleep(1)
        for _ in range(20):
            await producer.publish(b"y")
        (listener,) = world.machine.broker.connections
        assert listener.session.pending_publishes == 0

    for seed in range(5):
        run_seed(simulation, seed, settings=FEW)


def test_a_deleted_topic_leaves_no_pending_publishes_behind() -> None:
    async def simulation(world: World) -> None:
        await world.boot()
        client = await connected()
        producer = await client.producer(T)
        (listener,) = world.machine.broker.connections
        service = world.machine.broker.service
        for _ in range(9):
            producer.send(b"x")
        while not listener.session.pending_publishes:  # noqa: ASYNC110
            await asyncio.sleep(0.0005)
        await service.delete(service.topics[T].name, force=True)
        await asyncio.sleep(1)
        assert listener.session.pending_publishes == 0

    for seed in range(5):
        run_seed(simulation, seed, settings=FEW)


def test_a_closed_connection_that_takes_nothing_gives_its_messages_back() -> None:
    """A connection that is closed for malformed bytes ends, and what it held goes to others."""

    async def simulation(world: World) -> None:
        await world.boot()
        deaf, other = await connected(), await connected()
        consumer = await deaf.subscribe(T, S, c.SubType.Shared)
        consumer.flow(1_000)
        await asyncio.sleep(0.1)
        next(link for link in world.network.links if link.client is deaf.transport).freeze(Direction.TO_CLIENT)
        producer = await other.producer(T)
        for i in range(200):
            producer.send(b"%d" % i * 300)
        await asyncio.sleep(1)
        deaf.say_bytes(b"\xff" * 16)
        await asyncio.sleep(60)
        taker = await other.subscribe(T, S, c.SubType.Shared)
        taker.flow(1_000)
        await asyncio.sleep(1)
        assert len(other.heard(c.CommandMessage)) == 200
        assert len(world.machine.broker.connections) == 1

    run_seed(simulation, 1, storage=StoreSettings())


def test_no_limit_of_pending_messages() -> None:
    """maxPendingPublishRequestsPerConnection=0 is no limit, as in Apache Pulsar 4.0.8 (asked on 28 November 2026: its
    connections compare the count with the setting, which a count of 1 or more never equals)."""

    async def simulation(world: World) -> None:
        await world.boot()
        client = await connected()
        producer = await client.producer(T)
        world.loop.disk_delay_s = (40.0, 40.0)
        for _ in range(3000):
            producer.send(b"x")
        await asyncio.sleep(1)
        (listener,) = world.machine.broker.connections
        assert listener.session.pending_publishes == 3000, "all of them have been read"
        await asyncio.sleep(200)
        assert len(client.heard(c.CommandSendReceipt)) == 3000

    run_seed(simulation, 1, settings=Settings(maxPendingPublishRequestsPerConnection=0))


def test_a_client_that_we_do_not_read_is_not_silent() -> None:
    """A connection whose messages wait for a slow disk longer than two keep-alive intervals is not closed for
    silence."""

    async def simulation(world: World) -> None:
        await world.boot()
        client = await connected()
        producer = await client.producer(T)
        world.loop.disk_delay_s = (40.0, 40.0)
        for _ in range(30):
            producer.send(b"x")
            await asyncio.sleep(0.1)
        (listener,) = world.machine.broker.connections
        assert listener.session.pending_publishes == 10, (
            "maxPendingPublishRequestsPerConnection: the others are not read"
        )
        await asyncio.sleep(200)
        assert len(client.heard(c.CommandSendReceipt)) == 30
        assert not client.lost.done()

    run_seed(simulation, 1, settings=FEW)
