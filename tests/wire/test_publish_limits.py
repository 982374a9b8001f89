"""Limits of publishing at each level, through a broker in virtual time (rule 14.6)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from magnetar.model.policies import Json
from magnetar.protocol import commands as c
from tests.wire.bench import Wires, on_broker
from tests.wire.rate_loads import (
    SPAN,
    Flood,
    T,
    batch_of,
    group,
    namespace_policy,
    topic_policy,
)


@pytest.mark.parametrize("level", ["topic", "namespace", "group", "broker", "default"])
@pytest.mark.parametrize(("rate", "batch"), [(10, 1), (1000, 10), (100_000, 2000)])
def test_publishing_holds_within_two_hundredths(level: str, rate: int, batch: int) -> None:
    """Each level, against clients that send as much as they can."""
    value: Json = {"publishThrottlingRateInMsg": rate, "publishThrottlingRateInByte": -1}

    async def test(wires: Wires) -> None:
        topics, shared = [T], level in ("group", "broker")
        if level == "topic":
            topic_policy(wires, "publishRate", value)
        elif level == "namespace":
            namespace_policy(wires, publishMaxMessageRate={"standalone": value})
        elif level == "group":
            group(wires, "g", publishRateInMsgs=rate)
            namespace_policy(wires, resource_group_name="g")
        if shared:
            topics.append(T + "2")
        floods = [await Flood(batch).start(await wires.open(), topic) for topic in topics]
        await asyncio.sleep(SPAN)
        assert sum(flood.messages for flood in floods) == pytest.approx(SPAN * rate, rel=0.02)
        for flood in floods:
            assert flood.order == sorted(set(flood.order))
            assert flood.messages >= 0.3 * SPAN * rate / len(floods)

    settings: Mapping[str, Any] = {
        "broker": {"brokerPublisherThrottlingMaxMessageRate": rate},
        "default": {"maxPublishRatePerTopicInMessages": rate},
    }.get(level, {})
    on_broker(test, **settings)


@pytest.mark.parametrize("level", ["topic", "group", "broker"])
def test_publishing_by_bytes(level: str) -> None:
    async def test(wires: Wires) -> None:
        if level == "topic":
            topic_policy(
                wires, "publishRate", {"publishThrottlingRateInMsg": -1, "publishThrottlingRateInByte": 20_000}
            )
        elif level == "group":
            group(wires, "g", publishRateInBytes=20_000)
            namespace_policy(wires, resource_group_name="g")
        flood = await Flood(size=100).start(await wires.open())
        await asyncio.sleep(SPAN)
        assert flood.bytes == pytest.approx(SPAN * 20_000, rel=0.02)

    on_broker(test, **({"brokerPublisherThrottlingMaxByteRate": 20_000} if level == "broker" else {}))


def test_many_connections_share_a_limit_evenly() -> None:
    async def test(wires: Wires) -> None:
        topic_policy(wires, "publishRate", {"publishThrottlingRateInMsg": 1000})
        floods = [await Flood(window=20).start(await wires.open()) for _ in range(10)]
        await asyncio.sleep(SPAN)
        shares = [flood.messages for flood in floods]
        assert sum(shares) == pytest.approx(SPAN * 1000, rel=0.02)
        assert min(shares) > 0.5 * max(shares)

    on_broker(test)


def test_two_topics_on_one_connection_wait_together_and_others_do_not() -> None:
    async def test(wires: Wires) -> None:
        topic_policy(wires, "publishRate", {"publishThrottlingRateInMsg": 10})
        client, other = await wires.open(), await wires.open()
        limited, free = await client.producer(T), await client.producer(T + "2")
        for _ in range(50):
            limited.send(b"x")
            free.send(b"x")
        begun = wires.now
        apart = await other.producer(T + "2")
        for _ in range(20):
            await apart.publish(b"x")
        assert wires.now - begun < 1
        await free.receipt(49)
        await limited.receipt(49)
        assert 4 < wires.now - begun < 6

    on_broker(test)


def test_what_a_client_asks_behind_its_messages_is_answered_in_its_turn() -> None:
    """A limited connection is not dead: nothing is lost of what it has sent, however long it takes."""

    async def test(wires: Wires) -> None:
        topic_policy(wires, "publishRate", {"publishThrottlingRateInMsg": 1})
        client = await wires.open()
        client.patience_s = 500.0
        producer = await client.producer(T)
        for _ in range(150):
            producer.send(b"x")
        await producer.close()
        assert 140 < wires.now < 160
        assert [receipt.sequence_id for receipt in client.heard(c.CommandSendReceipt)] == list(range(150))

    on_broker(test)


def test_a_batch_of_ten_thousand_against_a_limit_of_ten() -> None:
    async def test(wires: Wires) -> None:
        topic_policy(wires, "publishRate", {"publishThrottlingRateInMsg": 10})
        client = await wires.open()
        client.patience_s = 5000.0
        producer = await client.producer(T)
        await producer.receipt(producer.send(b"", entry=batch_of(producer, 10_000), count=10_000))
        assert wires.now < 1
        begun = wires.now
        await producer.publish(b"x")
        assert 990 < wires.now - begun < 1010
        topic_policy(wires, "publishRate", None)
        await producer.publish(b"x")
        assert wires.now - begun < 1011

    on_broker(test, keepAliveIntervalSeconds=10_000)


def test_a_lost_connection_leaves_the_line_in_its_turn() -> None:
    async def test(wires: Wires) -> None:
        topic_policy(wires, "publishRate", {"publishThrottlingRateInMsg": 1})
        floods = [await Flood().start(client := await wires.open()) for _ in range(3)]
        await asyncio.sleep(3)
        limit = wires.world.machine.broker.service.topics[T].checks.limit
        assert limit is not None
        assert limit.limits[0].waiting == 3
        client.transport.abort()
        await asyncio.sleep(20)
        assert limit.limits[0].waiting == 2
        assert sum(flood.messages for flood in floods[:2]) == pytest.approx(22, abs=3)

    on_broker(test)
