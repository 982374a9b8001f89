"""SUBSCRIBE and PRODUCER details that probes of Apache Pulsar 4.0.8 settled."""

from __future__ import annotations

import pytest

from magnetar.model.errors import ServerError
from magnetar.protocol import commands as c
from magnetar.testing.rawclient import RawClient, RawClientError, RawConsumer, payload_of
from tests.wire.bench import Wires, on_broker

T = "persistent://public/default/t"


async def payloads(consumer: RawConsumer, count: int) -> list[bytes]:
    consumer.flow(100)
    got = [payload_of((await consumer.receive()).entry) for _ in range(count)]
    consumer.client.say(c.CommandPing())
    await consumer.client.hear(c.CommandPong)
    assert not consumer.client.heard(c.CommandMessage)
    return got


async def published(client: RawClient, count: int) -> list[c.MessageIdData]:
    producer = await client.producer(T)
    return [await producer.publish(b"%d" % number) for number in range(count)]


@pytest.mark.parametrize("batch_index", [-1, 1])
def test_a_reader_gets_the_entry_it_starts_at(batch_index: int) -> None:
    """The entry that a start id names is delivered, batched or not; the client drops what it has seen (rule 4.3.6)."""

    async def test(wires: Wires) -> None:
        client = await wires.open()
        ids = await published(client, 3)
        start = ids[1]._replace(batch_index=batch_index)
        reader = await client.subscribe(T, "r", durable=False, start_message_id=start)
        assert await payloads(reader, 2) == [b"1", b"2"]
        beyond = ids[2]._replace(entry=70)
        assert await payloads(await client.subscribe(T, "b", durable=False, start_message_id=beyond), 0) == []
        first = c.MessageIdData(-1, -1)
        assert len(await payloads(await client.subscribe(T, "f", durable=False, start_message_id=first), 3)) == 3

    on_broker(test)


def test_a_start_id_does_not_place_a_durable_cursor() -> None:
    """A start id places only non-durable cursors (rule 4.3.6)."""

    async def test(wires: Wires) -> None:
        client = await wires.open()
        ids = await published(client, 2)
        assert await payloads(await client.subscribe(T, "s", start_message_id=ids[0]), 0) == []

    on_broker(test)


def test_the_initial_subscription_of_a_producer_gets_its_first_message() -> None:
    """A producer's initial subscription is created at Earliest before the producer is admitted; an existing one keeps
    its position (rule 3.1.9)."""

    async def test(wires: Wires) -> None:
        client = await wires.open()
        await published(client, 1)
        producer = await client.producer(T, initial_subscription_name="dlq")
        await producer.publish(b"new")
        consumer = await client.subscribe(T, "dlq")
        assert await payloads(consumer, 2) == [b"0", b"new"]
        assert producer.opened.producer_ready
        await consumer.ack(c.MessageIdData(*(await consumer.last_message_id()).last_message_id[:2]), cumulative=True)
        await consumer.close()
        await client.producer(T, initial_subscription_name="dlq")
        assert await payloads(await client.subscribe(T, "dlq"), 0) == []

    on_broker(test)


def test_no_initial_subscription_where_none_may_be_created() -> None:
    """A producer whose initial subscription may not be created is refused, and its id is free again (rule 3.1.9)."""

    async def test(wires: Wires) -> None:
        client = await wires.open()
        with pytest.raises(RawClientError, match="NotAllowedError: Could not create the initial subscription"):
            await client.request(c.CommandProducer(T, 1, 1, initial_subscription_name="dlq"), c.CommandProducerSuccess)
        await client.request(c.CommandProducer(T, 1, 2), c.CommandProducerSuccess)

    on_broker(test, allowAutoSubscriptionCreation=False)


def test_an_open_id_is_not_opened_for_another_topic() -> None:
    """An id that is open already is answered with success, and nothing is created (rules 3.1.3 and 5.1.4)."""

    async def test(wires: Wires) -> None:
        client = await wires.open()
        for topic in (T, T + "-other"):
            await client.request(c.CommandSubscribe(topic, "s", c.SubType.Shared, 1, 1), c.CommandSuccess)
            opened = await client.request(c.CommandProducer(topic, 1, 2, "p"), c.CommandProducerSuccess)
            assert (opened.producer_name, opened.producer_ready) == ("p", True)
        assert list(wires.world.machine.broker.service.topics) == [T]

    on_broker(test)


def test_a_producer_of_a_missing_topic_is_refused() -> None:
    """Without automatic creation a producer of a missing topic gets TopicNotFound (rule 2.11)."""

    async def test(wires: Wires) -> None:
        client = await wires.open()
        with pytest.raises(RawClientError, match=f"TopicNotFound: Topic not found {T}"):
            await client.producer(T)
        with pytest.raises(RawClientError, match=f"TopicNotFound: Topic {T} does not exist"):
            await client.subscribe(T, "s")

    on_broker(test, allowAutoTopicCreation=False)


def test_lookup_names_this_broker() -> None:
    """LOOKUP names this broker, also to clients that came through a proxy or a port forward (rule 2.3)."""

    async def test(wires: Wires) -> None:
        answer = await (await wires.open()).lookup(T)
        assert answer.response is c.LookupType.Connect
        assert answer.authoritative and answer.proxy_through_service_url

    on_broker(test)


def test_key_shared_may_be_switched_off() -> None:
    """A Key_Shared consumer is refused by name if subscriptionKeySharedEnable=false, others are not (rule 5.6.20)."""

    async def test(wires: Wires) -> None:
        client = await wires.open()
        with pytest.raises(RawClientError, match="Key_Shared subscription is disabled by broker") as refused:
            await client.subscribe(T, "s", c.SubType.Key_Shared)
        assert refused.value.code is ServerError.NotAllowedError
        await client.subscribe(T, "s", c.SubType.Shared)

    on_broker(test, subscriptionKeySharedEnable=False)
