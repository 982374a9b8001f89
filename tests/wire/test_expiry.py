"""What expires by itself, in virtual time: messages, subscriptions, topics."""

from __future__ import annotations

import asyncio
import logging

import pytest

from magnetar.broker.upkeep.periodic_passes import Upkeep
from magnetar.model.names import TopicName
from magnetar.protocol import commands as c
from magnetar.testing.rawclient import RawClient, RawConsumer, RawProducer, make_entry, payload_of
from tests.sim.world import ports_of
from tests.wire.bench import Wires, on_broker

T = "persistent://public/default/t"
HOUR_MS = 3_600_000


def backlog(wires: Wires, name: str = "s") -> int:
    return wires.world.machine.broker.service.topics[T].subscriptions[name].stats().backlog_entries


async def send(wires: Wires, producer: RawProducer, payload: bytes, *, key: str = "", delay_ms: int = 0) -> None:
    now = wires.world.machine.clock.now_ms()
    sequence_id = producer.next_sequence_id
    entry = make_entry(
        payload,
        producer=producer.name,
        sequence_id=sequence_id,
        publish_time_ms=now,
        key=key,
        deliver_at_ms=now + delay_ms if delay_ms else 0,
    )
    await producer.receipt(producer.send(b"", entry=entry, sequence_id=sequence_id))


async def nothing_comes(client: RawClient) -> None:
    client.say(c.CommandPing())
    await client.hear(c.CommandPong)
    assert not client.heard(c.CommandMessage)


async def shared(client: RawClient, sub_type: c.SubType = c.SubType.Shared) -> RawConsumer:
    consumer = await client.subscribe(T, "s", sub_type)
    consumer.flow(100)
    return consumer


def test_delayed_messages_expire_before_their_time_and_count_until_then() -> None:
    """The time to live takes delayed messages, too, whatever their time of delivery (rules 4.5.2, 4.5.3); until then
    they count in the backlog (rule 4.6.6)."""

    async def test(wires: Wires) -> None:
        client = await wires.open()
        await shared(client)
        await send(wires, await client.producer(T), b"later", delay_ms=HOUR_MS)
        assert backlog(wires) == 1
        await asyncio.sleep(100)
        assert backlog(wires) == 0
        await asyncio.sleep(2 * 3600)
        await nothing_comes(client)

    on_broker(test, ttlDurationDefaultInSeconds=30, messageExpiryCheckIntervalInMinutes=1)


def test_messages_of_named_subscriptions_do_not_expire_by_themselves() -> None:
    """An administrator may expire them nevertheless, as in Apache Pulsar."""

    async def test(wires: Wires) -> None:
        client = await wires.open()
        for name in ("s", "kept", "another"):
            await client.subscribe(T, name)
        await send(wires, await client.producer(T), b"m")
        await asyncio.sleep(200)
        assert [backlog(wires, name) for name in ("s", "kept", "another")] == [0, 1, 1]
        subscriptions = ports_of(wires.world).subscriptions
        assert await subscriptions.expire(TopicName.parse(T), "kept", 1)
        assert backlog(wires, "kept") == 0

    on_broker(
        test, ttlDurationDefaultInSeconds=30, messageExpiryCheckIntervalInMinutes=1,
        additionalSystemCursorNames="another, kept",
    )  # fmt: skip


@pytest.mark.parametrize("level", ["topic", "namespace"])
def test_a_shorter_time_to_live_is_looked_at_at_once(level: str) -> None:
    """As in Apache Pulsar, when it is set or shortened; what is younger stays."""

    async def test(wires: Wires) -> None:
        client = await wires.open()
        await client.subscribe(T, "s")
        producer = await client.producer(T)
        for _ in range(3):
            await send(wires, producer, b"m")
            await asyncio.sleep(1000)
        resources = wires.world.machine.broker.service.resources
        name = TopicName.parse(T)
        for seconds, left in ((0, 3), (2500, 2), (1500, 1), (9000, 1)):
            if level == "topic":
                await resources.topic_policies.update(name, "messageTTL", seconds)
            else:
                await resources.namespaces.update(name.namespace, message_ttl_in_seconds=seconds)
            await asyncio.sleep(10)
            assert backlog(wires) == left

    on_broker(test, messageExpiryCheckIntervalInMinutes=24 * 60)


def test_nothing_expires_at_a_change_while_the_policies_are_in_doubt() -> None:
    async def test(wires: Wires) -> None:
        client = await wires.open()
        await client.subscribe(T, "s")
        await send(wires, await client.producer(T), b"m")
        await asyncio.sleep(1000)
        service = wires.world.machine.broker.service
        service.store.keep_all = "a test wants it"
        upkeep = Upkeep(service)  # as at a start: changes are said to this one from now on
        upkeep.start()
        await service.resources.topic_policies.update(TopicName.parse(T), "messageTTL", 10)
        await asyncio.sleep(1000)
        assert backlog(wires) == 1
        await upkeep.close()

    on_broker(test, messageExpiryCheckIntervalInMinutes=24 * 60)


def test_what_expires_at_a_consumer_leaves_the_backlog_and_does_not_come_again() -> None:
    """A message that a consumer holds may expire: it leaves the backlog, and asking for it again brings nothing (rule
    4.5.4)."""

    async def test(wires: Wires) -> None:
        client = await wires.open()
        consumer = await shared(client)
        await send(wires, await client.producer(T), b"m")
        got = await consumer.receive()
        assert backlog(wires) == 1
        await asyncio.sleep(100)
        assert backlog(wires) == 0
        consumer.redeliver([got.message_id])
        await nothing_comes(client)

    on_broker(test, ttlDurationDefaultInSeconds=30, messageExpiryCheckIntervalInMinutes=1)


def test_a_delayed_message_does_not_block_its_key() -> None:
    """A delayed message on Key_Shared lets later ones of its key pass and comes by its own time (rule 7.9)."""

    async def test(wires: Wires) -> None:
        client = await wires.open()
        consumer = await shared(client, c.SubType.Key_Shared)
        producer = await client.producer(T)
        await send(wires, producer, b"later", key="k", delay_ms=10_000)
        await send(wires, producer, b"at once", key="k")
        assert payload_of((await consumer.receive()).entry) == b"at once"
        await nothing_comes(client)
        await asyncio.sleep(12)
        assert payload_of((await consumer.receive()).entry) == b"later"

    on_broker(test)


def test_a_subscription_without_consumers_expires() -> None:
    """subscriptionExpirationTimeMinutes deletes a durable subscription that was idle for so long, and only without
    consumers (rule 4.5.6)."""

    async def test(wires: Wires) -> None:
        client = await wires.open()
        left = await client.subscribe(T, "left")
        await client.subscribe(T, "connected")
        await left.close()
        subscriptions = wires.world.machine.broker.service.topics[T].subscriptions
        await asyncio.sleep(120)
        assert set(subscriptions) == {"left", "connected"}
        await asyncio.sleep(300)
        assert set(subscriptions) == {"connected"}, "the pass of the next minute has seen it"

    on_broker(test, subscriptionExpirationTimeMinutes=5, subscriptionExpiryCheckIntervalInMinutes=1)


@pytest.mark.parametrize("mode", ["delete_when_no_subscriptions", "delete_when_subscriptions_caught_up"])
def test_an_inactive_topic_is_deleted_as_its_mode_says(mode: str, caplog: pytest.LogCaptureFixture) -> None:
    """A topic without producers goes when it has no subscription, in the other mode also when all of them have caught
    up and have no consumer (rule 4.7.3)."""

    async def test(wires: Wires) -> None:
        topics = wires.world.machine.broker.service.topics
        client = await wires.open()
        producer = await client.producer(T)
        consumer = await shared(client)
        await producer.publish(b"m")
        await consumer.ack((await consumer.receive()).message_id)
        await producer.close()
        await asyncio.sleep(600)
        assert T in topics
        await consumer.close()
        await asyncio.sleep(600)
        assert (T in topics) == (mode == "delete_when_no_subscriptions")
        if T in topics:
            await (await client.subscribe(T, "s", c.SubType.Shared)).unsubscribe()
            await asyncio.sleep(600)
            assert T not in topics
        said = [record for record in caplog.records if "it has not been used" in record.getMessage()]
        assert [vars(record).get("topic") for record in said] == [T]

    with caplog.at_level(logging.INFO):
        on_broker(test, brokerDeleteInactiveTopicsMode=mode)
