"""SUBSCRIBE: what of it a subscription and a consumer keep, where a new cursor begins, and what a refusal leaves."""

from __future__ import annotations

from typing import Any

import pytest

from magnetar.config.settings import Settings
from magnetar.model.errors import ServerError
from magnetar.protocol import commands as c
from magnetar.testing.rawclient import RawClient, RawClientError, RawConsumer, make_entry
from tests.sim.world import T, World
from tests.support.conversations import again, connected, stats, talk

EARLIEST = c.InitialPosition.Earliest


async def first_entry(consumer: RawConsumer) -> int:
    consumer.flow(100)
    return (await consumer.receive()).message_id.entry


async def filled(client: RawClient, entries: int = 4) -> list[c.MessageIdData]:
    """Entries that were published a second apart, as they say themselves."""
    producer = await client.producer(T)
    ids: list[Any] = []
    for number in range(entries):
        entry = make_entry(b"x", producer=producer.name, sequence_id=number, publish_time_ms=1000 * number)
        ids.append((await producer.receipt(producer.send(b"", entry=entry))).message_id)
    return ids


def test_what_a_consumer_says_of_itself_is_shown() -> None:
    async def simulation(world: World) -> None:
        client = await connected()
        named = await client.subscribe(
            T, "s", c.SubType.Shared, consumer_name="c", priority_level=3, replicate_subscription_state=True,
            subscription_properties=(("a", "b"),),
        )  # fmt: skip
        for _ in range(2):
            await client.subscribe(T, "plain", c.SubType.Shared)
        shown = (await stats(world))["subscriptions"]
        (mine,) = shown["s"]["consumers"]
        assert mine["consumerName"] == "c"
        (consumer,) = world.machine.broker.service.topics[T].subscriptions["s"].consumers
        assert consumer.state.priority == 3
        assert shown["s"]["isReplicated"] and not shown["plain"]["isReplicated"]
        assert shown["s"]["subscriptionProperties"] == {"a": "b"}
        given = [one["consumerName"] for one in shown["plain"]["consumers"]]
        assert len(set(given)) == 2 and all(len(name) == 10 for name in given), "those without a name get one"
        await named.close()

    talk(simulation)


@pytest.mark.parametrize(
    ("fields", "first"),
    [
        ({"initial_position": EARLIEST}, 0),
        ({"durable": False, "start": 2}, 2),
        ({"durable": False, "start": 2, "initial_position": EARLIEST}, 2),
        ({"durable": False, "initial_position": EARLIEST}, 0),
        ({"start": 2, "initial_position": EARLIEST}, 0),
        ({}, 4),
        ({"start": 2}, 4),
        ({"durable": False}, 4),
    ],
)
def test_where_a_new_cursor_begins(fields: dict[str, Any], first: int) -> None:
    """A start id is for cursors that are not durable; the others have an initial position (rules 4.3.5, 4.3.6)."""

    async def simulation(world: World) -> None:
        client = await connected()
        ids = await filled(client)
        given = {**fields}
        if (start := given.pop("start", None)) is not None:
            given["start_message_id"] = ids[start]
        consumer = await client.subscribe(T, "s", **given)
        await filled(client, 1)
        assert await first_entry(consumer) == first

    talk(simulation)


@pytest.mark.parametrize(("seconds", "first"), [(1, 3), (2, 2), (3, 1), (100, 0)])
@pytest.mark.parametrize("there", [False, True])
def test_who_goes_back_in_time_gets_what_was_published_since(seconds: int, first: int, there: bool) -> None:
    """To the second, also where the subscription is there already (rule 4.3.7)."""

    async def simulation(world: World) -> None:
        client = await connected()
        if there:
            await (await client.subscribe(T, "s")).close()
        producer = await client.producer(T)
        now = world.machine.clock.now_ms()
        for number in range(4):
            entry = make_entry(
                b"x", producer=producer.name, sequence_id=number, publish_time_ms=now - 3500 + 1000 * number
            )
            await producer.receipt(producer.send(b"", entry=entry))
        consumer = await client.subscribe(T, "s", start_message_rollback_duration_sec=seconds)
        assert await first_entry(consumer) == first

    talk(simulation)


def test_where_no_subscription_is_made_by_itself_those_that_are_there_can_be_joined() -> None:
    async def simulation(world: World) -> None:
        client = await connected()
        await (await client.subscribe(T, "reader", durable=False)).close()
        topic = world.machine.broker.service.topics[T]
        topic.subscription("there", durable=True, ordinal=lambda: 0, properties={}, done=lambda: None)
        await client.partitions(T)
        await client.subscribe(T, "there")
        with pytest.raises(RawClientError) as refused:
            await client.subscribe(T, "new")
        assert refused.value.code is ServerError.SubscriptionNotFound
        assert set((await stats(world))["subscriptions"]) == {"there"}

    talk(simulation, Settings(allowAutoSubscriptionCreation=False))


@pytest.mark.parametrize("topic", [T, "non-persistent://public/default/t"])
@pytest.mark.parametrize("durable", [True, False])
def test_a_new_subscription_has_the_name_of_a_path_where_that_is_asked_for(topic: str, durable: bool) -> None:
    """strictlyVerifySubscriptionName: one refusal, nothing is left, and the same client may come with another name."""

    async def simulation(world: World) -> None:
        client = await connected()
        await client.subscribe(topic, "-=:._1a", durable=durable)
        with pytest.raises(RawClientError, match="the current value is") as refused:
            await client.subscribe(topic, "a/b", durable=durable)
        assert refused.value.code is ServerError.ProducerBusy
        await again(client)
        assert not client.heard(c.CommandError) and not client.heard(c.CommandSuccess)
        service = world.machine.broker.service
        found: Any = service.topics.get(topic) or service.nonpersistent_topics.by_name[topic]
        assert set(found.subscriptions) == {"-=:._1a"}

    talk(simulation, Settings(strictlyVerifySubscriptionName=True))
