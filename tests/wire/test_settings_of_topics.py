"""What the broker's settings make of a topic that has no policies of its own, in virtual time."""

from __future__ import annotations

import asyncio

import pytest

from magnetar.model.errors import ServerError
from magnetar.protocol import commands as c
from magnetar.protocol.entries import EntryMetadata, SingleMessageMetadata, build_entry, join_batch
from magnetar.testing.rawclient import RawClientError, make_entry
from tests.wire.bench import Wires, on_broker

T = "persistent://public/default/t"
N = "non-persistent://public/default/t"
STRING = c.Schema("s", b"", c.SchemaType.STRING)
NUMBER = c.Schema("s", b"", c.SchemaType.INT32)


def test_parts_of_a_batch_stay_acknowledged() -> None:
    """acknowledgmentAtBatchIndexLevelEnabled: what comes again says which of its messages are left."""

    async def test(wires: Wires) -> None:
        client = await wires.open()
        consumer = await client.subscribe(T, "s", c.SubType.Shared)
        consumer.flow(10)
        producer = await client.producer(T)
        payload = join_batch([(SingleMessageMetadata(), b"%d" % i) for i in range(3)])
        metadata = EntryMetadata(producer.name, 0, 1, num_messages_in_batch=3)
        producer.send(b"", entry=build_entry(metadata, payload), count=3)
        got = await consumer.receive()
        await consumer.ack(got.message_id._replace(ack_set=(0b110,), batch_size=3))
        consumer.redeliver([got.message_id])
        assert (await consumer.receive()).ack_set == (0b110,)

    on_broker(test, acknowledgmentAtBatchIndexLevelEnabled=True)


def test_a_new_active_consumer_waits() -> None:
    """activeConsumerFailoverDelayTimeMillis, from the moment when the consumer before it has gone."""

    async def test(wires: Wires) -> None:
        client = await wires.open()
        first = await client.subscribe(T, "s", c.SubType.Failover, consumer_name="a")
        await asyncio.sleep(10)
        second = await client.subscribe(T, "s", c.SubType.Failover, consumer_name="b")
        second.flow(10)
        await (await client.producer(T)).publish(b"m")
        begun = wires.now
        await first.close()
        await second.receive()
        assert wires.now - begun == pytest.approx(5, abs=0.5)

    on_broker(test, activeConsumerFailoverDelayTimeMillis=5_000)


@pytest.mark.parametrize("topic", [T, N])
def test_names_of_new_subscriptions_are_those_of_a_path(topic: str) -> None:
    """strictlyVerifySubscriptionName: of durable ones and readers; one that is there keeps its consumers."""

    async def test(wires: Wires) -> None:
        client = await wires.open()
        await client.subscribe(topic, "-=:._1a")
        for name in ("a/b", "a b", " ", "\u00e9", "a\n", "x,y"):
            for durable in (True, False):
                with pytest.raises(RawClientError, match="the current value is") as refused:
                    await client.subscribe(topic, name, durable=durable)
                assert refused.value.code is ServerError.ProducerBusy
        # Apache Pulsar does not look at the name that a producer gives
        if topic == T:
            await client.producer(topic, initial_subscription_name="i/s")
            await client.subscribe(topic, "i/s")
        assert client.heard(c.CommandCloseConsumer) == []

    on_broker(test, strictlyVerifySubscriptionName=True)


def test_a_backlog_may_be_so_old() -> None:
    """backlogQuotaDefaultLimitSecond: producers have to go when the oldest message of a backlog is older."""

    async def test(wires: Wires) -> None:
        client = await wires.open()
        await client.subscribe(T, "s")
        producer = await client.producer(T)
        now_ms = wires.world.machine.clock.now_ms()
        await producer.receipt(producer.send(b"", entry=make_entry(b"m", producer=producer.name, sequence_id=0,
                                                                  publish_time_ms=now_ms)))  # fmt: skip
        await asyncio.sleep(100)
        assert client.heard(c.CommandCloseProducer)
        with pytest.raises(RawClientError) as refused:
            await client.producer(T)
        assert refused.value.code is ServerError.ProducerBlockedQuotaExceededError

    on_broker(test, backlogQuotaDefaultLimitSecond=30, backlogQuotaCheckIntervalInSeconds=10)


def test_messages_come_at_their_time_and_not_a_tick_before() -> None:
    """isDelayedDeliveryDeliverAtTimeStrict, with a tick that is longer than the delay."""

    async def test(wires: Wires) -> None:
        client = await wires.open()
        consumer = await client.subscribe(T, "s", c.SubType.Shared)
        consumer.flow(10)
        producer = await client.producer(T)
        due_ms = wires.world.machine.clock.now_ms() + 5_000
        entry = make_entry(b"m", producer=producer.name, sequence_id=0, deliver_at_ms=due_ms)
        await producer.receipt(producer.send(b"", entry=entry))
        await asyncio.sleep(4)
        assert not client.heard(c.CommandMessage)
        await asyncio.sleep(2)
        assert len(client.heard(c.CommandMessage)) == 1

    on_broker(test, isDelayedDeliveryDeliverAtTimeStrict=True, delayedDeliveryTickTimeMillis=20_000)


def test_what_retention_no_longer_keeps_goes_at_the_next_pass() -> None:
    """retentionCheckIntervalInSeconds: how long that takes."""

    async def test(wires: Wires) -> None:
        client = await wires.open()
        consumer = await client.subscribe(T, "s")
        consumer.flow(10)
        await (await client.producer(T)).publish(b"m")
        await consumer.ack((await consumer.receive()).message_id)
        log = wires.world.machine.broker.service.topics[T].log
        await asyncio.sleep(50)
        assert log.first == 0
        await asyncio.sleep(30)
        assert log.first == 1

    on_broker(test, retentionCheckIntervalInSeconds=5, defaultRetentionTimeInMinutes=1, defaultRetentionSizeInMB=-1)


def test_schemas_follow_each_other_as_the_setting_says() -> None:
    """schemaCompatibilityStrategy: any schema may follow, where by default this one is refused."""

    async def test(wires: Wires) -> None:
        client = await wires.open()
        await client.producer(T, schema=STRING)
        await client.producer(T, schema=NUMBER)

    on_broker(test, schemaCompatibilityStrategy="ALWAYS_COMPATIBLE")


def test_a_topic_is_compacted_when_so_much_is_new() -> None:
    """brokerServiceCompactionThresholdInBytes; of one key the last message is left."""

    async def test(wires: Wires) -> None:
        client = await wires.open()
        producer = await client.producer(T)
        for i in range(20):
            await producer.publish(b"%0100d" % i, key="k")
        await asyncio.sleep(10)
        reader = await client.subscribe(
            T, "r", read_compacted=True, initial_position=c.InitialPosition.Earliest
        )  # fmt: skip
        reader.flow(100)
        await asyncio.sleep(1)
        assert len(client.heard(c.CommandMessage)) == 1

    on_broker(test, brokerServiceCompactionThresholdInBytes=500, brokerServiceCompactionMonitorIntervalInSeconds=2)


def test_keys_are_shared_out_in_ranges() -> None:
    """subscriptionKeySharedUseConsistentHashing=false halves the widest range for a newcomer."""

    async def test(wires: Wires) -> None:
        client = await wires.open()
        for name in ("a", "b"):
            await client.subscribe(T, "s", c.SubType.Key_Shared, consumer_name=name)
        stats = wires.world.machine.broker.service.topics[T].subscriptions["s"].stats()
        assert [len(one.key_hash_ranges) for one in stats.consumers] == [1, 1]

    on_broker(test, subscriptionKeySharedUseConsistentHashing=False)
