"""What an unload leaves to those who still hold the topic, and to clients that were about to use it."""

from __future__ import annotations

import asyncio

import pytest

from magnetar.model.errors import ServerError
from magnetar.model.names import TopicName
from magnetar.model.policies import JsonObject
from magnetar.protocol import commands as c
from magnetar.storage.store_settings import StoreSettings
from magnetar.testing.broker import HOST, PORT
from magnetar.testing.rawclient import RawClient
from tests.sim.world import T, World, run_seed

NAME = TopicName.parse(T)


async def connected() -> RawClient:
    client = await RawClient.open(HOST, PORT)
    await client.connect()
    return client


def test_a_pass_that_has_begun_does_not_trim_it() -> None:
    """Its subscriptions have left the topic; what they have not consumed stays for the topic loaded again."""

    async def simulation(world: World) -> None:
        world.storage = StoreSettings(ledger_entries_max=10, ledger_min_rollover_ms=0)
        await world.boot()
        client = await connected()
        await client.subscribe(T, "s", c.SubType.Shared, initial_position=c.InitialPosition.Earliest)
        producer = await client.producer(T)
        for number in range(35):
            await producer.publish(str(number).encode())
        service = world.machine.broker.service
        old = service.topics[T]
        assert len(old.log.table.ledgers) > 2
        service.unload(NAME)
        with pytest.raises(RuntimeError, match="closed topic"):
            old.slowest()
        assert old.trim() == 0
        assert old.trim_to(old.log.end, 0) == 0
        assert service.served(NAME, create=False).log.first == 0

    run_seed(simulation, 1)


def test_a_subscribe_under_way_is_told_to_come_again() -> None:
    """The subscription exists; that the topic has just left is no reason to say that it does not (rule 1.3.20)."""

    async def simulation(world: World) -> None:
        await world.boot()
        client = await connected()
        await client.subscribe(T, "s", c.SubType.Shared)
        service = world.machine.broker.service
        policy: JsonObject = {"allowAutoSubscriptionCreation": False}
        await service.resources.namespaces.update(NAME.namespace, autoSubscriptionCreationOverride=policy)
        topic = service.topics[T]
        topic.close()  # and is still served: the moment between a SUBSCRIBE and its cursor
        client.say(c.CommandSubscribe(T, "s", c.SubType.Shared, 7, 7))
        answer = await client.hear(c.CommandSuccess, c.CommandError)
        assert isinstance(answer, c.CommandError) and answer.error is ServerError.ServiceNotReady
        await asyncio.sleep(1)
        assert not client.heard(c.CommandError), "one answer, though the closed topic has no subscription any more"

    run_seed(simulation, 1)
