"""SUBSCRIBE and PRODUCER that want a subscription of a name whose deletion is on its way to the disk."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from magnetar.model.errors import ServerError
from magnetar.protocol import commands as c
from magnetar.testing.rawclient import RawClient
from tests.sim.world import T, World
from tests.support.conversations import again, connected, stats, talk

SUBSCRIBE = c.CommandSubscribe(T, "s", c.SubType.Exclusive, 7, 900)
PRODUCER = c.CommandProducer(T, 7, 900, "p", initial_subscription_name="s")
KINDS: Any = {c.CommandSubscribe: c.CommandSuccess, c.CommandProducer: c.CommandProducerSuccess}


async def deleting(world: World) -> RawClient:
    """A topic whose subscription was deleted, which nothing says on the disk yet."""
    client = await connected()
    await (await client.subscribe(T, "s")).close()
    await client.subscribe(T, "other")
    world.machine.hold_writes()
    world.machine.broker.service.topics[T].delete_subscription("s", lambda: None)
    return client


@pytest.mark.parametrize("command", [SUBSCRIBE, PRODUCER])
def test_they_wait_and_make_it_anew(command: Any) -> None:
    async def simulation(world: World) -> None:
        client = await deleting(world)
        client.say(command)
        await again(client)
        kind = KINDS[type(command)]
        assert not client.heard(kind) and not client.heard(c.CommandError)
        world.machine.release_writes()
        await client.hear(kind)
        await again(client)
        assert not client.heard(kind) and not client.heard(c.CommandError)
        assert set((await stats(world))["subscriptions"]) == {"s", "other"}

    talk(simulation)


@pytest.mark.parametrize("command", [SUBSCRIBE, PRODUCER])
def test_they_are_refused_once_where_the_disk_refuses_the_deletion_and_may_come_again(command: Any) -> None:
    async def simulation(world: World) -> None:
        client = await deleting(world)
        world.machine.files.fail("append", times=1)
        client.say(command)
        await again(client)
        world.machine.release_writes()
        assert (await client.hear(c.CommandError)).error is ServerError.PersistenceError
        await again(client)
        kind = KINDS[type(command)]
        assert not client.heard(c.CommandError) and not client.heard(kind)
        assert not client.lost.done()
        await client.request(replace(command, request_id=client.new_id()), kind)

    talk(simulation)


@pytest.mark.parametrize("command", [SUBSCRIBE, PRODUCER])
def test_who_has_left_meanwhile_makes_nothing(command: Any) -> None:
    async def simulation(world: World) -> None:
        client = await deleting(world)
        other = await connected()
        other.say(command)
        await again(other)
        other.transport.close()
        await other.lost
        world.machine.release_writes()
        await world.quiet(1)
        assert set((await stats(world))["subscriptions"]) == {"other"}
        await again(client)

    talk(simulation)
