"""Consumers of several topics and partitions, in virtual time against a whole broker."""

from __future__ import annotations

import re

import pytest

from magnetar.client.errors import RefusedError
from magnetar.client.machines.message_id import MessageId
from magnetar.model.errors import InvalidNamespaceNameError, InvalidValueError
from magnetar.protocol.commands import InitialPosition
from tests.sim.world import T
from tests.support.delivery_stage import S, Stage, nothing, play

OTHER = f"{T}-other"
MANY = f"{T}-many"


def test_one_queue_has_the_messages_of_all_topics() -> None:
    """Of topics and of their partitions; the broker has one consumer for each (rule 6.8.1)."""

    async def story(stage: Stage) -> None:
        await stage.partitioned(MANY, 2)
        consumer = await stage.subscribe([T, MANY])
        internal = [T, f"{MANY}-partition-0", f"{MANY}-partition-1"]
        assert consumer.topics == internal
        found = stage.world.machine.broker.service.topics
        assert [len(found[one].subscriptions[S].consumers) for one in internal] == [1, 1, 1]
        for one in internal:
            await stage.send(b"a", topic=one)
        assert {(await consumer.receive(1_000)).topic_name() for _ in internal} == set(internal)

    play(story)


def test_a_pattern_is_of_one_namespace() -> None:
    """What stands for the namespace is its name, and no part of the pattern (rule 6.8.1)."""

    async def story(stage: Stage) -> None:
        await stage.send(b"a")
        with pytest.raises(InvalidNamespaceNameError):
            await stage.client.subscribe(re.compile("persistent://public/.*/t.*"), S)
        consumer = await stage.client.subscribe(re.compile("persistent://public/default/t.*"), S)
        assert consumer.topics == [T]

    play(story)


def test_a_topic_that_does_not_exist_yet_is_subscribed_once_it_is_created() -> None:
    """Its first messages are delivered, too (rule 6.8.5)."""

    async def story(stage: Stage) -> None:
        pattern = re.compile(f"{T}.*")
        consumer = await stage.client.subscribe(
            pattern, S, initial_position=InitialPosition.Earliest, pattern_auto_discovery_period=1
        )
        assert consumer.topics == []
        await stage.send(b"a", topic=OTHER)
        message = await consumer.receive(60_000)
        assert (message.topic_name(), message.data()) == (OTHER, b"a")

    play(story)


def test_a_seek_by_an_id_needs_to_know_its_topic() -> None:
    """Times and both ends mean all topics, an id one of them (rules 5.9.8 and 6.8.6)."""

    async def story(stage: Stage) -> None:
        await stage.partitioned(MANY, 2)
        consumer = await stage.subscribe(MANY, start_message_id_inclusive=True)
        for number in range(2):
            await stage.send(b"%d" % number, topic=f"{MANY}-partition-{number}")
        messages = [await consumer.receive(1_000) for _ in range(2)]
        for everywhere in (MessageId.earliest, 0):
            await consumer.seek(everywhere)
            assert {(await consumer.receive(1_000)).data() for _ in range(2)} == {b"0", b"1"}
        at = messages[0].message_id()
        with pytest.raises(InvalidValueError, match="an id that says which, or a time"):
            await consumer.seek(MessageId(-1, at.ledger_id(), at.entry_id()))
        for place in (at, MessageId.deserialize(at.serialize(), messages[0].topic_name())):
            await consumer.seek(place)
            assert (await consumer.receive(1_000)).data() == messages[0].data()
            await nothing(consumer, 5)
        await consumer.seek(MessageId.latest)
        await nothing(consumer, 5)

    play(story)


def test_a_subscription_is_deleted_on_all_topics() -> None:
    """Where one cannot be, the error says why, and the next call deletes what was left (rule 6.8.7)."""

    async def story(stage: Stage) -> None:
        def subscribed() -> list[str]:
            found = stage.world.machine.broker.service.topics
            return [one for one in (T, OTHER) if S in found[one].subscriptions]

        consumer = await stage.subscribe([T, OTHER])
        beside = await stage.subscribe(OTHER)
        with pytest.raises(RefusedError, match=f"unsubscribe {S} on {OTHER}"):
            await consumer.unsubscribe()
        assert subscribed() == [OTHER]
        await beside.close()
        await consumer.unsubscribe()
        assert subscribed() == []

    play(story)


@pytest.mark.parametrize("partitions", [0, 3])
def test_a_reader_of_the_latest_that_includes_it_begins_with_the_last_message(partitions: int) -> None:
    """Of each partition (rule 6.9.4)."""

    async def story(stage: Stage) -> None:
        internal = [T]
        if partitions:
            await stage.partitioned(T, partitions)
            internal = [f"{T}-partition-{number}" for number in range(partitions)]
        for one in internal[: 2 if partitions else 1]:  # one partition has nothing
            await stage.send(b"before", one[-1:].encode(), topic=one)
        reader = await stage.client.create_reader(T, MessageId.latest, start_message_id_inclusive=True)
        found = []
        while await reader.has_message_available():
            found.append((await reader.read_next(1_000)).data())
        assert sorted(found) == sorted(one[-1:].encode() for one in internal[: 2 if partitions else 1])
        await stage.send(b"later", topic=internal[-1])
        assert await reader.has_message_available() and (await reader.read_next(1_000)).data() == b"later"
        assert not await reader.has_message_available()

    play(story)


def test_a_reader_that_is_moved_in_one_partition_has_the_others_as_before() -> None:
    """Ids of different partitions say nothing of each other."""

    async def story(stage: Stage) -> None:
        await stage.partitioned(T, 2)
        ids = []
        for number in range(2):
            async with await stage.client.create_producer(f"{T}-partition-{number}") as producer:
                ids.append(await producer.send(b"%d" % number))
        assert ids[0] < ids[1]
        reader = await stage.client.create_reader(T, MessageId.earliest, receiver_queue_size=0)
        await reader.seek(ids[1])
        assert await reader.has_message_available()
        assert (await reader.read_next(10_000)).data() == b"0"
        assert not await reader.has_message_available()

    play(story)


def test_a_message_in_chunks_that_is_included_comes_from_its_first_chunk() -> None:
    """By a seek to its id, and where a reader begins (rule 6.6.6)."""

    async def story(stage: Stage) -> None:
        large = bytes(range(250)) * 600
        async with await stage.client.create_producer(T, chunking_enabled=True) as producer:
            await producer.send(b"before")
            place = await producer.send(large)
            await producer.send(b"after")
        assert len(place.chunks) > 2
        consumer = await stage.subscribe(start_message_id_inclusive=True)
        for again in (place, MessageId.deserialize(place.serialize())):
            await consumer.seek(again)
            assert [(await consumer.receive(1_000)).data() for _ in range(2)] == [large, b"after"]
            reader = await stage.client.create_reader(T, again, start_message_id_inclusive=True)
            assert [(await reader.read_next(1_000)).data() for _ in range(2)] == [large, b"after"]
            await reader.seek(again)
            assert (await reader.read_next(1_000)).data() == large

    play(story)
