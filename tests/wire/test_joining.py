"""Consumers that are being admitted while their subscription or topic goes away."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from magnetar.broker.topic.topic import Topic
from magnetar.model.errors import ServerError
from magnetar.model.names import TopicName
from magnetar.protocol import commands as c
from magnetar.testing.rawclient import RawClientError, payload_of
from tests.wire.bench import Wires, on_broker

T = "persistent://public/default/t"
N = "non-persistent://public/default/t"


@pytest.mark.parametrize("topic", [T, N])
def test_a_reader_that_takes_the_place_of_a_dead_one_is_served(topic: str) -> None:
    """A consumer that waited for a dead reader's place gets a new subscription, since the non-durable one went with its
    last consumer (rules 4.3.2 and 5.3.1)."""

    async def test(wires: Wires) -> None:
        frozen = await wires.open(answer_pings=False)
        await frozen.subscribe(topic, "r", durable=False)
        client = await wires.open()
        reader = await client.subscribe(topic, "r", durable=False)
        reader.flow(10)
        producer = await client.producer(topic)
        await producer.publish(b"m")
        assert payload_of((await reader.receive()).entry) == b"m"

    on_broker(test)


def test_a_consumer_whose_topic_is_unloaded_before_its_cursor_is_durable_has_to_come_again() -> None:
    """The consumer is refused with a code that makes clients try again, and never left on a subscription that is not
    served."""

    async def test(wires: Wires) -> None:
        client = await wires.open()
        await (await client.producer(T)).publish(b"m")
        service = wires.world.machine.broker.service
        asking = asyncio.ensure_future(client.subscribe(T, "s", initial_position=c.InitialPosition.Earliest))
        for _ in range(10_000):
            if "s" in service.topics[T].subscriptions:
                break
            await asyncio.sleep(0.0001)
        assert not service.topics[T].subscriptions["s"].consumers, "the disk was quicker than this test"
        service.unload(TopicName.parse(T))
        with pytest.raises(RawClientError) as refused:
            await asking
        assert refused.value.code is ServerError.ServiceNotReady
        consumer = await client.subscribe(T, "s", initial_position=c.InitialPosition.Earliest)
        consumer.flow(10)
        assert payload_of((await consumer.receive()).entry) == b"m"

    on_broker(test)


def test_a_consumer_whose_subscription_is_deleted_meanwhile_gets_a_new_one() -> None:
    async def test(wires: Wires) -> None:
        frozen = await wires.open(answer_pings=False)
        await frozen.subscribe(T, "s")
        client = await wires.open()
        asking = asyncio.ensure_future(client.subscribe(T, "s", initial_position=c.InitialPosition.Earliest))
        await asyncio.sleep(1)
        topic = wires.world.machine.broker.service.topics[T]
        topic.delete_subscription("s", lambda: None)
        consumer = await asking
        assert topic.subscriptions["s"].consumers
        consumer.flow(10)
        await (await client.producer(T)).publish(b"m")
        assert payload_of((await consumer.receive()).entry) == b"m"

    on_broker(test)


def test_a_seek_that_finds_its_place_after_the_topic_was_unloaded_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A seek by time that had to read the disk is refused if the topic was unloaded meanwhile: its cursor belongs to
    another subscription by then (rule 5.9.2)."""
    waiting: list[Callable[[int], None]] = []
    monkeypatch.setattr(Topic, "find_time", lambda self, time_ms, done, reader=None: waiting.append(done))

    async def test(wires: Wires) -> None:
        client = await wires.open()
        consumer = await client.subscribe(T, "s")
        await (await client.producer(T)).publish(b"m")
        seeking = asyncio.ensure_future(consumer.seek(publish_time_ms=5))
        await asyncio.sleep(1)
        service = wires.world.machine.broker.service
        service.unload(TopicName.parse(T))
        again = await client.subscribe(T, "s")
        again.flow(10)
        await again.ack((await again.receive()).message_id)
        waiting[0](0)
        with pytest.raises(RawClientError) as refused:
            await seeking
        assert refused.value.code is ServerError.ServiceNotReady
        assert service.topics[T].subscriptions["s"].cursor.backlog() == 0

    on_broker(test)
