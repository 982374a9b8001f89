"""What comes again and when, receipts and groups of acknowledgements, batches by policy: in virtual time against a
whole broker."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from magnetar.client.errors import AlreadyClosedError, ConnectionLostError
from magnetar.client.machines.batch_receive_policy import ConsumerBatchReceivePolicy
from magnetar.client.machines.message_id import MessageId
from magnetar.client.machines.redelivery.dead_letter_policy import ConsumerDeadLetterPolicy
from magnetar.client.machines.redelivery.redelivery_backoff import MultiplierRedeliveryBackoff
from magnetar.model.errors import InvalidValueError
from magnetar.protocol.commands import SubType
from tests.sim.world import T
from tests.support.delivery_stage import DLQ, Stage, nothing, play


def test_the_whole_table_of_the_backoff() -> None:
    """Rule 6.2.4, through broker and client."""

    async def story(stage: Stage) -> None:
        consumer = await stage.subscribe(negative_ack_redelivery_backoff=MultiplierRedeliveryBackoff(1_000, 60_000, 2))
        await stage.send(b"a")
        message = await consumer.receive()
        for delay in (1, 2, 4, 8, 16, 32, 60, 60):
            began = stage.now
            await consumer.negative_acknowledge(message)
            message = await consumer.receive()
            assert delay <= stage.now - began < delay + 0.4
        began = stage.now
        await consumer.negative_acknowledge(message, timedelta(milliseconds=300))
        await consumer.receive()
        assert 0.3 <= stage.now - began < 0.5

    play(story)


def test_what_the_application_has_for_too_long_comes_again() -> None:
    """Between the time-out and a tick more after it was received, not after it came; what was acknowledged does not
    (rules 6.3.2 and 6.3.4: the whole batch)."""

    async def story(stage: Stage) -> None:
        consumer = await stage.subscribe(unacked_messages_timeout_ms=2_000, batch_index_ack_enabled=True)
        await stage.send(b"a", b"b", b"c", batch=True)
        await stage.send(b"d")
        await asyncio.sleep(30)
        first, second, third, fourth = [await consumer.receive() for _ in range(4)]
        began = stage.now
        assert (first.redelivery_count(), fourth.redelivery_count()) == (0, 0)
        await consumer.acknowledge([second, fourth])
        again = [await consumer.receive() for _ in range(2)]
        assert [one.data() for one in again] == [first.data(), third.data()]
        assert 2 <= stage.now - began < 3.2 and again[0].redelivery_count() == 1
        await consumer.acknowledge(again)
        await nothing(consumer, 10)
        assert stage.backlog() == 0

    play(story)


def test_a_timeout_of_messages_that_wait_in_the_queue_has_not_begun() -> None:
    async def story(stage: Stage) -> None:
        consumer = await stage.subscribe(unacked_messages_timeout_ms=1_000, ack_timeout_tick_ms=100)
        await stage.send(b"a", b"b")
        first = await consumer.receive()
        await asyncio.sleep(0.9)
        await consumer.acknowledge(first)
        await asyncio.sleep(20)
        second = await consumer.receive()
        assert second.redelivery_count() == 0
        await asyncio.sleep(0.9)
        await consumer.negative_acknowledge(second, 5_000)
        began = stage.now
        await consumer.receive()
        assert 5 <= stage.now - began < 5.4  # the time-out ended with the refusal (rule 6.2.6)

    play(story)


def test_the_timeout_of_a_batch_takes_what_waits_out_of_the_queue() -> None:
    """It comes again with its entry, and once."""

    async def story(stage: Stage) -> None:
        consumer = await stage.subscribe(unacked_messages_timeout_ms=1_000, receiver_queue_size=10)
        await stage.send(*[b"%d" % number for number in range(6)], batch=True)
        await consumer.receive()
        await asyncio.sleep(2.5)
        found = [await consumer.receive(500) for _ in range(6)]
        assert [(one.data(), one.redelivery_count()) for one in found] == [(b"%d" % number, 1) for number in range(6)]
        await consumer.acknowledge(found)
        await nothing(consumer, 5)
        assert stage.backlog() == 0

    play(story)


def test_the_table_of_the_timeouts_backoff() -> None:
    """Rule 6.3.3, and a backoff that fails loses no message."""

    async def story(stage: Stage) -> None:
        consumer = await stage.subscribe(
            unacked_messages_timeout_ms=10_000,
            ack_timeout_redelivery_backoff=MultiplierRedeliveryBackoff(1_000, 60_000, 2),
        )
        await stage.send(b"a")
        await consumer.receive()
        for delay in (11, 12, 14, 18, 26, 42, 70, 70):
            began = stage.now
            await consumer.receive()
            assert delay <= stage.now - began < delay + 1.2

    async def broken(stage: Stage) -> None:
        class Broken:
            def next(self, redelivery_count: int) -> float:
                raise RuntimeError("no")

        consumer = await stage.subscribe(
            unacked_messages_timeout_ms=1_000, ack_timeout_redelivery_backoff=Broken(),
            negative_ack_redelivery_backoff=Broken(),
        )  # fmt: skip
        await stage.send(b"a")
        message = await consumer.receive()
        with pytest.raises(RuntimeError):
            await consumer.negative_acknowledge(message)
        assert (await consumer.receive(5_000)).redelivery_count() == 1

    play(story)
    play(broken)


def test_an_exclusive_subscription_gets_everything_again() -> None:
    """Rule 6.3.5; a cumulative acknowledgement ends the time of all before it."""

    async def story(stage: Stage) -> None:
        consumer = await stage.subscribe(consumer_type=SubType.Exclusive, unacked_messages_timeout_ms=1_000)
        await stage.send(b"a", b"b", b"c", b"d")
        found = [await consumer.receive() for _ in range(3)]
        await consumer.acknowledge_cumulative(found[1])
        assert [(await consumer.receive(500)).data() for _ in range(1)] == [b"d"]
        assert [(await consumer.receive()).data() for _ in range(2)] == [b"c", b"d"]
        last = await consumer.receive()
        await consumer.acknowledge_cumulative(last)

    play(story)


def test_a_message_of_chunks_comes_again_as_a_whole() -> None:
    """Rule 6.6.5: refused, had for too long, and dead."""

    async def story(stage: Stage) -> None:
        consumer = await stage.subscribe(
            unacked_messages_timeout_ms=1_000, dead_letter_policy=ConsumerDeadLetterPolicy(2)
        )
        value = bytes(range(256)) * 500
        async with await stage.client.create_producer(T, chunking_enabled=True) as producer:
            await producer.send(value, {"a": "b"})
        assert len((await consumer.receive()).message_id().chunks) > 1
        again = await consumer.receive()
        assert again.data() == value
        await consumer.negative_acknowledge(again, 200)
        assert (await consumer.receive()).redelivery_count() == 2
        await nothing(consumer, 10)
        (dead,) = await stage.all_of(DLQ)
        assert dead.data() == value and dead.properties()["DEAD_LETTER_CAUSE"] == "acknowledgement timeout"
        assert stage.backlog() == 0

    play(story)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"unacked_messages_timeout_ms": 999}, "below 1000"),
        ({"ack_timeout_redelivery_backoff": MultiplierRedeliveryBackoff()}, "without unacked_messages_timeout_ms"),
        ({"negative_ack_redelivery_delay_ms": 99}, "from 100 to"),
        ({"negative_ack_redelivery_backoff": 5}, "a MultiplierRedeliveryBackoff"),
        ({"dead_letter_policy": ConsumerDeadLetterPolicy(1), "consumer_type": SubType.Exclusive}, "Key_Shared"),
        ({"dead_letter_policy": ConsumerDeadLetterPolicy(1, retry_letter_topic="r")}, "without retry_enable"),
        ({"ack_group_time_ms": -1}, "from 0"),
        ({"max_ack_group_size": 0}, "from 1 to"),
    ],
)
def test_what_would_have_no_effect_is_refused(options: dict[str, Any], said: str) -> None:
    async def story(stage: Stage) -> None:
        with pytest.raises(InvalidValueError, match=said):
            await stage.subscribe(**options)
        consumer = await stage.subscribe()
        await stage.send(b"a")
        with pytest.raises(InvalidValueError, match="retry_enable"):  # rule 6.4.6
            await consumer.reconsume_later(await consumer.receive())

    play(story)


def test_acknowledgements_with_receipts() -> None:
    """Awaited is stored; what can never be known is an error, and what was not written waits."""

    async def story(stage: Stage) -> None:
        consumer = await stage.subscribe(ack_receipt_enabled=True)
        await stage.send(b"a", b"b", b"c", b"d")
        await stage.send(b"e", b"f", batch=True)
        found = [await consumer.receive() for _ in range(6)]
        await consumer.acknowledge(found[0])
        assert stage.backlog() == 4
        await asyncio.gather(*(consumer.acknowledge(one) for one in found[1:3]))
        assert stage.backlog() == 2
        await consumer.acknowledge(found[4])  # of a batch: nothing is written yet
        await consumer.acknowledge([found[5], found[3].message_id()])
        assert stage.backlog() == 0
        await stage.send(b"g")
        call = asyncio.ensure_future(consumer.acknowledge(await consumer.receive()))
        await asyncio.sleep(0.0001)
        for link in stage.world.network.links:
            link.cut()
        with pytest.raises(ConnectionLostError):
            await call
        await consumer.close()
        with pytest.raises(AlreadyClosedError):
            await consumer.acknowledge(found[0])

    play(story)


def test_groups_of_acknowledgements() -> None:
    """They wait for the time or for others, and go with a refusal and with closing (rule 5.7.11)."""

    async def story(stage: Stage) -> None:
        consumer = await stage.subscribe(ack_group_time_ms=10_000, max_ack_group_size=3)
        await stage.send(*[b"%d" % number for number in range(10)])
        found = [await consumer.receive() for _ in range(10)]
        await consumer.acknowledge(found[0])
        await asyncio.sleep(9)
        assert stage.backlog() == 10
        await asyncio.sleep(2)
        assert stage.backlog() == 9
        await consumer.acknowledge(found[1:4])
        await asyncio.sleep(0.1)
        assert stage.backlog() == 6
        await consumer.acknowledge(found[4])
        consumer.redeliver(found[5])
        await asyncio.sleep(0.1)
        assert stage.backlog() == 5
        await consumer.acknowledge(found[6])
        await consumer.close()
        assert stage.backlog() == 4

    play(story)


def test_a_list_of_acknowledgements_is_taken_as_a_whole() -> None:
    async def story(stage: Stage) -> None:
        consumer = await stage.subscribe([T, f"{T}-2"])
        await stage.send(b"a", b"b")
        found = [await consumer.receive() for _ in range(2)]
        with pytest.raises(InvalidValueError, match="among the topics"):
            await consumer.acknowledge([*found, MessageId(-1, 1, 1)])
        await asyncio.sleep(1)
        assert stage.backlog() == 2
        await consumer.acknowledge([found[0], found[1].message_id()])
        await consumer.acknowledge([])
        await asyncio.sleep(1)
        assert stage.backlog() == 0

    play(story)


def test_a_batch_is_returned_at_any_of_its_limits() -> None:
    """Rule 6.1.4: messages, bytes or time; a full queue is always enough."""

    async def story(stage: Stage) -> None:
        consumer = await stage.subscribe(
            receiver_queue_size=20, batch_receive_policy=ConsumerBatchReceivePolicy(5, 40, 2_000)
        )
        began = stage.now
        assert await consumer.batch_receive() == [] and 2 <= stage.now - began < 2.1
        await stage.send(*[b"%d" % number for number in range(7)])
        assert [one.data() for one in await consumer.batch_receive()] == [b"0", b"1", b"2", b"3", b"4"]
        began = stage.now
        assert len(await consumer.batch_receive()) == 2 and 2 <= stage.now - began < 2.1
        await stage.send(b"x" * 30, b"y" * 30, b"z" * 90)
        began = stage.now
        assert [len(one.data()) for one in await consumer.batch_receive()] == [30]
        assert [len(one.data()) for one in await consumer.batch_receive()] == [30]
        assert [len(one.data()) for one in await consumer.batch_receive()] == [90]  # one message always fits
        assert stage.now - began < 1
        endless = await stage.subscribe(
            f"{T}-2", receiver_queue_size=4, batch_receive_policy=ConsumerBatchReceivePolicy(1_000, -1, -1)
        )
        await stage.send(*[b"%d" % number for number in range(9)], topic=f"{T}-2")
        assert len(await endless.batch_receive()) == 4
        assert len(await endless.batch_receive(2)) == 2
        with pytest.raises(InvalidValueError, match="from 1 to"):
            await endless.batch_receive(0)

    play(story)


@pytest.mark.parametrize("limits", [(-1, -1, -1), (0, 0, 0)])
def test_a_policy_without_any_limit_is_refused(limits: tuple[int, int, int]) -> None:
    with pytest.raises(InvalidValueError):
        ConsumerBatchReceivePolicy(*limits)
    assert ConsumerBatchReceivePolicy(-1, -1, 5).max_num_bytes == 10 << 20


def test_a_paused_consumer_asks_for_nothing() -> None:
    async def story(stage: Stage) -> None:
        consumer = await stage.subscribe(receiver_queue_size=2)
        await stage.send(*[b"%d" % number for number in range(6)])
        await asyncio.sleep(1)
        await consumer.pause_message_listener()
        assert [(await consumer.receive(100)).data() for _ in range(2)] == [b"0", b"1"]
        await nothing(consumer, 5)
        await consumer.resume_message_listener()
        assert (await consumer.receive(1_000)).data() == b"2"

    play(story)
