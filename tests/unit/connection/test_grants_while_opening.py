"""What is opened is asked for once more when it is ready: grants may have changed meanwhile (rule 12.9)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Generator
from typing import Any

from magnetar.broker.namespaces.watched_lists import WatchedList
from magnetar.model.names import NamespaceName, TopicName
from magnetar.model.topic_pattern import TopicPattern
from magnetar.protocol import commands as c
from magnetar.testing.rawclient import RawClient
from tests.sim.world import World, run_seed
from tests.support.roles import DEFAULT, SETTINGS, believing, client_of, grant, policies_of

T = "persistent://public/default/t"
OWN = "persistent://public/default/own"
BOTH = ["produce", "consume"]
WAIT = c.ProducerAccessMode.WaitForExclusive
EXCLUSIVE = c.ProducerAccessMode.Exclusive


def talk(simulation: Callable[[World], Coroutine[Any, Any, None]]) -> None:
    async def booted(world: World) -> None:
        await world.boot()
        await grant(world.machine.broker.resources, namespace={"bob": BOTH}, topics={T: {"alice": BOTH}, **ONLY_OWN})
        await simulation(world)

    run_seed(booted, 1, settings=SETTINGS, tamper=believing)


ONLY_OWN = {OWN: {"alice": BOTH}}


def changed(world: World, **grants: Any) -> None:
    """Replace the grants at once, also while the disk writes nothing."""
    records = world.machine.broker.resources.namespaces
    records.policies(DEFAULT)["auth_policies"] = policies_of(**grants)
    records.grants_changed(DEFAULT)


async def revoked(world: World) -> None:
    changed(world, namespace={"bob": BOTH}, topics=ONLY_OWN)
    await world.machine.broker.service.grants_in_force()


async def queued(client: RawClient, command: c.CommandProducer) -> None:
    client.say(command)
    answer = await client.hear(c.CommandProducerSuccess)
    assert not answer.producer_ready


async def opening_again() -> tuple[RawClient, RawClient]:
    """Alice, whose producer of OWN waits under the same id for T, and bob, who has that for himself."""
    alice, bob = await client_of("alice"), await client_of("bob")
    await bob.producer(T, producer_access_mode=EXCLUSIVE)
    alice.say(c.CommandProducer(OWN, 7, 7))
    await alice.hear(c.CommandProducerSuccess)
    await queued(alice, c.CommandProducer(T, 7, 8, epoch=1, producer_access_mode=WAIT))
    return alice, bob


def test_a_second_producer_of_the_same_id_hides_nothing() -> None:
    """It is refused, and what it names is not what is judged."""

    async def simulation(world: World) -> None:
        alice, bob = await client_of("alice"), await client_of("bob")
        await bob.producer(T, producer_access_mode=EXCLUSIVE)
        await queued(alice, c.CommandProducer(T, 7, 7, producer_access_mode=WAIT))
        alice.say(c.CommandProducer(OWN, 7, 8))
        assert (await alice.hear(c.CommandError)).request_id == 8
        await revoked(world)
        assert (await alice.hear(c.CommandError)).message == "Client is not authorized to Produce"
        await bob.close()
        await asyncio.sleep(1)
        assert not alice.heard(c.CommandProducerSuccess)
        assert not len(world.machine.broker.service.topics[T].producers)

    talk(simulation)


def test_a_producer_that_is_opened_again_is_judged_when_it_is_admitted() -> None:
    async def simulation(world: World) -> None:
        alice, bob = await opening_again()
        await revoked(world)
        await bob.close()
        refused = await alice.hear(c.CommandError)
        assert (refused.request_id, refused.message) == (8, "Client is not authorized to Produce")
        assert not alice.heard(c.CommandProducerSuccess)
        topics = world.machine.broker.service.topics
        assert not len(topics[T].producers) and len(topics[OWN].producers) == 1, "the earlier one is still open"
        alice.say(c.CommandProducer(OWN, 7, 9, epoch=2))
        assert (await alice.hear(c.CommandProducerSuccess)).request_id == 9, "and may be opened again"

    talk(simulation)


def test_a_second_subscribe_of_the_same_id_hides_nothing() -> None:
    async def simulation(world: World) -> None:
        alice = await client_of("alice")
        world.machine.hold_writes()
        alice.say(c.CommandSubscribe(T, "s", c.SubType.Shared, 8, 8))
        alice.say(c.CommandSubscribe(OWN, "s", c.SubType.Shared, 8, 9))
        assert (await alice.hear(c.CommandError)).request_id == 9
        await revoked(world)
        world.machine.release_writes()
        refused = await alice.hear(c.CommandError)
        assert (refused.request_id, refused.message) == (8, "Client is not authorized to subscribe")
        await asyncio.sleep(1)
        assert not alice.heard(c.CommandSuccess)

    talk(simulation)


def test_a_watch_whose_list_is_being_made_is_judged_when_it_begins() -> None:
    async def simulation(world: World) -> None:
        service = world.machine.broker.service
        lists, watching = service.watched_lists, service.watched_lists.watching
        changed(world, namespace={"alice": BOTH, "bob": BOTH})
        alice, bob = await client_of("alice"), await client_of("bob")
        await bob.producer(T)

        def interrupted(namespace: NamespaceName, pattern: TopicPattern) -> Generator[int, None, WatchedList]:
            found = yield from watching(namespace, pattern)
            changed(world, namespace={"bob": BOTH})
            return found

        lists.watching = interrupted  # type: ignore[method-assign]  # a change in the middle of it
        alice.say(c.CommandWatchTopicList(3, 1, "public/default", "persistent://public/default/.*"))
        assert (await alice.hear(c.CommandError)).request_id == 3
        assert len(lists) == 0, "the list of the refused watch is not kept"
        await bob.producer(OWN)
        await asyncio.sleep(1)
        assert not alice.heard(c.CommandWatchTopicListSuccess) and not alice.heard(c.CommandWatchTopicUpdate)

    talk(simulation)


def test_a_producer_that_is_opened_again_in_another_topic_leaves_the_first() -> None:
    """Otherwise nobody could ever close it, and an exclusive one would lock its topic for all."""

    async def simulation(world: World) -> None:
        alice, bob = await client_of("alice"), await client_of("bob")
        alice.say(c.CommandProducer(T, 7, 7, producer_access_mode=EXCLUSIVE))
        await alice.hear(c.CommandProducerSuccess)
        alice.say(c.CommandProducer(OWN, 7, 8, epoch=1))
        assert (await alice.hear(c.CommandProducerSuccess)).request_id == 8
        topics = world.machine.broker.service.topics
        assert not len(topics[T].producers) and len(topics[OWN].producers) == 1
        await bob.producer(TopicName.parse(T).fqn, producer_access_mode=EXCLUSIVE)

    talk(simulation)


def test_closing_a_producer_cancels_the_one_that_waits_under_its_id() -> None:
    """Otherwise it would be admitted later, and nobody would know of it."""

    async def simulation(world: World) -> None:
        alice, bob = await opening_again()
        alice.say(c.CommandProducer(T, 7, 9, epoch=2, producer_access_mode=WAIT))
        assert (await alice.hear(c.CommandError)).request_id == 9, "one after the other, as with a new id"
        alice.say(c.CommandCloseProducer(7, 10))
        assert (await alice.hear(c.CommandSuccess)).request_id == 10
        await bob.close()
        await asyncio.sleep(1)
        topics = world.machine.broker.service.topics
        assert not alice.heard(c.CommandProducerSuccess)
        assert not len(topics[T].producers) and not len(topics[OWN].producers)
        await queued_no_more(alice)

    async def queued_no_more(client: RawClient) -> None:
        client.say(c.CommandProducer(T, 7, 11, producer_access_mode=EXCLUSIVE))
        answer = await client.hear(c.CommandProducerSuccess)
        assert answer.request_id == 11 and answer.producer_ready

    talk(simulation)


def test_a_lost_connection_gives_up_what_it_was_opening_again() -> None:
    async def simulation(world: World) -> None:
        alice, _ = await opening_again()
        topic = world.machine.broker.service.topics[T]
        assert topic.producers.waiting
        await alice.close()
        await asyncio.sleep(1)
        assert not topic.producers.waiting, "its place in the queue"

    talk(simulation)
