"""The policy subscribeRate in virtual time (rule 14.6)."""

from __future__ import annotations

import asyncio

import pytest

from magnetar.broker.policies.subscribe_rate_limiter import ConsumerIdentifier, SubscribeRateLimiter
from magnetar.model.errors import NotAllowedError, ServerError
from magnetar.model.names import TopicName
from magnetar.model.topic_policies import SubscribeRate
from magnetar.protocol import commands as c
from magnetar.testing.rawclient import RawClient, RawClientError
from tests.wire.bench import Wires, on_broker

T = "persistent://public/default/t"


async def subscribed(client: RawClient, consumer_id: int, name: str, topic: str = T) -> bool:
    """Subscribes and leaves again."""
    request = c.CommandSubscribe(topic, "s", c.SubType.Shared, consumer_id, client.new_id(), consumer_name=name)
    try:
        await client.request(request, c.CommandSuccess)
    except RawClientError as refused:
        assert refused.code is ServerError.NotAllowedError
        assert refused.message == "Subscribe limited by subscribe rate limit per consumer."
        return False
    await client.request(c.CommandCloseConsumer(consumer_id, client.new_id()), c.CommandSuccess)
    return True


def test_one_consumer_again_and_again() -> None:
    async def test(wires: Wires) -> None:
        policies = wires.world.machine.broker.resources.topic_policies
        value = {"subscribeThrottlingRatePerConsumer": 2, "ratePeriodInSecond": 10}
        await policies.update(TopicName.parse(T), "subscribeRate", dict(value))
        client = await wires.open()
        assert [await subscribed(client, 1, "c") for _ in range(3)] == [True, True, False]
        assert await subscribed(client, 2, "c")
        assert await subscribed(client, 1, "d")
        assert [await subscribed(client, 1, "c", f"{T}2") for _ in range(5)] == [True] * 5
        await asyncio.sleep(10)
        assert [await subscribed(client, 1, "c") for _ in range(3)] == [True, True, False]
        await policies.update(TopicName.parse(T), "subscribeRate", None)
        assert await subscribed(client, 1, "c")

    on_broker(test)


def test_memory_is_that_of_one_period() -> None:
    rates, rate = SubscribeRateLimiter(), SubscribeRate(1, 5)
    for number in range(20_000):
        rates.check(rate, ConsumerIdentifier("t", "h", "c", number), number / 100)
    assert len(rates) <= 1025
    with pytest.raises(NotAllowedError):
        rates.check(rate, ConsumerIdentifier("t", "h", "c", 19_999), 200)
    unlimited = SubscribeRateLimiter()
    unlimited.check(SubscribeRate(), ConsumerIdentifier("t", "h", "c", 1), 0)
    assert len(unlimited) == 0
