"""publishRate makes connections wait (rule 14.6), in virtual time."""

from __future__ import annotations

from magnetar.model.names import TopicName
from magnetar.testing.rawclient import RawClient
from tests.support.at_once import at_once
from tests.wire.bench import Wires, on_broker

T = "persistent://public/default/t"
RATE, BYTES = "publishThrottlingRateInMsg", "publishThrottlingRateInByte"


def limit(wires: Wires, **rate: int) -> None:
    policies = wires.world.machine.broker.resources.topic_policies
    at_once(policies.update(TopicName.parse(T), "publishRate", dict(rate) if rate else None))


async def seconds_for(wires: Wires, client: RawClient, topic: str, messages: int, size: int = 10) -> float:
    """Sends each message when the one before it is stored; returns when all receipts are there."""
    producer = await client.producer(topic)
    begun = wires.now
    for _ in range(messages):
        await producer.publish(b"x" * size)
    await producer.close()
    return wires.now - begun


def test_as_many_messages_as_may_come() -> None:
    async def test(wires: Wires) -> None:
        client = await wires.open()
        assert await seconds_for(wires, client, T, 100) < 2
        limit(wires, **{RATE: 10})
        # ten at once, then one every tenth of a second
        assert 8.5 < await seconds_for(wires, client, T, 100) < 12
        limit(wires)
        assert await seconds_for(wires, client, T, 100) < 2

    on_broker(test)


def test_as_many_bytes_as_may_come() -> None:
    async def test(wires: Wires) -> None:
        client = await wires.open()
        limit(wires, **{BYTES: 10_000})
        assert 8.5 < await seconds_for(wires, client, T, 100, 1000) < 13

    on_broker(test)


def test_whoever_sends_is_made_to_wait_and_nobody_else() -> None:
    """A producer that does not wait for receipts gets them all, at the rate, and nothing is refused."""

    async def test(wires: Wires) -> None:
        limit(wires, **{RATE: 10})
        client, other = await wires.open(), await wires.open()
        producer = await client.producer(T)
        begun = wires.now
        sent = [producer.send(b"x") for _ in range(40)]
        assert await seconds_for(wires, other, f"{T}2", 50) < 2
        for sequence_id in sent:
            await producer.receipt(sequence_id)
        # what came in one piece was taken in one piece; the next has to wait for it
        await producer.publish(b"y")
        assert 2.5 < wires.now - begun < 5
        topic = wires.world.machine.broker.service.topics[T]
        assert topic.checks.limit is not None
        assert topic.checks.limit.times > 0

    on_broker(test)


def test_topics_that_store_nothing() -> None:
    async def test(wires: Wires) -> None:
        topic = T.replace("persistent", "non-persistent")
        policies = wires.world.machine.broker.resources.topic_policies
        await policies.update(TopicName.parse(topic), "publishRate", {RATE: 10})
        assert 3.5 < await seconds_for(wires, await wires.open(), topic, 50) < 7

    on_broker(test)


def test_a_broker_wide_rate() -> None:
    async def test(wires: Wires) -> None:
        assert 3.5 < await seconds_for(wires, await wires.open(), T, 50) < 7

    on_broker(test, maxPublishRatePerTopicInMessages=10)
