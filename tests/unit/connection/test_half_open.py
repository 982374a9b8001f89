"""What comes while something is being opened or has just been closed, and acknowledgements of parts, over the wire."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from magnetar.config.settings import Settings
from magnetar.model.names import NamespaceName
from magnetar.protocol import commands as c
from magnetar.protocol.entries import EntryMetadata, SingleMessageMetadata, build_entry, join_batch
from magnetar.testing.broker import HOST, PORT
from magnetar.testing.rawclient import RawClient
from tests.sim.world import T, World
from tests.support.at_once import at_once
from tests.support.conversations import connected, stats, talk


def test_a_connection_counts_as_accepted_after_its_handshake_and_as_refused_without_one() -> None:
    async def simulation(world: World) -> None:
        connections = world.machine.broker.connections
        client = await RawClient.open(HOST, PORT)
        await asyncio.sleep(1)
        assert (len(connections), connections.accepted(), connections.refused) == (1, 0, 0)
        await client.close()
        await connected()
        await asyncio.sleep(1)
        assert (len(connections), connections.accepted(), connections.refused) == (1, 1, 1)

    talk(simulation)


def test_a_consumer_that_is_closed_while_it_is_being_opened_leaves_no_trace() -> None:
    async def simulation(world: World) -> None:
        client = await connected()
        client.say(c.CommandSubscribe(T, "s", c.SubType.Exclusive, 1, 900))
        client.say(c.CommandCloseConsumer(1, 901))
        await client.hear(c.CommandSuccess, where=lambda one: one.request_id == 901)
        await asyncio.sleep(1)
        assert (await stats(world, T))["subscriptions"].get("s", {}).get("consumers", []) == []
        again = c.CommandSubscribe(T, "s", c.SubType.Exclusive, 1, 902)
        await client.request(again, c.CommandSuccess)
        assert len((await stats(world, T))["subscriptions"]["s"]["consumers"]) == 1

    talk(simulation)


def test_a_consumer_that_is_closed_before_its_topic_is_durable_makes_no_subscription() -> None:
    """Nobody would read it, and its backlog would be kept for ever."""

    async def simulation(world: World) -> None:
        client = await connected()
        world.machine.hold_writes()
        client.say(c.CommandSubscribe(T, "s", c.SubType.Exclusive, 1, 900))
        client.say(c.CommandCloseConsumer(1, 901))
        await client.hear(c.CommandSuccess, where=lambda one: one.request_id == 901)
        world.machine.release_writes()
        await asyncio.sleep(1)
        assert (await stats(world, T))["subscriptions"] == {}
        assert not client.heard(c.CommandSuccess)

    talk(simulation)


def test_a_producer_that_is_closed_while_it_is_being_opened_leaves_no_trace() -> None:
    async def simulation(world: World) -> None:
        client = await connected()
        client.say(c.CommandProducer(T, 1, 900, "p"))
        client.say(c.CommandCloseProducer(1, 901))
        await client.hear(c.CommandSuccess, where=lambda one: one.request_id == 901)
        await asyncio.sleep(1)
        assert (await stats(world, T))["publishers"] == []
        again = await client.request(c.CommandProducer(T, 1, 902, "p"), c.CommandProducerSuccess)
        assert again.producer_name == "p"

    talk(simulation)


@pytest.mark.parametrize("seconds", [0, 29, 31])
def test_messages_that_crossed_the_end_of_their_producer_are_ignored_for_a_while(seconds: int) -> None:
    """A client learns of it later than it sends; after a keep-alive interval it is a breach of the protocol."""

    async def simulation(world: World) -> None:
        client = await connected()
        producer = await client.producer(T)
        namespaces = world.machine.broker.resources.namespaces
        at_once(namespaces.update(NamespaceName.parse("public/default"), encryption_required=True))
        await client.hear(c.CommandCloseProducer)
        await asyncio.sleep(seconds)
        producer.send(b"late")
        if seconds < 30:
            assert (await client.partitions(T)).partitions == 0
        else:
            await asyncio.wait_for(asyncio.shield(client.lost), 5)
        assert (await stats(world, T))["msgInCounter"] == 0

    talk(simulation, Settings(keepAliveIntervalSeconds=30))


def test_a_producer_that_was_opened_again_and_closed_by_its_client_is_owed_no_patience() -> None:
    """What crossed the end of an earlier one of its id has come by then."""

    async def simulation(world: World) -> None:
        client = await connected()
        producer = await client.producer(T)
        namespaces = world.machine.broker.resources.namespaces
        at_once(namespaces.update(NamespaceName.parse("public/default"), encryption_required=True))
        await client.hear(c.CommandCloseProducer)
        at_once(namespaces.update(NamespaceName.parse("public/default"), encryption_required=False))
        again = c.CommandProducer(T, producer.producer_id, client.new_id())
        await client.request(again, c.CommandProducerSuccess)
        await producer.close()
        producer.send(b"late")
        await asyncio.wait_for(asyncio.shield(client.lost), 5)

    talk(simulation)


def test_a_message_for_a_producer_that_never_was_ends_the_connection() -> None:
    async def simulation(world: World) -> None:
        client = await connected()
        entry = build_entry(EntryMetadata("p", 0, 1), b"x")
        client.say(c.CommandSend(5, 0, 1, None, False, None, False, None, entry, True))
        await asyncio.wait_for(asyncio.shield(client.lost), 5)

    talk(simulation)


def batch(count: int) -> bytes:
    messages = join_batch([(SingleMessageMetadata(), b"m")] * count)
    return build_entry(EntryMetadata("p", 0, 1, num_messages_in_batch=count), messages)


@pytest.mark.parametrize("cumulative", [False, True])
@pytest.mark.parametrize("size", [3, 70])
def test_parts_of_a_batch_are_acknowledged_over_the_wire(cumulative: bool, size: int) -> None:
    """The rest comes again with its ack_set, whole entries before it are gone if it was cumulative (rule 5.7.3)."""

    async def simulation(world: World) -> None:
        client = await connected()
        producer = await client.producer(T)
        ids: list[Any] = []
        for number in range(2):
            receipt = await producer.receipt(producer.send(b"", entry=batch(size), count=size, sequence_id=number))
            ids.append(receipt.message_id)
        consumer = await client.subscribe(T, "s", c.SubType.Exclusive, initial_position=c.InitialPosition.Earliest)
        consumer.flow(1000)
        for _ in range(2):
            await consumer.receive()
        left = set(range(2, size)) if cumulative else set(range(size)) - {1}
        words = tuple(sum(1 << bit % 64 for bit in left if bit // 64 == word) for word in range((size + 63) // 64))
        signed = tuple(word - (1 << 64) if word >> 63 else word for word in words)
        await consumer.ack(ids[1]._replace(ack_set=signed, batch_size=size), cumulative=cumulative)
        consumer.redeliver()
        got = [await consumer.receive() for _ in range(1 if cumulative else 2)]
        assert [message.message_id.entry for message in got] == [one.entry for one in ids[1 if cumulative else 0 :]]
        assert [message.ack_set for message in got][-1] == signed
        shown = (await stats(world, T))["subscriptions"]["s"]
        assert shown["msgBacklog"] == (1 if cumulative else 2)

    talk(simulation, Settings(acknowledgmentAtBatchIndexLevelEnabled=True))
