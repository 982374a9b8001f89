"""Who waits for a limit of rates goes on at once when that limit is lifted or another one takes its place (14.6)."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from magnetar.broker.throttling.rate_limit import RateLimit
from magnetar.broker.topic.publish.producer import Producer, ProducerInfo
from magnetar.broker.topic.publish.publish_rate import HeldConnection
from magnetar.model.subscription_types import SubType
from magnetar.model.topic_policies import DispatchRate, PublishRate, TopicPolicies
from magnetar.protocol.commands import CommandSend, ProducerAccessMode
from magnetar.protocol.entries import EntryMetadata, build_entry
from tests.support.loaded_topic import LoadedTopic
from tests.support.topic_bench import OrdinalConnection, simulated

SLOW_S = 100
"""About as long as the first limit would hold up who has used it up."""


class Held:
    """A connection that waits as a session does."""

    def __init__(self) -> None:
        self.session = self
        self.went_on: list[float] = []

    def throttle(self, limits: tuple[RateLimit, ...]) -> None:
        HeldConnection(limits, lambda: self.went_on.append(asyncio.get_running_loop().time())).wait()

    def receipts(self, *_: object) -> None: ...

    def close(self) -> None: ...


@pytest.mark.parametrize("now", [PublishRate(), PublishRate(messages=1_000_000)], ids=["lifted", "raised"])
def test_a_publisher_goes_on_when_its_limit_is_over(now: PublishRate) -> None:
    async def main() -> None:
        place = LoadedTopic()
        topic, held = place.topic, Held()
        topic.set_policies(TopicPolicies(publish_rate=PublishRate(messages=1)))
        info = ProducerInfo(0, "p", True, 0, ProducerAccessMode.Shared, False, "a:1", "", "", {}, False)
        producer = Producer(info, topic.log, cast("Any", held))
        topic.add_producer(producer, None, lambda error: None)
        for number in range(SLOW_S):
            entry = build_entry(EntryMetadata("p", number, 1), b"m")
            producer.publish(CommandSend(0, number, 1, None, False, None, False, None, entry))
        await asyncio.sleep(1)
        assert not held.went_on
        topic.set_policies(TopicPolicies(publish_rate=now))
        await asyncio.sleep(1)
        assert held.went_on
        await place.durable()
        topic.close()
        await place.store.close()

    simulated(main)


@pytest.mark.parametrize("whose", ["topic's", "subscription's"])
@pytest.mark.parametrize("now", [DispatchRate(), DispatchRate(messages=1_000_000)], ids=["lifted", "raised"])
def test_a_subscription_goes_on_when_its_limit_is_over(whose: str, now: DispatchRate) -> None:
    def policies(rate: DispatchRate) -> TopicPolicies:
        if whose == "topic's":
            return TopicPolicies(dispatch_rate=rate)
        return TopicPolicies(subscription_dispatch_rate=rate)

    async def main() -> None:
        place = LoadedTopic()
        for i in range(20):
            place.append("k", str(i))
        await place.durable()
        topic, connection = place.topic, OrdinalConnection()
        topic.set_policies(policies(DispatchRate(messages=1, period_s=SLOW_S)))
        topic.create_subscription("s", 0)
        consumer = topic.subscriptions["s"].add_consumer(connection, name="c", consumer_id=1, sub_type=SubType.Shared)
        topic.subscriptions["s"].flow(consumer, 1000)
        await asyncio.sleep(1)
        assert len(connection.ordinals) < 20
        topic.set_policies(policies(now))
        await asyncio.sleep(1)
        assert len(connection.ordinals) == 20
        topic.close()
        await place.store.close()

    simulated(main)
