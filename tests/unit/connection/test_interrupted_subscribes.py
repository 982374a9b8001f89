"""SUBSCRIBE while it waits: for a holder's sign of life, a place in time, a new cursor that is durable, the disk."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from magnetar.config.settings import Settings
from magnetar.model.errors import ServerError
from magnetar.model.names import TopicName
from magnetar.protocol import commands as c
from magnetar.storage.store_settings import StoreSettings
from magnetar.testing.rawclient import RawClient, RawClientError, make_entry
from tests.sim.world import T, World, run_seed
from tests.support.conversations import again, connected, stats, talk

PATIENCE_S = 5.0


def rolling_back(consumer_id: int, request_id: int, **fields: Any) -> c.CommandSubscribe:
    return c.CommandSubscribe(
        T, "s", c.SubType.Exclusive, consumer_id, request_id, start_message_rollback_duration_sec=10, **fields
    )


async def filled(client: RawClient, world: World) -> None:
    """A topic whose places in time have to be read from the disk."""
    producer = await client.producer(T)
    for number in range(20):
        await producer.publish(str(number).encode())
        await world.quiet(1)


def talk_from_disk(simulation: Any) -> None:
    async def booted(world: World) -> None:
        world.storage = StoreSettings(cache_bytes=1)
        await world.boot()
        await simulation(world)

    run_seed(booted, 1, settings=Settings())


# asking a holder -------------------------------------------------------------------------------------------------


def test_who_finds_the_place_taken_again_is_refused_without_asking_a_second_time() -> None:
    """Of two who wait for the same silent holder the first one gets its place (rule 5.3.1)."""

    async def simulation(world: World) -> None:
        await (await connected(answer_pings=False)).subscribe(T, "s")
        first, second = await connected(answer_pings=False), await connected()
        begun = world.loop.time()
        first.say(c.CommandSubscribe(T, "s", c.SubType.Exclusive, 1, 900))
        await again(first)
        second.say(c.CommandSubscribe(T, "s", c.SubType.Exclusive, 1, 900))
        await first.hear(c.CommandSuccess)
        assert (await second.hear(c.CommandError)).error is ServerError.ConsumerBusy
        assert world.loop.time() - begun < PATIENCE_S + 1
        assert first.pings == 0
        await asyncio.sleep(2 * PATIENCE_S)
        assert not first.lost.done()

    talk(simulation)


@pytest.mark.parametrize("way", ["a Failover consumer", "its own connection"])
def test_who_is_not_in_the_way_by_its_silence_is_not_asked(way: str) -> None:
    """Failover has room for others, but not of another type; a connection that asks is alive itself."""

    async def simulation(world: World) -> None:
        owner = await connected(answer_pings=False)
        await owner.subscribe(T, "s", c.SubType.Failover if way == "a Failover consumer" else c.SubType.Exclusive)
        other = await connected() if way == "a Failover consumer" else owner
        begun = world.loop.time()
        with pytest.raises(RawClientError) as refused:
            await other.subscribe(T, "s")
        assert refused.value.code is ServerError.ConsumerBusy
        assert world.loop.time() - begun < 1
        await asyncio.sleep(2 * PATIENCE_S)
        assert owner.pings == 0 and not owner.lost.done()

    talk(simulation)


def test_a_subscription_that_is_deleted_while_its_holder_is_asked_is_made_anew_and_answered_once() -> None:
    """When it is durable, like any other."""

    async def simulation(world: World) -> None:
        owner, other = await connected(answer_pings=False), await connected()
        await owner.subscribe(T, "s")
        other.say(c.CommandSubscribe(T, "s", c.SubType.Exclusive, 1, 900))
        await again(other)
        deleted = world.loop.create_future()
        world.machine.broker.service.topics[T].delete_subscription("s", lambda: deleted.set_result(None))
        await deleted
        world.machine.hold_writes()
        await asyncio.sleep(2 * PATIENCE_S)
        await again(other)
        assert owner.lost.done()
        assert not other.heard(c.CommandSuccess) and not other.heard(c.CommandError)
        world.machine.release_writes()
        await other.hear(c.CommandSuccess)
        await again(other)
        assert not other.heard(c.CommandSuccess) and not other.heard(c.CommandError)
        assert len((await stats(world))["subscriptions"]["s"]["consumers"]) == 1

    talk(simulation)


def test_who_does_not_wait_for_a_holder_any_more_leaves_the_next_of_its_id_alone() -> None:
    async def simulation(world: World) -> None:
        owner, other = await connected(answer_pings=False), await connected()
        await owner.subscribe(T, "s")
        other.say(c.CommandSubscribe(T, "s", c.SubType.Exclusive, 1, 900), c.CommandCloseConsumer(1, 901))
        await other.request(c.CommandSubscribe(T, "other", c.SubType.Exclusive, 1, 902), c.CommandSuccess)
        owner.say(c.CommandPong())
        await again(owner)
        await again(other)
        assert {one.request_id for one in other.heard(c.CommandSuccess)} == {901}
        assert not other.heard(c.CommandError), "who has closed it wants no answer"
        await (await other.producer(T)).publish(b"x")
        other.say(c.CommandFlow(1, 1))
        await other.hear(c.CommandMessage)

    talk(simulation)


# going back in time ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fails", [True, False])
@pytest.mark.parametrize("durable", [True, False])
def test_who_has_left_before_its_place_is_found_leaves_no_cursor_that_is_not_durable(
    fails: bool, durable: bool
) -> None:
    """And nothing of it touches the next consumer with its id."""

    async def simulation(world: World) -> None:
        client = await connected()
        await filled(client, world)
        if fails:
            world.machine.files.fail("read")
        client.say(rolling_back(100, 900, durable=durable), c.CommandCloseConsumer(100, 901))
        client.say(c.CommandSubscribe(T, "other", c.SubType.Exclusive, 100, 902))
        await client.hear(c.CommandSuccess, where=lambda one: one.request_id == 901)
        await client.hear(c.CommandSuccess, where=lambda one: one.request_id == 902)
        await asyncio.sleep(1)
        assert ("s" in (await stats(world))["subscriptions"]) is durable
        assert not client.heard(c.CommandSuccess) and not client.heard(c.CommandError)
        await (await client.producer(T)).publish(b"x")
        client.say(c.CommandFlow(100, 1))
        await client.hear(c.CommandMessage, where=lambda one: one.consumer_id == 100)

    talk_from_disk(simulation)


@pytest.mark.parametrize("seconds", [0, 10])
def test_a_topic_that_is_unloaded_before_a_new_cursor_is_durable_is_not_joined(
    seconds: int, caplog: pytest.LogCaptureFixture
) -> None:
    """Its client hears so once, and finds the cursor where it was made when it comes again."""

    async def simulation(world: World) -> None:
        client = await connected()
        producer = await client.producer(T)
        entry = make_entry(b"x", producer=producer.name, sequence_id=0, publish_time_ms=world.machine.clock.now_ms())
        await producer.receipt(producer.send(b"", entry=entry))
        service = world.machine.broker.service
        old = service.topics[T]
        world.machine.hold_writes()
        client.say(
            c.CommandSubscribe(T, "s", c.SubType.Exclusive, 100, 900, start_message_rollback_duration_sec=seconds)
        )
        await again(client)
        service.unload(TopicName.parse(T))
        world.machine.release_writes()
        refused = await client.hear(c.CommandError)
        assert (refused.error, refused.message) == (ServerError.ServiceNotReady, "Topic is temporarily unavailable")
        await asyncio.sleep(1)
        assert not client.heard(c.CommandError) and not client.heard(c.CommandSuccess)
        consumer = await client.subscribe(T, "s", initial_position=c.InitialPosition.Earliest)
        assert service.topics[T] is not old
        assert len(old.subscriptions) == 0
        last = await (await client.producer(T)).publish(b"y")
        consumer.flow(10)
        assert (await consumer.receive()).message_id == last
        assert not [one.getMessage() for one in caplog.records if one.exc_info]

    talk(simulation)


# a disk that refuses ---------------------------------------------------------------------------------------------


def test_while_the_disk_refuses_writes_a_new_cursor_is_refused_and_those_that_are_there_can_be_joined() -> None:
    """It would not be durable, and its client would wait for as long as the trouble lasts (decision 069)."""

    async def simulation(world: World) -> None:
        client = await connected()
        await (await client.subscribe(T, "there")).close()
        producer = await client.producer(T)
        world.machine.files.faults.append_error_rate = 1.0
        with pytest.raises(RawClientError):
            await producer.receipt(producer.send(b"x"))
        await client.subscribe(T, "there")
        with pytest.raises(RawClientError) as refused:
            await client.subscribe(T, "new")
        assert refused.value.code is ServerError.PersistenceError
        assert set((await stats(world))["subscriptions"]) == {"there"}
        world.machine.files.faults.append_error_rate = 0.0
        await client.subscribe(T, "new")

    talk(simulation)
