"""Which limits of rates hold for which subscription of a topic, as policies and subscriptions come and go (14.6)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from magnetar.broker.throttling.rate_limit import LimitLevel, RateAmounts
from magnetar.broker.throttling.shared_limits import BrokerRates
from magnetar.broker.topic.subscription.dispatch_rates import DispatchRates
from magnetar.broker.topic.topic import Topic
from magnetar.model.subscription_types import SubType
from magnetar.model.topic_policies import DispatchRate, TopicPolicies
from magnetar.testing.simloop import SimLoop, run_in
from tests.support.loaded_topic import LoadedTopic
from tests.support.topic_bench import OrdinalConnection

ENTRIES = 100
TOPIC, OWN = DispatchRate(messages=10), DispatchRate(messages=4)


def simulated(scenario: Callable[[LoadedTopic], Awaitable[None]]) -> None:
    async def main() -> None:
        place = LoadedTopic()
        for number in range(ENTRIES):
            place.append("k", f"{number}")
        await place.durable()
        await scenario(place)
        place.topic.close()
        await place.store.close()

    run_in(SimLoop(1), main())


def subscribed(topic: Topic, name: str) -> OrdinalConnection:
    """A subscription at the beginning, with a consumer that wants everything."""
    subscription = topic.subscriptions.get(name) or topic.subscription(
        name, durable=False, ordinal=lambda: 0, properties={}, done=lambda: None
    )
    connection = OrdinalConnection()
    consumer = subscription.add_consumer(connection, name="c", consumer_id=1, sub_type=SubType.Exclusive)
    subscription.flow(consumer, 1000)
    return connection


def levels(topic: Topic, name: str) -> list[tuple[LimitLevel, int]]:
    """The limits that hold for a subscription, with their messages per period."""
    throttle = topic.subscriptions[name].pump.throttle
    return [] if throttle is None else [(one.level, one.amounts.messages) for one in throttle.limits]


S, T = LimitLevel.SUBSCRIPTION, LimitLevel.TOPIC


@pytest.mark.parametrize("whose", ["the topic", "each subscription", "one subscription"])
def test_a_topic_that_is_loaded_with_limits_obeys_them_from_its_first_subscription_on(whose: str) -> None:
    async def scenario(place: LoadedTopic) -> None:
        place.topic.create_subscription("kept", 0)
        await place.durable()
        place.loaded_with = {
            "the topic": TopicPolicies(dispatch_rate=TOPIC),
            "each subscription": TopicPolicies(subscription_dispatch_rate=TOPIC),
            "one subscription": TopicPolicies(dispatch_rates={"kept": TOPIC}),
        }[whose]
        await place.restart()
        assert levels(place.topic, "kept") == [(T if whose == "the topic" else S, 10)]
        connection = subscribed(place.topic, "kept")
        await asyncio.sleep(0.05)
        assert len(connection.ordinals) == 1, "a tenth of it at once"
        subscribed(place.topic, "later")
        assert len(levels(place.topic, "later")) == (whose != "one subscription")

    simulated(scenario)


def test_a_limit_holds_as_soon_as_it_is_set_for_who_is_there_and_who_comes_later() -> None:
    async def scenario(place: LoadedTopic) -> None:
        topic = place.topic
        topic.create_subscription("before", 0)
        assert topic.dispatch_rates is None
        topic.set_policies(TopicPolicies(dispatch_rate=TOPIC))
        assert levels(topic, "before") == [(T, 10)]
        connection = subscribed(topic, "before")
        await asyncio.sleep(0.05)
        assert len(connection.ordinals) == 1, "a tenth of it at once"
        later = subscribed(topic, "later")
        assert levels(topic, "later") == [(T, 10)]
        await asyncio.sleep(5)
        assert 48 <= len(connection.ordinals) + len(later.ordinals) <= 53, "they share it"
        assert len(later.ordinals) >= 20

    simulated(scenario)


@pytest.mark.parametrize(
    ("policies", "of_one", "of_other"),
    [
        (TopicPolicies(subscription_dispatch_rate=OWN), [(S, 4)], [(S, 4)]),
        (TopicPolicies(dispatch_rate=TOPIC, subscription_dispatch_rate=OWN), [(S, 4), (T, 10)], [(S, 4), (T, 10)]),
        (TopicPolicies(dispatch_rates={"one": DispatchRate(2)}), [(S, 2)], []),
        (
            TopicPolicies(dispatch_rate=TOPIC, subscription_dispatch_rate=OWN, dispatch_rates={"one": DispatchRate(2)}),
            [(S, 2), (T, 10)],
            [(S, 4), (T, 10)],
        ),
        (TopicPolicies(dispatch_rate=DispatchRate(0)), [], []),
        (TopicPolicies(dispatch_rate=DispatchRate(-1, -1)), [], []),
        (TopicPolicies(dispatch_rate=DispatchRate(bytes=5)), [(T, 0)], [(T, 0)]),
    ],
)
def test_each_subscription_has_its_own_and_shares_the_topics(
    policies: TopicPolicies, of_one: list[Any], of_other: list[Any]
) -> None:
    async def scenario(place: LoadedTopic) -> None:
        topic = place.topic
        topic.create_subscription("one", 0)
        topic.set_policies(policies)
        topic.create_subscription("other", 0)
        assert (levels(topic, "one"), levels(topic, "other")) == (of_one, of_other)
        assert (topic.dispatch_rates is None) == (not of_one)

    simulated(scenario)


def test_who_waits_for_a_limit_goes_on_when_it_is_raised_or_taken_away() -> None:
    async def scenario(place: LoadedTopic) -> None:
        topic = place.topic
        slow = DispatchRate(messages=1, period_s=3600)
        topic.set_policies(TopicPolicies(dispatch_rate=slow, subscription_dispatch_rate=slow))
        connection = subscribed(topic, "s")
        await asyncio.sleep(10)
        assert len(connection.ordinals) == 1
        topic.set_policies(TopicPolicies(dispatch_rate=slow, subscription_dispatch_rate=DispatchRate(messages=50)))
        await asyncio.sleep(10)
        assert len(connection.ordinals) == 1, "the other one holds"
        topic.set_policies(TopicPolicies(dispatch_rate=DispatchRate(messages=20), subscription_dispatch_rate=slow))
        await asyncio.sleep(0.01)
        assert len(connection.ordinals) <= 2
        topic.set_policies(TopicPolicies(dispatch_rate=DispatchRate(messages=20)))
        await asyncio.sleep(1.5)
        assert 25 < len(connection.ordinals) < 40
        topic.set_policies(TopicPolicies())
        await asyncio.sleep(1)
        assert connection.ordinals == list(range(ENTRIES))
        assert levels(topic, "s") == []

    simulated(scenario)


@pytest.mark.parametrize("kind", ["topic", "own", "both"])
def test_a_limit_that_did_not_change_keeps_what_it_has_given(kind: str) -> None:
    """Another policy is no way to get the tokens of a second twice; nor is another subscription."""

    async def scenario(place: LoadedTopic) -> None:
        topic = place.topic
        slow, none = DispatchRate(messages=50, period_s=36_000), DispatchRate()
        policies = TopicPolicies(
            dispatch_rate=none if kind == "own" else slow, subscription_dispatch_rate=none if kind == "topic" else slow
        )
        topic.set_policies(policies)
        connection = subscribed(topic, "s")
        for ttl in range(1, 4):
            topic.set_policies(policies._replace(message_ttl_s=ttl))
            topic.create_subscription(f"s{ttl}", 0)
            topic.shared_limits_changed()
            await asyncio.sleep(1)
        assert len(connection.ordinals) == 5
        topic.delete_subscription("s", lambda: None)
        await place.durable()
        again = subscribed(topic, "s")
        await asyncio.sleep(1)
        assert len(again.ordinals) == (5 if kind == "own" else 0), "the topic's holds for it, too"

    simulated(scenario)


def test_the_brokers_limit_holds_beside_the_topics_and_goes_with_its_setting() -> None:
    async def scenario(place: LoadedTopic) -> None:
        topic = place.topic
        topic.create_subscription("s", 0)
        topic._shared.set_rates(BrokerRates(dispatch=RateAmounts(messages=7)), topic.shared_limits_changed)
        assert levels(topic, "s") == [(LimitLevel.BROKER, 7)]
        topic.set_policies(TopicPolicies(dispatch_rate=TOPIC, subscription_dispatch_rate=OWN))
        topic.create_subscription("later", 0)
        for name in ("s", "later"):
            assert levels(topic, name) == [(S, 4), (T, 10), (LimitLevel.BROKER, 7)]
        topic._shared.set_rates(BrokerRates(), topic.shared_limits_changed)
        assert levels(topic, "s") == [(S, 4), (T, 10)]

    simulated(scenario)


def test_a_deleted_subscriptions_limit_is_not_the_next_ones() -> None:
    async def scenario(place: LoadedTopic) -> None:
        topic = place.topic
        topic.set_policies(TopicPolicies(subscription_dispatch_rate=DispatchRate(messages=50, period_s=36_000)))
        for _ in range(2):
            connection = subscribed(topic, "s")
            await asyncio.sleep(1)
            assert len(connection.ordinals) == 5
            topic.delete_subscription("s", lambda: None)
            await place.durable()

    simulated(scenario)


@pytest.mark.parametrize("least", [1, 10])
def test_a_rate_relative_to_publishing_grows_with_it(least: int) -> None:
    """``relativeToPublishRate``: so many on top of what was published in the last second."""

    async def scenario(place: LoadedTopic) -> None:
        published = [0, 0]
        topic = place.topic
        relative = DispatchRate(messages=least, relative_to_publish_rate=True)
        rates = DispatchRates(
            topic.subscriptions,
            TopicPolicies(dispatch_rate=relative),
            topic._shared,
            lambda: (published[0], published[1]),
        )
        topic.create_subscription("s", 0)
        throttle: Any = topic.subscriptions["s"].pump.throttle
        (limit,) = throttle.limits

        async def second(messages: int, size: int) -> None:
            published[0] += messages
            published[1] += size
            await asyncio.sleep(1.001)
            limit.room()

        for messages, added in ((0, 0), (7, 7), (30, 30), (0, 0)):
            await second(messages, 1000)
            assert (limit.amounts.messages, limit.amounts.bytes) == (least + added, 0)
        rates.close()
        assert topic.subscriptions.added is None

    simulated(scenario)


def test_bytes_relative_to_publishing_over_a_longer_period() -> None:
    async def scenario(place: LoadedTopic) -> None:
        published = [0, 0]
        topic = place.topic
        relative = DispatchRate(bytes=100, period_s=10, relative_to_publish_rate=True)
        topic.create_subscription("s", 0)
        DispatchRates(
            topic.subscriptions,
            TopicPolicies(dispatch_rate=relative),
            topic._shared,
            lambda: (published[0], published[1]),
        )
        throttle: Any = topic.subscriptions["s"].pump.throttle
        (limit,) = throttle.limits
        published[:] = [50, 30]
        await asyncio.sleep(2)
        limit.room()
        assert (limit.amounts.messages, limit.amounts.bytes) == (0, 250), "30 in two seconds are 150 in ten"

    simulated(scenario)
