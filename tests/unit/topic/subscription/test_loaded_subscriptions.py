"""A subscription is loaded from its cursor when it is first asked for, and is as if it had always been there."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from magnetar.broker.topic.dispatch.dispatch_settings import DispatchSettings
from magnetar.broker.topic.topic import Topic
from magnetar.model.subscription_types import SubType
from magnetar.model.topic_policies import DispatchRate
from magnetar.testing.simloop import SimLoop, run_in
from tests.support.loaded_topic import LoadedTopic, ValueConnection

NAMES = ("first", "second", "third")


def simulated(scenario: Callable[[LoadedTopic], Awaitable[None]]) -> None:
    """With a topic of three subscriptions, the second of which has acknowledged one of two messages; just loaded."""

    async def main() -> None:
        place = LoadedTopic()
        place.append("k", "x")
        place.append("k", "y")
        await place.durable()
        for name in NAMES:
            place.topic.create_subscription(name, 0)
        place.topic.subscriptions["second"].skip_until(0, lambda: None)
        await place.durable()
        await place.restart()
        await scenario(place)
        place.topic.close()
        await place.store.close()

    run_in(SimLoop(1), main())


def loaded(topic: Topic) -> list[str]:
    return [subscription.name for subscription in topic.subscriptions.loaded()]


async def received(topic: Topic, name: str, sub_type: SubType = SubType.Exclusive) -> list[str]:
    connection = ValueConnection()
    subscription = topic.subscriptions[name]
    consumer = subscription.add_consumer(connection, name="c", consumer_id=1, sub_type=sub_type)
    subscription.flow(consumer, 1000)
    await asyncio.sleep(5)
    return connection.values


def test_a_topic_is_loaded_without_its_subscriptions_which_are_known_all_the_same() -> None:
    async def scenario(place: LoadedTopic) -> None:
        topic = place.topic
        assert list(topic.subscriptions) == list(NAMES) == topic.durable_subscriptions()
        assert (len(topic.subscriptions), "third" in topic.subscriptions) == (3, True)
        assert [cursor.mark_delete for cursor in topic.subscriptions.cursors()] == [-1, 0, -1]
        assert (topic.slowest(), topic.consumer_count(), topic.sent()) == (-1, 0, (0, 0))
        topic.trim()
        place.append("k", "z")
        await place.durable()
        assert loaded(topic) == []
        assert await received(topic, "second") == ["y", "z"]
        assert loaded(topic) == ["second"]
        assert topic.subscriptions["second"] is topic.subscriptions.get("second")
        assert topic.sent().messages == 2

    simulated(scenario)


def test_each_is_loaded_when_it_is_reached_unless_it_was_deleted_meanwhile() -> None:
    async def scenario(place: LoadedTopic) -> None:
        topic = place.topic
        found = topic.subscriptions.each()
        assert (next(found).name, loaded(topic)) == ("first", ["first"])
        topic.delete_subscription("second", lambda: None)
        assert [subscription.name for subscription in found] == ["third"]
        assert loaded(topic) == ["first", "third"]
        assert topic.loaded_subscriptions() == topic.subscriptions.loaded()

    simulated(scenario)


def test_deleting_or_closing_what_was_never_loaded() -> None:
    async def scenario(place: LoadedTopic) -> None:
        done: list[bool] = []
        place.topic.delete_subscription("third", lambda: done.append(True))
        await place.durable()
        assert (done, list(place.topic.subscriptions)) == ([True], ["first", "second"])
        place.topic.close()
        assert (len(place.topic.subscriptions), place.topic.subscriptions.get("first")) == (0, None)
        with pytest.raises(RuntimeError, match="closed topic"):
            place.topic.slowest()
        place.load()
        assert list(place.topic.subscriptions) == ["first", "second"]

    simulated(scenario)


def test_what_changed_before_it_was_loaded_holds_for_it() -> None:
    """Settings, limits of rates, what holds messages back and that there are chunks."""

    async def scenario(place: LoadedTopic) -> None:
        topic = place.topic
        topic.set_broker_settings(DispatchSettings(acknowledgment_at_batch_index_level_enabled=True))
        topic.set_policies(topic.policies._replace(dispatch_rate=DispatchRate(messages=1, bytes=-1, period_s=3)))
        topic.chunking.published_one()
        assert loaded(topic) == []
        found = topic.subscriptions["first"]
        assert (found.acks.parts_count, found.pump.sender.chunk_of is not None) == (True, True)
        assert found.pump.throttle is not None
        assert found.settings is topic.subscriptions["third"].settings

    simulated(scenario)


@pytest.mark.parametrize("ended_before", [False, True])
def test_the_end_of_the_topic_is_told_to_whoever_comes_after_it(ended_before: bool) -> None:
    """As if the subscription had been loaded with the topic: unless that had ended by then, and nothing is left (rule
    5.9.11)."""

    async def scenario(place: LoadedTopic) -> None:
        place.topic.subscriptions["first"].skip_until(1, lambda: None)
        await place.durable()
        await place.restart()
        place.topic.termination.terminate(lambda: None, lambda error: None)
        await place.durable()
        await place.durable()
        if ended_before:
            await place.restart()
        topic = place.topic
        assert (topic.termination.terminated, loaded(topic)) == (True, [])
        told: dict[str, int] = {}
        for name in NAMES:
            connection = ValueConnection()
            subscription = topic.subscriptions[name]
            assert subscription.terminated
            consumer = subscription.add_consumer(connection, name="c", consumer_id=1, sub_type=SubType.Exclusive)
            subscription.flow(consumer, 10)
            await asyncio.sleep(1)
            subscription.acks.take(consumer, [0, 1])
            told[name] = connection.ended
        assert told == {"first": 0 if ended_before else 1, "second": 1, "third": 1}

    simulated(scenario)
