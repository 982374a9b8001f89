"""ACK and REDELIVER over the wire: what becomes of the ids that a command names, and of those that are none."""

from __future__ import annotations

import asyncio

import pytest

from magnetar.config.settings import Settings
from magnetar.protocol import commands as c
from tests.sim.world import T, World
from tests.support.conversations import again, batch, connected, entries_of, stats, talk


@pytest.mark.parametrize("ack_set", [(), (0b100,)])
def test_acknowledgements_of_two_ledgers_in_one_command_have_one_answer_when_all_are_durable(
    ack_set: tuple[int, ...],
) -> None:
    """Of whole entries, or of one and a part of another (rule 5.7.3)."""

    async def simulation(world: World) -> None:
        client = await connected()
        producer = await client.producer(T)
        consumer = await client.subscribe(T, "s", c.SubType.Shared)
        ids = [await batch(producer, 3) for _ in range(2)]
        world.machine.broker.service.topics[T].log.open_ledger()
        ids += [await batch(producer, 3) for _ in range(2)]
        assert await entries_of(consumer, 4) == [0, 1, 0, 1]
        named = ids[1], ids[2]._replace(ack_set=ack_set, batch_size=3)
        world.machine.hold_writes()
        client.say(c.CommandAck(consumer.consumer_id, c.AckType.Individual, named, request_id=900))
        await again(client)
        assert not client.heard(c.CommandAckResponse)
        world.machine.release_writes()
        await client.hear(c.CommandAckResponse, where=lambda one: one.request_id == 900)
        await asyncio.sleep(1)
        assert not client.heard(c.CommandAckResponse)
        consumer.redeliver()
        wanted = [ids[0], ids[2], ids[3]] if ack_set else [ids[0], ids[3]]
        consumer.flow(10)
        got = [await consumer.receive() for _ in wanted]
        assert [(one.message_id.ledger, one.message_id.entry) for one in got] == [
            (one.ledger, one.entry) for one in wanted
        ]
        await again(client)
        assert not client.heard(c.CommandMessage)
        for one in (ids[0], ids[3]):
            consumer.ack_unconfirmed(one)
        await again(client)
        assert (await stats(world))["subscriptions"]["s"]["msgBacklog"] == (1 if ack_set else 0)

    talk(simulation, Settings(acknowledgmentAtBatchIndexLevelEnabled=True))


@pytest.mark.parametrize("place", [(0, 2), (0, 77), (1, 0), (1000, 0)])
def test_a_cumulative_acknowledgement_behind_all_messages_changes_nothing(place: tuple[int, int]) -> None:
    """It is answered all the same (rule 5.7.13): a client that names what is not there yet has lost no message."""

    async def simulation(world: World) -> None:
        client = await connected()
        producer = await client.producer(T)
        consumer = await client.subscribe(T, "s")
        ids = [await producer.publish(b"m") for _ in range(2)]
        assert await entries_of(consumer, 2) == [0, 1]
        await consumer.ack(c.MessageIdData(ids[0].ledger + place[0], place[1]), cumulative=True)
        assert (await stats(world))["subscriptions"]["s"]["msgBacklog"] == 2
        ids += [await producer.publish(b"m") for _ in range(2)]
        await consumer.ack(ids[2], cumulative=True)
        assert (await stats(world))["subscriptions"]["s"]["msgBacklog"] == 1

    talk(simulation)


def test_a_cumulative_acknowledgement_between_two_ledgers_reaches_the_end_of_the_first() -> None:
    """What an id that does not exist stands behind is acknowledged, if messages follow (rule 5.7.13)."""

    async def simulation(world: World) -> None:
        client = await connected()
        producer = await client.producer(T)
        consumer = await client.subscribe(T, "s")
        first, _ = [await producer.publish(b"m") for _ in range(2)]
        world.machine.broker.service.topics[T].log.open_ledger()
        await producer.publish(b"m")
        assert await entries_of(consumer, 3) == [0, 1, 0]
        await consumer.ack(c.MessageIdData(first.ledger, 77), cumulative=True)
        assert (await stats(world))["subscriptions"]["s"]["msgBacklog"] == 1

    talk(simulation)


@pytest.mark.parametrize("ids", [1, 2])
def test_a_cumulative_acknowledgement_names_one_place_and_those_of_more_change_nothing(ids: int) -> None:
    """They are answered all the same (rule 1.3.5)."""

    async def simulation(world: World) -> None:
        client = await connected()
        producer = await client.producer(T)
        consumer = await client.subscribe(T, "s")
        published = [await producer.publish(b"x") for _ in range(4)]
        assert await entries_of(consumer, 4) == [0, 1, 2, 3]
        await consumer.ack(*published[1 : 1 + ids], cumulative=True)
        assert (await stats(world))["subscriptions"]["s"]["msgBacklog"] == (2 if ids == 1 else 4)

    talk(simulation)


def test_a_cumulative_acknowledgement_of_an_id_that_is_not_there_takes_what_is_before_its_place() -> None:
    """And not what comes after it (rule 5.7.4)."""

    async def simulation(world: World) -> None:
        client = await connected()
        producer = await client.producer(T)
        consumer = await client.subscribe(T, "s")
        last = [await producer.publish(b"x") for _ in range(2)][-1]
        world.machine.broker.service.topics[T].log.open_ledger()
        for _ in range(2):
            await producer.publish(b"x")
        assert await entries_of(consumer, 4) == [0, 1, 0, 1]
        await consumer.ack(last._replace(entry=7), cumulative=True)
        assert (await stats(world))["subscriptions"]["s"]["msgBacklog"] == 2

    talk(simulation)


@pytest.mark.parametrize("ids", [False, True])
def test_what_is_asked_for_again_comes_with_the_epoch_that_was_said(ids: bool) -> None:
    """Clients drop what is older than their last question (rule 5.8.5)."""

    async def simulation(world: World) -> None:
        client = await connected()
        producer = await client.producer(T)
        consumer = await client.subscribe(T, "s", consumer_epoch=3)
        published = await producer.publish(b"x")
        consumer.flow(100)
        assert (await consumer.receive()).consumer_epoch == 3
        consumer.redeliver([published] if ids else (), epoch=5)
        assert (await consumer.receive()).consumer_epoch == 5
        consumer.redeliver([published] if ids else ())
        assert (await consumer.receive()).consumer_epoch == 5

    talk(simulation)


@pytest.mark.parametrize("batched", [False, True])
@pytest.mark.parametrize("received", [0, 2])
def test_an_acknowledgement_of_what_is_not_there_yet_takes_nothing_away(received: int, batched: bool) -> None:
    """The entry that will have this id is delivered, and counts (rule 5.7.4)."""

    async def simulation(world: World) -> None:
        client = await connected()
        producer = await client.producer(T)
        consumer = await client.subscribe(T, "s", c.SubType.Shared)
        last = [await producer.publish(b"x") for _ in range(2)][-1]
        assert await entries_of(consumer, received) == list(range(received))
        consumer.ack_unconfirmed(last._replace(entry=last.entry + 1))
        await again(client)
        await (batch(producer, 3) if batched else producer.publish(b"x"))
        assert (await stats(world))["subscriptions"]["s"]["msgBacklog"] == 3
        assert await entries_of(consumer, 3 - received) == list(range(received, 3))

    talk(simulation)
