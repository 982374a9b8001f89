"""Non-persistent topics through frames (rules of group 13)."""

from __future__ import annotations

import asyncio

import pytest

from magnetar.broker.topic.nonpersistent.fan_out import GROUP_ENTRIES_MAX
from magnetar.model.errors import ServerError
from magnetar.protocol import commands as c
from magnetar.testing.rawclient import RawClient, RawClientError, RawConsumer, payload_of
from tests.wire.bench import Wires, on_broker

T = "non-persistent://public/default/t"


async def receipts_of(client: RawClient, count: int) -> list[tuple[int, int, int]]:
    got = []
    for _ in range(count):
        receipt = await client.hear(c.CommandSendReceipt)
        assert receipt.message_id is not None
        got.append((receipt.sequence_id, receipt.message_id.ledger, receipt.message_id.entry))
    return got


async def texts(consumer: RawConsumer, count: int) -> list[str]:
    return [payload_of((await consumer.receive()).entry).decode() for _ in range(count)]


async def arrived(consumer: RawConsumer) -> None:
    """Waits until what the consumer sent before has reached the broker."""
    client = consumer.client
    await client.request(c.CommandConsumerStats(client.new_id(), consumer.consumer_id), c.CommandConsumerStatsResponse)


def test_messages_pass_and_nothing_touches_the_disk() -> None:
    """All messages of a wake-up leave in one write per socket, with ids 0:0, and nothing is written to the journal or
    stored (rules 13.2, 13.3 and 13.5)."""

    async def test(wires: Wires) -> None:
        service = wires.world.machine.broker.service
        journal = service.store.journal
        writes = journal.writes
        sender, taker = await wires.open(), await wires.open()
        producer = await sender.producer(T)
        consumer = await taker.subscribe(T, "s")
        consumer.flow(1_000)
        await arrived(consumer)
        sessions = [connection.session for connection in wires.world.machine.broker.connections]
        before = [session.out.writes for session in sessions]
        for number in range(100):
            producer.send(b"%d" % number)
        assert await receipts_of(sender, 100) == [(number, 0, 0) for number in range(100)]
        assert await texts(consumer, 100) == [str(number) for number in range(100)]
        after = [session.out.writes for session in sessions]
        assert sum(after) - sum(before) <= 8, "receipts and messages leave by wake-up, not one by one"
        assert journal.writes == writes
        assert not service.topics
        assert T not in service.store
        assert service.names_in(service.nonpersistent_topics.by_name[T].name.namespace) == [T]
        assert len(service.nonpersistent_topics.in_flight) == 0

    on_broker(test)


def test_a_connection_with_too_many_on_their_way_loses_the_rest_in_order() -> None:
    """The receipt of a dropped message carries -1:-1, and receipts keep the order (rule 13.3)."""

    async def test(wires: Wires) -> None:
        sender = await wires.open()
        producer = await sender.producer(T)
        for number in range(10):
            producer.send(b"%d" % number)
        got = await receipts_of(sender, 10)
        assert [sequence for sequence, _, _ in got] == list(range(10))
        places = {(ledger, entry) for _, ledger, entry in got}
        assert places <= {(0, 0), (-1, -1)}
        assert got[0][1:] == got[1][1:] == (0, 0), "one more than the limit may be on its way"
        assert (-1, -1) in places, "ten messages in one write are more than two"
        topic = wires.world.machine.broker.service.nonpersistent_topics.by_name[T]
        dropped = sum(1 for _, ledger, _ in got if ledger == -1)
        assert next(iter(topic.producers)).msg_dropped == dropped
        assert topic.msg_in == 10 - dropped

    on_broker(test, maxConcurrentNonPersistentMessagePerConnection=1)


def test_the_default_limit_drops_nothing_of_one_topic() -> None:
    async def test(wires: Wires) -> None:
        sender, taker = await wires.open(), await wires.open()
        producer = await sender.producer(T)
        consumer = await taker.subscribe(T, "s", c.SubType.Shared)
        consumer.flow(100_000)
        await arrived(consumer)
        count = 20 * GROUP_ENTRIES_MAX
        for number in range(count):
            producer.send(b"%d" % number)
        assert {one[1:] for one in await receipts_of(sender, count)} == {(0, 0)}
        assert await texts(consumer, count) == [str(number) for number in range(count)]

    on_broker(test)


def test_a_subscription_ends_with_its_last_consumer() -> None:
    """A subscription of a non-persistent topic ends with its last consumer (rule 13.6)."""

    async def test(wires: Wires) -> None:
        client, other = await wires.open(), await wires.open()
        consumer = await client.subscribe(T, "s", c.SubType.Shared)
        second = await other.subscribe(T, "s", c.SubType.Shared)
        topic = wires.world.machine.broker.service.nonpersistent_topics.by_name[T]
        await consumer.close()
        assert list(topic.subscriptions) == ["s"]
        with pytest.raises(RawClientError) as refused:
            await second.last_message_id()
        assert refused.value.code is ServerError.UnknownError
        await other.close()
        await client.subscribe(T, "t")
        assert list(topic.subscriptions) == ["t"]

    on_broker(test)


def test_an_idle_topic_is_collected() -> None:
    """A topic is removed after the policy's time without a client, and never while one is connected (rule 13.10)."""

    async def test(wires: Wires) -> None:
        by_name = wires.world.machine.broker.service.nonpersistent_topics.by_name
        client = await wires.open()
        producer = await client.producer(T)
        await asyncio.sleep(200)
        assert T in by_name
        await producer.close()
        await asyncio.sleep(45)
        assert T in by_name
        await asyncio.sleep(40)
        assert T not in by_name

    on_broker(test)


def test_non_persistent_topics_can_be_switched_off() -> None:
    async def test(wires: Wires) -> None:
        client = await wires.open()
        with pytest.raises(RawClientError, match="unable to load non-persistent topic") as refused:
            await client.producer(T)
        assert refused.value.code is ServerError.NotAllowedError

    on_broker(test, enableNonPersistentTopics=False)
