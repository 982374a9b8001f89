"""Limits of dispatching at each level, through a broker in virtual time (rule 14.6)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from magnetar.model.names import TopicName
from magnetar.model.policies import Json
from magnetar.protocol import commands as c
from tests.wire.bench import Wires, on_broker
from tests.wire.rate_loads import (
    BYTE,
    MSG,
    SPAN,
    Drain,
    Flood,
    T,
    dispatched,
    fill,
    group,
    namespace_policy,
    topic_policy,
)


@pytest.mark.parametrize("level", ["topic", "namespace", "subscription", "of_one", "group", "broker", "default"])
@pytest.mark.parametrize(("rate", "batch"), [(10, 1), (1000, 10), (100_000, 2000)])
def test_dispatching_holds_within_two_hundredths(level: str, rate: int, batch: int) -> None:
    value: Json = {MSG: rate, BYTE: -1, "ratePeriodInSecond": 1}

    async def test(wires: Wires) -> None:
        await fill(wires, 11 * rate // batch, batch)
        asked = [(T, "s")]
        if level == "topic":
            topic_policy(wires, "dispatchRate", value)
            asked.append((T, "s2"))
        elif level == "namespace":
            namespace_policy(wires, topicDispatchRate={"standalone": value})
        elif level == "subscription":
            namespace_policy(wires, subscriptionDispatchRate={"standalone": value})
        elif level == "of_one":
            topic_policy(wires, "subscriptionDispatchRate", {MSG: 1, BYTE: 1})
            topic_policy(wires, "subscriptionDispatchRates", {"s": value})
        elif level == "group":
            group(wires, "g", dispatchRateInMsgs=rate)
            namespace_policy(wires, resource_group_name="g")
        if level in ("group", "broker"):
            await fill(wires, 11 * rate // batch, batch, T + "2")
            asked.append((T + "2", "s"))
        drains = await dispatched(wires, *asked, batch=batch)
        assert sum(drain.messages for drain in drains) == pytest.approx(SPAN * rate, rel=0.02)
        for drain in drains:
            assert drain.order == sorted(set(drain.order))
            assert drain.messages >= 0.8 * SPAN * rate / len(drains)

    settings: Mapping[str, Any] = {
        "broker": {"dispatchThrottlingRateInMsg": rate},
        "default": {"dispatchThrottlingRatePerSubscriptionInMsg": rate},
    }.get(level, {})
    on_broker(test, **settings)


@pytest.mark.parametrize(
    ("setting", "others"),
    [
        ("dispatchThrottlingRatePerTopicInByte", {}), ("dispatchThrottlingRatePerSubscriptionInByte", {}),
        ("dispatchThrottlingRateInByte", {}), ("dispatchThrottlingRatePerTopicInMsg", {}),
        ("dispatchThrottlingRateInMsg", {"dispatchThrottlingOnBatchMessageEnabled": True}),
    ],
)  # fmt: skip
def test_dispatch_settings_of_the_broker(setting: str, others: dict[str, Any]) -> None:
    batch = 50 if others else 1

    async def test(wires: Wires) -> None:
        await fill(wires, 600, batch)
        (drain,) = await dispatched(wires, (T, "s"), batch=batch, seconds=5)
        if setting.endswith("InByte"):
            assert drain.bytes == pytest.approx(5 * 1000, rel=0.04)
        else:
            assert len(drain.order) == pytest.approx(5 * 20, rel=0.04)

    on_broker(test, **{setting: 1000 if setting.endswith("InByte") else 20}, **others)


def test_who_keeps_up_is_not_limited_where_the_setting_says_so() -> None:
    async def test(wires: Wires) -> None:
        await fill(wires, 500)
        (drain,) = await dispatched(wires, (T, "s"), seconds=1)
        assert drain.messages == 500
        await fill(wires, 2000)
        await asyncio.sleep(1)
        assert drain.messages < 2500

    on_broker(test, dispatchThrottlingRatePerTopicInMsg=5, dispatchThrottlingOnNonBacklogConsumerEnabled=False)


def test_a_rate_on_top_of_what_is_published() -> None:
    async def test(wires: Wires) -> None:
        await fill(wires, 2000)
        topic_policy(wires, "publishRate", {"publishThrottlingRateInMsg": 100})
        await Flood(window=20).start(await wires.open())
        (drain,) = await dispatched(wires, (T, "s"), seconds=3)
        before = drain.messages
        await asyncio.sleep(SPAN)
        assert drain.messages - before == pytest.approx(SPAN * (100 + 20), rel=0.05)

    on_broker(
        test, dispatchThrottlingRatePerSubscriptionInMsg=20, dispatchThrottlingRateRelativeToPublishRate=True
    )  # fmt: skip


def test_changes_hold_for_loaded_topics_at_once() -> None:
    async def test(wires: Wires) -> None:
        await fill(wires, 5000)
        drain = await Drain().start(await wires.open(), sub_type=c.SubType.Shared)
        await asyncio.sleep(1)
        assert drain.messages == 5000
        service = wires.world.machine.broker.service
        pump = service.topics[T].subscriptions["s"].pump
        assert pump.throttle is None

        async def received(messages: int) -> int:
            before = drain.messages
            await fill(wires, messages)
            await asyncio.sleep(SPAN)
            return drain.messages - before

        topic_policy(wires, "dispatchRate", {MSG: 10, BYTE: -1})
        assert await received(200) == pytest.approx(100, rel=0.1)
        group(wires, "g", dispatchRateInMsgs=2)
        namespace_policy(wires, resource_group_name="g")
        assert await received(0) == pytest.approx(20, abs=3)
        group(wires, "g", dispatchRateInMsgs=-1)
        assert await received(0) == 80 or drain.messages == 5200
        topic_policy(wires, "dispatchRate", None)
        await received(0)
        assert drain.messages == 5200
        assert pump.throttle is None, "nothing is left of it"
        # a rate that is not above zero sets nothing
        for nothing in (0, -1, -2):
            topic_policy(wires, "dispatchRate", {MSG: nothing, BYTE: nothing, "ratePeriodInSecond": 0})
            assert pump.throttle is None
        namespace_policy(wires, topicDispatchRate={"standalone": {MSG: 5, BYTE: -1}})
        assert pump.throttle is not None, "and the namespace's rate holds"
        assert service.policies.of(TopicName.parse(T)).dispatch_rate.messages == 5

    on_broker(test)


def test_settings_of_a_running_broker() -> None:
    async def test(wires: Wires) -> None:
        given = wires.world.machine.broker.resources.dynamic_configuration
        flood = await Flood().start(await wires.open())
        await asyncio.sleep(0.2)
        assert flood.messages > 200
        await given.put("brokerPublisherThrottlingMaxMessageRate", "10")
        await asyncio.sleep(0.5)
        before = flood.messages
        await asyncio.sleep(SPAN)
        assert flood.messages - before == pytest.approx(100, abs=5)
        await given.delete("brokerPublisherThrottlingMaxMessageRate")
        await asyncio.sleep(0.2)
        assert flood.messages - before > 300

    on_broker(test)


def test_a_message_that_may_wait_for_a_very_long_time() -> None:
    async def test(wires: Wires) -> None:
        topic_policy(wires, "dispatchRate", {MSG: 1, BYTE: 2**63 - 1, "ratePeriodInSecond": 2**31 - 1})
        await fill(wires, 3)
        (drain,) = await dispatched(wires, (T, "s"), seconds=5000)
        assert drain.messages == 1
        topic_policy(wires, "dispatchRate", {MSG: 2**31 - 1, BYTE: 2**63 - 1, "ratePeriodInSecond": 0})
        await asyncio.sleep(1)
        assert drain.messages == 3

    on_broker(test, keepAliveIntervalSeconds=100_000)
