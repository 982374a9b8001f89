"""Retry letters and dead letters, in virtual time against a whole broker."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from magnetar.client.errors import RefusedError
from magnetar.client.machines.redelivery.dead_letter_policy import ConsumerDeadLetterPolicy
from magnetar.model.errors import InvalidValueError
from magnetar.model.names import TopicName
from magnetar.protocol import commands as c
from magnetar.protocol.commands import SubType
from tests.sim.world import T, ports_of
from tests.support.delivery_stage import DLQ, RETRY, S, Stage, nothing, play


def test_a_dead_letter() -> None:
    """Delivered once more than the maximum says, then copied with all it had, then acknowledged (rules 0.7, 6.5.2
    and 6.5.3)."""

    async def story(stage: Stage) -> None:
        consumer = await stage.subscribe(
            consumer_name="worker", negative_ack_redelivery_delay_ms=100,
            dead_letter_policy=ConsumerDeadLetterPolicy(2, initial_subscription_name="review"),
        )  # fmt: skip
        await stage.send(b"a", properties={"x": "y"}, partition_key=b"\xff", ordering_key=b"o", event_timestamp=77)
        message = await consumer.receive(1_000)
        for count in range(3):
            message = await consumer.receive(1_000) if count else message
            assert message.redelivery_count() == count
            await consumer.negative_acknowledge(message, error=ValueError(f"try {count}"))
        await nothing(consumer, 5)
        assert stage.backlog() == 0 and stage.backlog(DLQ, "review") == 1
        (dead,) = await stage.all_of(DLQ)
        assert (dead.data(), dead.key_bytes(), dead.ordering_key(), dead.event_timestamp()) == (b"a", b"\xff", "o", 77)
        origin = message.message_id()
        at = f"{origin.ledger_id()}:{origin.entry_id()}:-1"
        assert dead.properties() == {
            "x": "y", "REAL_TOPIC": T, "REAL_SUBSCRIPTION": S, "ORIGIN_MESSAGE_ID": at, "ORIGIN_MESSAGE_IDY_TIME": at,
            "DEAD_LETTER_CAUSE": "negative acknowledgement", "DEAD_LETTER_DELIVERIES": "3",
            "DEAD_LETTER_CONSUMER": "worker", "ORIGIN_PUBLISH_TIME": str(message.publish_timestamp()),
            "EXCEPTION_CLASS": "builtins.ValueError", "EXCEPTION_MESSAGE": "try 2",
        }  # fmt: skip
        assert dead.producer_name().startswith(f"{T}-{S}-worker-") and dead.producer_name().endswith("-DLQ")

    play(story)


@pytest.mark.parametrize("by_index", [True, False])
def test_only_what_was_refused_of_a_batch_is_dead(by_index: bool) -> None:
    async def story(stage: Stage) -> None:
        consumer = await stage.subscribe(
            batch_index_ack_enabled=by_index, negative_ack_redelivery_delay_ms=100,
            dead_letter_policy=ConsumerDeadLetterPolicy(1),
        )  # fmt: skip
        await stage.send(b"a", b"b", b"c", b"d", batch=True)
        for message in [await consumer.receive() for _ in range(4)]:
            await consumer.negative_acknowledge(message)
        first, second, third, fourth = [await consumer.receive() for _ in range(4)]
        await consumer.acknowledge(second)
        await consumer.negative_acknowledge(third)
        await asyncio.sleep(5)
        assert [one.data() for one in await stage.all_of(DLQ)] == [b"c"]
        assert stage.backlog() == 1
        await consumer.acknowledge([first, fourth])
        await nothing(consumer, 5)
        assert stage.backlog() == 0 and len(await stage.all_of(DLQ)) == 1

    play(story)


def test_the_time_of_others_of_a_batch_goes_on_when_one_is_refused_for_the_last_time() -> None:
    async def story(stage: Stage) -> None:
        consumer = await stage.subscribe(
            unacked_messages_timeout_ms=1_000, negative_ack_redelivery_delay_ms=100,
            dead_letter_policy=ConsumerDeadLetterPolicy(1),
        )  # fmt: skip
        await stage.send(b"a", b"b", batch=True)
        for _ in range(2):
            for message in [await consumer.receive() for _ in range(2)]:
                if message.data() == b"b":
                    await consumer.negative_acknowledge(message)
        await nothing(consumer, 10)
        causes = {one.data(): one.properties()["DEAD_LETTER_CAUSE"] for one in await stage.all_of(DLQ)}
        assert causes == {b"a": "acknowledgement timeout", b"b": "negative acknowledgement"}
        assert stage.backlog() == 0

    play(story)


def test_what_was_delivered_too_often_elsewhere_is_dead_on_arrival() -> None:
    async def story(stage: Stage) -> None:
        other = await stage.subscribe()
        await stage.send(b"a", b"b", batch=True)
        for _ in range(3):
            found = [await other.receive() for _ in range(2)]
            await other.negative_acknowledge(found[0], 1)
        await asyncio.sleep(1)
        # The counts of redeliveries end with the last consumer.
        consumer = await stage.subscribe(dead_letter_policy=ConsumerDeadLetterPolicy(1), receiver_queue_size=2)
        await other.close()
        await nothing(consumer, 5)
        dead = await stage.all_of(DLQ)
        assert [one.data() for one in dead] == [b"a", b"b"]
        assert {one.properties()["DEAD_LETTER_CAUSE"] for one in dead} == {"deliveries"}
        await stage.send(b"c")
        assert (await consumer.receive(1_000)).data() == b"c"  # its permits came back

    play(story)


def test_a_dead_letter_topic_that_cannot_be_reached_loses_nothing() -> None:
    """The producer is made anew with pauses; meanwhile nothing is acknowledged or shown again (rule 6.5.7)."""

    async def story(stage: Stage) -> None:
        full = c.ProducerAccessMode.Exclusive
        blocker = await stage.client.create_producer(DLQ, access_mode=full)
        consumer = await stage.subscribe(
            negative_ack_redelivery_delay_ms=100, dead_letter_policy=ConsumerDeadLetterPolicy(1)
        )
        await stage.send(b"a")
        for _ in range(2):
            await consumer.negative_acknowledge(await consumer.receive(1_000))
        await nothing(consumer, 100)
        assert stage.backlog() == 1
        await blocker.close()
        await nothing(consumer, 100)
        assert stage.backlog() == 0 and [one.data() for one in await stage.all_of(DLQ)] == [b"a"]

    play(story)


def test_a_dead_letter_topic_of_another_schema_takes_bytes() -> None:
    """Bytes are copied as they are: a letter refused for its schema would come for ever."""

    async def story(stage: Stage) -> None:
        def record(name: str) -> c.Schema:
            text = f'{{"type":"record","name":"R","fields":[{{"name":"{name}","type":"int"}}]}}'
            return c.Schema("s", text.encode(), c.SchemaType.AVRO, ())

        await (await stage.client.create_producer(DLQ, schema=record("a"))).close()
        consumer = await stage.subscribe(
            schema=record("b"), negative_ack_redelivery_delay_ms=100, dead_letter_policy=ConsumerDeadLetterPolicy(1)
        )
        async with await stage.client.create_producer(T, schema=record("b")) as producer:
            await producer.send(b"\x02")
        for _ in range(2):
            await consumer.negative_acknowledge(await consumer.receive(1_000))
        await nothing(consumer, 10)
        assert [one.data() for one in await stage.all_of(DLQ)] == [b"\x02"]

    play(story)


def test_a_rejected_message_is_a_dead_letter_at_once() -> None:
    async def story(stage: Stage) -> None:
        consumer = await stage.subscribe(dead_letter_policy=ConsumerDeadLetterPolicy(9))
        await stage.send(b"a")
        message = await consumer.receive()
        with pytest.raises(InvalidValueError, match=r"message: a message .* and not MessageId"):
            await consumer.reject(message.message_id())  # type: ignore[arg-type]  # as a newcomer may
        assert await consumer.reject(message, "no such customer", KeyError(7))
        (dead,) = await stage.all_of(DLQ)
        assert dead.properties()["DEAD_LETTER_REASON"] == "no such customer"
        assert dead.properties()["EXCEPTION_CLASS"] == "builtins.KeyError"
        assert dead.properties()["DEAD_LETTER_CAUSE"] == "rejected"
        await asyncio.sleep(1)
        assert stage.backlog() == 0
        plain = await stage.subscribe(f"{T}-other")
        await stage.send(b"b", topic=f"{T}-other")
        assert not await plain.reject(await plain.receive())

    play(story)


def test_a_retry() -> None:
    """A copy after the delay on the retry letter topic, to which the consumer is subscribed; after the maximum a dead
    letter (rules 6.4.3 to 6.4.5 and 6.4.7)."""

    async def story(stage: Stage) -> None:
        consumer = await stage.subscribe(retry_enable=True, dead_letter_policy=ConsumerDeadLetterPolicy(2))
        assert consumer.topic() == T and consumer.topics == [T, RETRY]
        await stage.send(b"a", properties={"x": "y"}, partition_key="k", event_timestamp=77)
        message = await consumer.receive()
        origin = message.message_id()
        for count in (1, 2):
            began = stage.now
            await consumer.reconsume_later(message, timedelta(seconds=3), {"mine": str(count)})
            message = await consumer.receive()
            assert 3 <= stage.now - began < 5
            assert (message.data(), message.partition_key(), message.event_timestamp()) == (b"a", "k", 77)
            at = f"{origin.ledger_id()}:{origin.entry_id()}:-1"
            assert message.properties() == {
                "x": "y", "mine": str(count), "REAL_TOPIC": T, "REAL_SUBSCRIPTION": S, "ORIGIN_MESSAGE_ID": at,
                "ORIGIN_MESSAGE_IDY_TIME": at, "RECONSUMETIMES": str(count), "DELAY_TIME": "3000",
            }  # fmt: skip
            assert message.topic_name() == RETRY and message.redelivery_count() == 0
        await consumer.reconsume_later(message, 3_000, error="still")
        await nothing(consumer, 10)
        (dead,) = await stage.all_of(DLQ)
        found = dead.properties()
        assert (found["RECONSUMETIMES"], found["DEAD_LETTER_CAUSE"]) == ("3", "retries")
        assert found["EXCEPTION_MESSAGE"] == "still"
        assert stage.backlog() == 0 and stage.backlog(RETRY) == 0

    play(story)


def test_a_retry_is_acknowledged_only_after_its_copy() -> None:
    """If it cannot be stored the message is acknowledged negatively, and the caller hears why."""

    async def story(stage: Stage) -> None:
        blocker = await stage.client.create_producer(RETRY, access_mode=c.ProducerAccessMode.Exclusive)
        consumer = await stage.subscribe(retry_enable=True, negative_ack_redelivery_delay_ms=1_000)
        await stage.send(b"a")
        message = await consumer.receive()
        with pytest.raises(RefusedError):
            await consumer.reconsume_later(message, 0)
        began = stage.now
        again = await consumer.receive()
        assert stage.now - began < 1.5 and stage.backlog() == 1
        await blocker.close()
        await asyncio.sleep(60)
        await consumer.reconsume_later(again, 0)
        copy = await consumer.receive()
        await asyncio.sleep(1)
        assert copy.topic_name() == RETRY and stage.backlog() == 0

    play(story)


def test_a_cancelled_retry_happened_or_not() -> None:
    """Before the copy was handed over nothing happened; later the message is acknowledged all the same."""

    async def story(stage: Stage) -> None:
        consumer = await stage.subscribe(retry_enable=True)
        await stage.send(b"a", b"b")
        for number in range(2):
            message = await consumer.receive()
            call = asyncio.ensure_future(consumer.reconsume_later(message, 0))
            if number:
                while not stage.stands(RETRY):
                    await asyncio.wait([call], timeout=0.0001)
            call.cancel()
            await asyncio.wait([call])
            await asyncio.sleep(1)
            assert stage.backlog() == (2 if not number else 1)
            assert len(await stage.all_of(RETRY)) == number

    play(story)


def test_retries_of_partitioned_topics_share_a_topic() -> None:
    """Rules 6.4.1 and 6.5.1: names without a partition; the copy says the topic, the dead letter its partition."""

    async def story(stage: Stage) -> None:
        parent = f"{T}-many"
        await stage.partitioned(parent, 3)
        consumer = await stage.subscribe(
            parent, retry_enable=True, dead_letter_policy=ConsumerDeadLetterPolicy(1), receiver_queue_size=1,
            negative_ack_redelivery_delay_ms=100,
        )  # fmt: skip
        await stage.send(*[b"%d" % number for number in range(6)], topic=parent)
        copies = []
        for _ in range(12):
            message = await consumer.receive()
            if message.topic_name().endswith("-RETRY"):
                copies.append(message)
                await consumer.reconsume_later(message, 0)
            else:
                await consumer.reconsume_later(message, 0)
        assert {one.properties()["REAL_TOPIC"] for one in copies} == {parent}
        assert len(await stage.all_of(f"{parent}-{S}-DLQ")) == 6
        await stage.send(b"more", topic=parent)
        for _ in range(2):
            await consumer.negative_acknowledge(await consumer.receive(2_000))
        await asyncio.sleep(5)
        dead = (await stage.all_of(f"{parent}-{S}-DLQ"))[-1]
        assert dead.data() == b"more" and "-partition-" in dead.properties()["REAL_TOPIC"]

    play(story)


def test_an_older_retry_topic_is_gone_on_with() -> None:
    """As an older dead letter topic is, where there are retries (rules 0.8 and 6.4.2)."""

    async def story(stage: Stage) -> None:
        older = [f"persistent://public/default/{S}-{suffix}" for suffix in ("RETRY", "DLQ")]
        for one in older:
            await (await stage.client.create_producer(one)).close()
        consumer = await stage.subscribe(retry_enable=True)
        assert consumer.topics == [T, older[0]]
        await stage.send(b"a")
        assert await consumer.reject(await consumer.receive())
        assert [one.data() for one in await stage.all_of(older[1])] == [b"a"]

    play(story)


def test_a_cumulative_retry() -> None:
    """For ordered types, whose retry topics other clients refuse (rule 0.20)."""

    async def story(stage: Stage) -> None:
        consumer = await stage.subscribe(consumer_type=SubType.Failover, retry_enable=True)
        await stage.send(b"a", b"b")
        await consumer.receive()
        await consumer.reconsume_later_cumulative(await consumer.receive())
        copy = await consumer.receive()
        await asyncio.sleep(1)
        assert (copy.data(), copy.topic_name()) == (b"b", RETRY) and stage.backlog() == 0
        shared = await stage.subscribe(f"{T}-shared", retry_enable=True)
        with pytest.raises(InvalidValueError, match="cumulatively"):
            await shared.reconsume_later_cumulative(copy)

    play(story)


class Refusing:
    """A dead letter topic that refuses, and what makes it take letters again."""

    def __init__(self, stage: Stage, way: str) -> None:
        self.stage, self.way = stage, way

    async def begin(self) -> dict[str, Any]:
        """Return what the consumer's producer of letters is opened with."""
        if self.way == "too large":
            return {"chunking_enabled": False}
        if self.way == "terminated":
            await self.stage.client.subscribe(DLQ, "keep")
            await ports_of(self.stage.world).operations.terminate(TopicName.parse(DLQ))
        else:
            self.blocker = await self.stage.client.create_producer(DLQ, access_mode=c.ProducerAccessMode.Exclusive)
        return {}


@pytest.mark.parametrize("way", ["terminated", "producer refused", "too large"])
def test_a_dead_letter_that_is_refused_stays_and_others_flow_on(way: str, caplog: pytest.LogCaptureFixture) -> None:
    """It is tried again with pauses that grow, is never acknowledged or shown, and the log says so now and then."""

    async def story(stage: Stage) -> None:
        producer = await Refusing(stage, way).begin()
        policy = ConsumerDeadLetterPolicy(1, letter_producer=producer)
        consumer = await stage.subscribe(negative_ack_redelivery_delay_ms=100, dead_letter_policy=policy)
        async with await stage.client.create_producer(T, chunking_enabled=True) as sender:
            await sender.send(bytes(100_000))
        for _ in range(2):
            await consumer.negative_acknowledge(await consumer.receive(1_000))
        expected = []
        for number in range(100):
            await stage.send(b"%d" % number)
            message = await consumer.receive(1_000)
            assert message.data() == b"%d" % number
            if number % 10:
                await consumer.acknowledge(message)
            else:
                expected.append(message.data())
                await consumer.negative_acknowledge(message)
                await consumer.negative_acknowledge(await consumer.receive(1_000))
            await asyncio.sleep(6)
        chunks = 3
        if way == "too large":
            assert stage.backlog() == chunks and [one.data() for one in await stage.all_of(DLQ)] == expected
        else:
            assert stage.backlog() == chunks + len(expected)
        lines = [one.getMessage() for one in caplog.records if one.name.startswith("magnetar.client")]
        assert 1 < len(lines) <= stage.now / 60 + 2 and all("could not be copied" in one for one in lines), lines
        # Each chunk counts; with the pauses of others it would be tried a hundred times.
        tries = consumer.stats().num_msgs_received - 110
        assert 10 < tries < (90 if way == "too large" else 400), tries

    with caplog.at_level("WARNING"):
        play(story)
