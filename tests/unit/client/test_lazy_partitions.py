"""``lazy_start_partitioned_producers``: a partition is opened when it gets its first message, and nothing gets lost."""

from __future__ import annotations

import asyncio
import queue
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]  # pyarrow carries no types
import pytest

import magnetar
from magnetar.client.aio.producers.producer import Producer
from magnetar.client.errors import (
    AlreadyClosedError,
    ClientError,
    ClientTimeoutError,
    MessageTooLargeError,
    QueueFullError,
    RefusedError,
)
from magnetar.client.machines.message import Message
from magnetar.protocol.commands import ProducerAccessMode
from magnetar.testing import PulsarBroker
from tests.sim.world import T
from tests.support.delivery_stage import Stage, client_in, play

COUNT = 4
PARTITIONS = [f"{T}-partition-{number}" for number in range(COUNT)]


def opened(stage: Stage) -> list[int]:
    """The partitions that have a producer."""
    topics = stage.world.machine.broker.service.topics
    return [n for n, one in enumerate(PARTITIONS) if (found := topics.get(one)) is not None and found.producers]


async def lazy(stage: Stage, **options: Any) -> Producer:
    if not stage.stands(PARTITIONS[0]) and stage.world.machine.broker.service.topics.get(PARTITIONS[0]) is None:
        await stage.partitioned(T, COUNT)
    return await stage.client.create_producer(T, lazy_start_partitioned_producers=True, **options)


async def lazy_to_one(stage: Stage, **options: Any) -> tuple[Producer, int]:
    """A producer whose messages all go to one partition, which is not open yet."""
    way = [0]
    producer = await lazy(stage, message_router=lambda *_: way[0], **options)
    taken = opened(stage)
    way[0] = next(number for number in range(COUNT) if number not in taken)
    return producer, way[0]


async def contents(stage: Stage) -> list[list[Message]]:
    return [await stage.all_of(one) for one in PARTITIONS]


@pytest.mark.parametrize("batching", [False, True])
def test_a_partition_is_opened_by_its_first_message(batching: bool) -> None:
    async def story(stage: Stage) -> None:
        used = stage.client._environment.memory.used
        producer = await lazy(stage, batching_enabled=batching, batching_max_publish_delay_ms=1_000)
        first = opened(stage)
        assert len(first) == 1
        assert (producer.is_connected(), producer.partitions, bool(producer.producer_name())) == (True, COUNT, True)
        await producer.flush()
        receipts = [producer.send_nowait(b"%d" % number) for number in range(40)]
        assert producer.stats().pending_queue_size == 40
        ids = await asyncio.gather(*receipts)
        assert {one.partition() for one in ids} == ({0, 1, 2, 3} if not batching else set(first))
        for _ in range(COUNT):
            ids.append(await producer.send(b"more"))
        found = await contents(stage)
        assert sum(map(len, found)) == 40 + COUNT
        for one in found:
            numbers = [int(message.data()) for message in one if message.data() != b"more"]
            assert numbers == sorted(numbers), "in the order in which they were sent"
        assert {message.message_id() for one in found for message in one} == set(ids)
        assert stage.client._environment.memory.used == used
        await producer.close()
        await asyncio.sleep(1)
        assert opened(stage) == []

    play(story)


def test_one_partition_only_is_opened_for_messages_that_all_go_there() -> None:
    async def story(stage: Stage) -> None:
        producer = await lazy(stage, message_routing_mode=magnetar.PartitionsRoutingMode.UseSinglePartition)
        before = opened(stage)
        assert {(await producer.send(b"x")).partition() for _ in range(9)} == set(before) == set(opened(stage))

    play(story)


def test_an_exclusive_producer_takes_all_partitions_at_once() -> None:
    async def story(stage: Stage) -> None:
        await lazy(stage, access_mode=ProducerAccessMode.Exclusive)
        assert opened(stage) == [0, 1, 2, 3]

    play(story)


def test_the_queue_has_its_bound_before_the_partition_is_open() -> None:
    async def story(stage: Stage) -> None:
        producer, to = await lazy_to_one(stage, max_pending_messages=2)
        receipts = [producer.send_nowait(b"1"), producer.send_nowait(b"2")]
        with pytest.raises(QueueFullError, match="2 messages of producer"):
            _ = producer.send_nowait(b"3")
        assert len(producer.send_many_nowait([b"3"])) == 0
        await producer.room()
        receipts.append(producer.send_nowait(b"3"))
        assert [(await one).partition() for one in receipts] == [to] * 3
        assert [one.data() for one in (await contents(stage))[to]] == [b"1", b"2", b"3"]

    play(story)


def test_senders_wait_for_room_in_their_order() -> None:
    async def story(stage: Stage) -> None:
        producer, to = await lazy_to_one(stage, max_pending_messages=1, block_if_queue_full=True)
        await asyncio.gather(*(producer.send(b"%d" % number) for number in range(10)))
        assert [one.data() for one in (await contents(stage))[to]] == [b"%d" % number for number in range(10)]

    play(story)


def test_what_is_too_large_says_so_and_the_others_are_sent() -> None:
    async def story(stage: Stage) -> None:
        producer, to = await lazy_to_one(stage)
        large, small = producer.send_nowait(bytes(60_000)), producer.send_nowait(b"small")
        with pytest.raises(MessageTooLargeError):
            await large
        assert (await small).partition() == to
        assert producer.stats().num_send_failed == 1

    play(story)


def test_the_memory_of_what_is_too_large_is_for_who_waits() -> None:
    async def story(stage: Stage) -> None:
        async with client_in(stage.world, memory_limit_bytes=60_000) as stage.client:
            producer, _ = await lazy_to_one(stage, block_if_queue_full=True)
            open_one = await stage.client.create_producer(f"{T}-other", block_if_queue_full=True)
            large = asyncio.ensure_future(producer.send(bytes(60_000)))
            await asyncio.sleep(0)
            small = asyncio.ensure_future(open_one.send(b"small"))
            with pytest.raises(MessageTooLargeError):
                await large
            await asyncio.wait_for(small, 10)

    play(story)


def test_waiting_for_memory_opens_nothing() -> None:
    async def story(stage: Stage) -> None:
        async with client_in(stage.world, memory_limit_bytes=1_000) as stage.client:
            producer, to = await lazy_to_one(stage)
            open_one = await stage.client.create_producer(f"{T}-other")
            sent = open_one.send_nowait(bytes(2_000))
            waiting = asyncio.ensure_future(producer._producers[to].room())
            await asyncio.wait_for(asyncio.gather(sent, waiting), 10)
            assert to not in opened(stage)

    play(story)


def test_an_opening_that_is_refused_fails_its_messages_and_the_next_one_begins_another() -> None:
    async def story(stage: Stage) -> None:
        producer, to = await lazy_to_one(stage)
        holder = await stage.client.create_producer(PARTITIONS[to], access_mode=ProducerAccessMode.Exclusive)
        used = stage.client._environment.memory.used
        waiting = [producer.send_nowait(b"%d" % number) for number in range(3)]
        await producer.flush()
        for one in waiting:
            with pytest.raises(RefusedError):
                await one
        assert (producer.stats().num_send_failed, stage.client._environment.memory.used) == (3, used)
        await holder.close()
        assert (await producer.send(b"later")).partition() == to
        assert producer.stats().num_send_failed == 3

    play(story)


def test_the_broker_is_away_when_the_first_message_comes() -> None:
    async def story(stage: Stage) -> None:
        producer, to = await lazy_to_one(stage)
        stage.world.machine.power_off()
        await asyncio.sleep(1)
        early = producer.send_nowait(b"early")
        await asyncio.sleep(5)
        await stage.world.machine.start()
        assert (await early).partition() == to
        again, to = await lazy_to_one(stage)
        stage.world.machine.power_off()
        began = stage.now
        with pytest.raises(ClientError):
            await again.send(b"never")
        assert stage.now - began < 21, "operation_timeout_seconds"
        await stage.world.machine.start()

    play(story)


def test_closing_sends_what_waits_and_gives_up_in_time() -> None:
    async def story(stage: Stage) -> None:
        producer, to = await lazy_to_one(stage)
        receipt = producer.send_nowait(b"1")
        await producer.close()
        assert (await receipt).partition() == to
        again, to = await lazy_to_one(stage)
        stage.world.machine.power_off()
        await asyncio.sleep(1)
        receipt, flushing = again.send_nowait(b"2"), asyncio.ensure_future(again.flush())
        began = stage.now
        await again.close()
        assert stage.now - began < 21
        with pytest.raises((AlreadyClosedError, ClientError)):
            await receipt
        with pytest.raises(AlreadyClosedError):
            await flushing
        with pytest.raises(AlreadyClosedError):
            _ = again.send_nowait(b"3")
        await stage.world.machine.start()

    play(story)


def test_a_cancelled_sender_leaves_its_message_on_its_way() -> None:
    async def story(stage: Stage) -> None:
        producer, to = await lazy_to_one(stage)
        sending = asyncio.ensure_future(producer.send(b"1"))
        await asyncio.sleep(0)
        sending.cancel()
        assert (await producer.send(b"2")).partition() == to
        assert [one.data() for one in (await contents(stage))[to]] == [b"1", b"2"]

    play(story)


def test_partitions_that_are_added_are_lazy_as_well() -> None:
    async def main(broker: PulsarBroker) -> None:
        async with broker.aio_client() as client:
            producer = await client.create_producer("t", lazy_start_partitioned_producers=True)
            assert producer.partitions == 1
            await asyncio.to_thread(broker.admin.topics.update_partitions, "t", 3)
            await producer.grow(3)
            assert (producer.partitions, producer.is_connected()) == (3, True)
            sent = await asyncio.gather(*(producer.send(b"x") for _ in range(3)))
            assert {one.partition() for one in sent} == {0, 1, 2}

    with PulsarBroker(seed=1) as broker:
        broker.admin.topics.create_partitioned("t", 1)
        asyncio.run(main(broker))


def test_rows_of_a_table() -> None:
    async def story(stage: Stage) -> None:
        producer = await lazy(stage)
        table = pa.table({"value": [b"%d" % n for n in range(8)], "__partition": [n % COUNT for n in range(8)]})
        sent = await producer.send_table(table)
        assert sorted(set(sent["__topic"].to_pylist())) == PARTITIONS
        assert [len(one) for one in await contents(stage)] == [2, 2, 2, 2]

    play(story)


def test_a_transaction() -> None:
    with PulsarBroker(seed=1, settings={"transactionCoordinatorEnabled": "true"}) as broker:
        broker.admin.topics.create_partitioned("t", COUNT)
        with broker.client() as client:
            consumer = client.subscribe("t", "s")
            producer = client.create_producer("t", lazy_start_partitioned_producers=True)
            with client.new_transaction() as transaction:
                for number in range(COUNT):
                    producer.send(b"%d" % number, txn=transaction)
            assert sorted(consumer.receive(60_000).data() for _ in range(COUNT)) == [b"0", b"1", b"2", b"3"]


@pytest.mark.parametrize("batching", [False, True])
def test_threads(batching: bool) -> None:
    """The place of the parameter is the official one."""
    with PulsarBroker(seed=1) as broker, broker.client() as client:
        broker.admin.topics.create_partitioned("t", COUNT)
        mode = magnetar.PartitionsRoutingMode.RoundRobinDistribution
        producer = client.create_producer(
            "t", None, None, None, 30_000, magnetar.CompressionType.NONE, 1_000, 50_000, True, batching, 1_000,
            128 << 10, 60_000, False, mode, True, {"a": "b"},
        )  # fmt: skip
        heard: queue.SimpleQueue[object] = queue.SimpleQueue()
        consumer = client.subscribe("t", "s")
        for number in range(100):
            producer.send_async(b"%d" % number, lambda result, _: heard.put(result), partition_key=str(number % 7))
        producer.send(b"last", partition_key="0")
        assert {heard.get(timeout=60) for _ in range(100)} == {magnetar.Result.Ok}
        found: dict[str, list[int]] = {}
        for _ in range(101):
            message = consumer.receive(60_000)
            if message.data() != b"last":
                found.setdefault(message.partition_key(), []).append(int(message.data()))
        assert found == {str(key): list(range(key, 100, 7)) for key in range(7)}
        producer.close()


def test_a_time_out_that_is_shorter_than_the_opening() -> None:
    """A message waits for the opening first, up to the operation's time-out, as with the official client."""

    async def story(stage: Stage) -> None:
        producer, _ = await lazy_to_one(stage, send_timeout_millis=1_000)
        stage.world.machine.power_off()
        await asyncio.sleep(1)
        receipt = producer.send_nowait(b"1")
        await asyncio.sleep(3)
        assert not receipt.done()
        await stage.world.machine.start()
        await receipt
        stage.world.machine.power_off()
        with pytest.raises(ClientTimeoutError):
            await producer.send(b"2")
        await stage.world.machine.start()

    play(story)
