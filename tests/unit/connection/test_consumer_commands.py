"""UNSUBSCRIBE, SEEK, GET_LAST_MESSAGE_ID and CONSUMER_STATS over the wire: what each changes, says and leaves alone."""

from __future__ import annotations

from typing import Any

import pytest

from magnetar.config.settings import Settings
from magnetar.model.errors import ServerError
from magnetar.protocol import commands as c
from magnetar.storage.store_settings import StoreSettings
from magnetar.testing.rawclient import RawClient, RawClientError, make_entry
from tests.sim.world import T, World, run_seed
from tests.support.conversations import again, batch, connected, entries_of, stats, talk

PARTED = "persistent://public/default/t-partition-3"


def forget(world: World, topic: str) -> None:
    """Nothing of the topic is in memory any more."""
    broker = world.machine.broker
    broker.store.cache.clear(broker.service.topics[topic].log.cached_runs)


def is_quiet(client: RawClient) -> bool:
    return not client.heard(c.CommandSuccess) and not client.heard(c.CommandError)


# UNSUBSCRIBE -----------------------------------------------------------------------------------------------------


def test_the_only_consumer_deletes_its_subscription_and_its_id_is_free() -> None:
    """SUCCESS comes when the deletion is durable (rule 5.9.9)."""

    async def simulation(world: World) -> None:
        client = await connected()
        consumer = await client.subscribe(T, "s", c.SubType.Shared)
        world.machine.hold_writes()
        client.say(c.CommandUnsubscribe(consumer.consumer_id, 900))
        await again(client)
        assert is_quiet(client)
        world.machine.release_writes()
        await client.hear(c.CommandSuccess, where=lambda one: one.request_id == 900)
        assert (await stats(world))["subscriptions"] == {}
        with pytest.raises(RawClientError, match="Consumer not found"):
            await consumer.unsubscribe()
        await client.request(
            c.CommandSubscribe(T, "other", c.SubType.Shared, consumer.consumer_id, client.new_id()), c.CommandSuccess
        )
        assert set((await stats(world))["subscriptions"]) == {"other"}

    talk(simulation)


def test_one_of_two_consumers_deletes_nothing_unless_it_insists() -> None:
    async def simulation(world: World) -> None:
        client, other = await connected(), await connected()
        producer = await client.producer(T)
        mine = await client.subscribe(T, "s", c.SubType.Shared)
        theirs = await other.subscribe(T, "s", c.SubType.Shared)
        with pytest.raises(RawClientError, match="Unconnected or shared consumer") as refused:
            await mine.unsubscribe()
        assert refused.value.code is ServerError.MetadataError
        assert len((await stats(world))["subscriptions"]["s"]["consumers"]) == 2
        await producer.publish(b"x")
        assert await entries_of(mine, 1) == [0]
        assert is_quiet(client)
        await mine.unsubscribe(force=True)
        assert (await other.hear(c.CommandCloseConsumer)).consumer_id == theirs.consumer_id
        assert (await stats(world))["subscriptions"] == {}

    talk(simulation)


@pytest.mark.parametrize("topic", [T, "non-persistent://public/default/n"])
def test_a_subscription_that_goes_with_its_last_consumer_is_deleted_once(topic: str) -> None:
    """It has gone before it could be deleted, and the client has its one answer still."""

    async def simulation(world: World) -> None:
        client = await connected()
        consumer = await client.subscribe(topic, "s", durable=False)
        await consumer.unsubscribe()
        await again(client)
        assert is_quiet(client)
        assert (await stats(world, topic))["subscriptions"] == {}

    talk(simulation)


# SEEK ------------------------------------------------------------------------------------------------------------


def test_a_seek_to_a_time_has_one_answer_which_comes_when_it_is_durable() -> None:
    """The consumer is closed first (rules of 5.9)."""

    async def simulation(world: World) -> None:
        client = await connected()
        producer = await client.producer(T)
        consumer = await client.subscribe(T, "s", c.SubType.Shared)
        for number in range(3):
            entry = make_entry(b"x", producer=producer.name, sequence_id=number, publish_time_ms=1000 * number)
            await producer.receipt(producer.send(b"", entry=entry))
        assert await entries_of(consumer, 3) == [0, 1, 2]
        world.machine.hold_writes()
        client.say(c.CommandSeek(consumer.consumer_id, 900, None, 1000))
        closed = await client.hear(c.CommandCloseConsumer)
        assert closed.consumer_id == consumer.consumer_id
        assert is_quiet(client)
        world.machine.release_writes()
        await client.hear(c.CommandSuccess, where=lambda one: one.request_id == 900)
        assert await entries_of(await client.subscribe(T, "s", c.SubType.Shared), 2) == [1, 2]
        assert is_quiet(client)

    talk(simulation)


def test_a_seek_whose_place_cannot_be_read_is_refused_and_changes_nothing() -> None:
    async def simulation(world: World) -> None:
        world.storage = StoreSettings(cache_bytes=1)
        await world.boot()
        client = await connected()
        producer = await client.producer(T)
        consumer = await client.subscribe(T, "s", c.SubType.Shared)
        for _ in range(20):
            await producer.publish(b"x")
            await world.quiet(1)
        world.machine.files.fail("read")
        with pytest.raises(RawClientError) as refused:
            await consumer.seek(publish_time_ms=world.machine.clock.now_ms() - 10_000)
        assert refused.value.code is ServerError.PersistenceError
        await again(client)
        assert is_quiet(client), "once"
        assert not client.heard(c.CommandCloseConsumer)
        assert await entries_of(consumer, 1) == [0]

    run_seed(simulation, 1, settings=Settings())


def test_a_seek_of_a_stand_by_is_refused_while_another_one_is_under_way() -> None:
    """And the first goes on; when it is durable, the next one may come (rule 5.9.5)."""

    async def simulation(world: World) -> None:
        client, other = await connected(), await connected()
        producer = await client.producer(T)
        consumer = await client.subscribe(T, "s", c.SubType.Failover, consumer_name="a")
        stand_by = await other.subscribe(T, "s", c.SubType.Failover, consumer_name="b")
        ids = [await producer.publish(b"x") for _ in range(3)]
        if (await stats(world))["subscriptions"]["s"]["activeConsumerName"] == "b":
            client, other, consumer, stand_by = other, client, stand_by, consumer
        world.machine.hold_writes()
        client.say(c.CommandSeek(consumer.consumer_id, 900, ids[1]))
        with pytest.raises(RawClientError, match="Failed to fence subscription"):
            await stand_by.seek(ids[2])
        await again(other)
        assert is_quiet(other), "once"
        world.machine.release_writes()
        await client.hear(c.CommandSuccess, where=lambda one: one.request_id == 900)
        await stand_by.seek(ids[2])

    talk(simulation)


@pytest.mark.parametrize("named", [False, True])
def test_a_seek_into_a_batch_goes_to_the_message_that_is_named(named: bool) -> None:
    """What is before it in the batch counts as acknowledged (rule 5.9.3)."""

    async def simulation(world: World) -> None:
        client = await connected()
        producer = await client.producer(T)
        ids = [await batch(producer, 4) for _ in range(2)]
        consumer = await client.subscribe(T, "s", c.SubType.Shared)
        place = ids[1]._replace(ack_set=(0b1100,), batch_size=4) if named else ids[1]
        await consumer.seek(place)
        consumer = await client.subscribe(T, "s", c.SubType.Shared)
        consumer.flow(10)
        message = await consumer.receive()
        assert (message.message_id.entry, message.ack_set) == (1, (0b1100,) if named else ())

    talk(simulation, Settings(acknowledgmentAtBatchIndexLevelEnabled=True))


# GET_LAST_MESSAGE_ID ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("in_memory", [True, False])
def test_the_last_message_is_the_last_of_its_batch(in_memory: bool) -> None:
    """Its entry's metadata says how many there are, wherever it is read from (rule 5.9.12)."""

    async def simulation(world: World) -> None:
        client = await connected()
        consumer = await client.subscribe(PARTED, "s", c.SubType.Shared)
        producer = await client.producer(PARTED)
        for count, index in ((3, 2), (1, 0), (None, -1), (2, 1)):
            last = await producer.publish(b"x") if count is None else await batch(producer, count)
            if not in_memory:
                forget(world, PARTED)
            found = await consumer.last_message_id()
            assert found.last_message_id == c.MessageIdData(last.ledger, last.entry, 3, index)
            mark = found.consumer_mark_delete_position
            assert mark is not None
            assert (mark.ledger, mark.entry) == (last.ledger, last.entry - 1)
            await consumer.ack(last)
            after = (await consumer.last_message_id()).consumer_mark_delete_position
            assert after is not None
            assert (after.ledger, after.entry) == (last.ledger, last.entry)

    talk(simulation)


def test_an_empty_topic_has_no_last_message_and_says_so_once() -> None:
    async def simulation(world: World) -> None:
        client = await connected()
        consumer = await client.subscribe(PARTED, "s", c.SubType.Shared)
        found = await consumer.last_message_id()
        assert found.last_message_id == c.MessageIdData(-1, -1, 3, -1)
        await again(client)
        assert not client.heard(c.CommandGetLastMessageIdResponse) and not client.heard(c.CommandError)

    talk(simulation)


def test_a_last_message_that_cannot_be_read_is_an_error_once_and_the_next_question_is_answered() -> None:
    async def simulation(world: World) -> None:
        client = await connected()
        last = await batch(await client.producer(T), 3)
        consumer = await client.subscribe(T, "s", c.SubType.Shared)
        forget(world, T)
        world.machine.files.fail("read")
        with pytest.raises(RawClientError) as refused:
            await consumer.last_message_id()
        assert refused.value.code is ServerError.PersistenceError
        await again(client)
        assert not client.heard(c.CommandError) and not client.heard(c.CommandGetLastMessageIdResponse)
        found = (await consumer.last_message_id()).last_message_id
        assert (found.ledger, found.entry, found.batch_index) == (last.ledger, last.entry, 2)

    talk(simulation)


# CONSUMER_STATS --------------------------------------------------------------------------------------------------


def test_a_consumer_hears_what_the_statistics_say_of_it_and_of_no_other() -> None:
    """Rates are 0 here, as docs/semantics.md says (rule 1.3.12)."""

    async def simulation(world: World) -> None:
        client = await connected()
        producer = await client.producer(T)
        consumer, other = [await client.subscribe(T, "s", c.SubType.Shared, consumer_name=name) for name in "ab"]
        other.flow(7)
        for _ in range(2):
            await producer.publish(b"x")
        found: Any = await client.request(
            c.CommandConsumerStats(client.new_id(), consumer.consumer_id), c.CommandConsumerStatsResponse
        )
        (shown,) = [
            one for one in (await stats(world))["subscriptions"]["s"]["consumers"] if one["consumerName"] == "a"
        ]
        assert (found.consumer_name, found.available_permits, found.unacked_messages) == ("a", 0, 0)
        assert (found.address, found.connected_since) == (shown["address"], shown["connectedSince"])
        assert found.connected_since
        assert (found.type, found.msg_backlog, found.error) == ("Shared", 2, None)
        rates = (found.msg_rate_out, found.msg_throughput_out, found.msg_rate_redeliver, found.msg_rate_expired)
        assert (*rates, found.message_ack_rate) == (0, 0, 0, 0, 0)
        missing: Any = await client.request(c.CommandConsumerStats(client.new_id(), 99), c.CommandConsumerStatsResponse)
        assert missing.error is ServerError.ConsumerNotFound
        assert missing.message == "Consumer 99 not found"

    talk(simulation)


def test_a_consumer_hears_that_it_is_blocked() -> None:
    """By what it has not acknowledged (rule 1.3.12)."""

    async def simulation(world: World) -> None:
        client = await connected()
        producer = await client.producer(T)
        consumer = await client.subscribe(T, "s", c.SubType.Shared)
        for _ in range(3):
            await producer.publish(b"x")
        consumer.flow(2)
        for held, blocked in ((2, True), (1, False)):
            got = [await consumer.receive() for _ in range(2 if blocked else 0)]
            found: Any = await client.request(
                c.CommandConsumerStats(client.new_id(), consumer.consumer_id), c.CommandConsumerStatsResponse
            )
            assert (found.unacked_messages, found.blocked_consumer_on_unacked_msgs) == (held, blocked)
            if blocked:
                await consumer.ack(*[one.message_id for one in got][:1])

    talk(simulation, Settings(maxUnackedMessagesPerConsumer=2))


# CLOSE_CONSUMER --------------------------------------------------------------------------------------------------


def test_what_a_closed_consumer_had_goes_to_another_and_its_subscription_stays() -> None:
    async def simulation(world: World) -> None:
        client = await connected()
        producer = await client.producer(T)
        consumer = await client.subscribe(T, "s", c.SubType.Shared)
        published = await producer.publish(b"x")
        assert await entries_of(consumer, 1) == [0]
        await consumer.close()
        assert (await stats(world))["subscriptions"]["s"]["consumers"] == []
        consumer.ack_unconfirmed(published)
        other = await client.subscribe(T, "s", c.SubType.Shared)
        assert await entries_of(other, 1) == [0]

    talk(simulation)


@pytest.mark.parametrize("durable", [True, False])
def test_a_cursor_that_is_not_durable_goes_with_its_last_consumer(durable: bool) -> None:
    """And no sooner (rule 4.3.2)."""

    async def simulation(world: World) -> None:
        client = await connected()
        consumers = [await client.subscribe(T, "s", c.SubType.Shared, durable=durable) for _ in range(2)]
        await consumers[0].close()
        assert "s" in (await stats(world))["subscriptions"]
        await consumers[1].close()
        assert ("s" in (await stats(world))["subscriptions"]) is durable

    talk(simulation)
