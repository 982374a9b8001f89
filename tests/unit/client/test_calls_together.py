"""Calls that meet: close beside send and receive, seek beside a handler, tables beside cancellation and cuts."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from magnetar.client.errors import AlreadyClosedError, ClientError
from magnetar.client.machines.message import Message
from magnetar.client.machines.message_id import MessageId
from magnetar.protocol.commands import InitialPosition, SubType
from magnetar.testing import PulsarBroker
from tests.sim.world import T
from tests.support.delivery_stage import Stage, nothing, play

ALL = [b"%d" % number for number in range(12)]


async def outcome(call: Any) -> object:
    """What a call returned or raised; no call may wait for ever."""
    try:
        async with asyncio.timeout(60):
            return await call
    except ClientError as error:
        return error


@pytest.mark.parametrize("turns", range(8))
def test_close_beside_send_receive_and_close(turns: int) -> None:
    """Every call comes to an end; what was confirmed is stored, once."""

    async def story(stage: Stage) -> None:
        consumer, producer = await stage.subscribe(), await stage.client.create_producer(T)
        sends = [asyncio.ensure_future(outcome(producer.send(value))) for value in ALL]
        waits = [asyncio.ensure_future(outcome(consumer.receive())) for _ in range(20)]
        for _ in range(turns):
            await asyncio.sleep(0)
        closing = [asyncio.ensure_future(outcome(one.close())) for one in (producer, consumer, producer, consumer)]
        late = [outcome(producer.send(b"late")), outcome(consumer.receive())]
        assert await asyncio.gather(*closing) == [None] * 4
        assert all(isinstance(one, AlreadyClosedError) for one in await asyncio.gather(*late))
        for end in await asyncio.gather(*waits):
            assert isinstance(end, AlreadyClosedError | Message), end
        ends = await asyncio.gather(*sends)
        confirmed = [value for value, end in zip(ALL, ends, strict=True) if isinstance(end, MessageId)]
        assert all(isinstance(end, AlreadyClosedError | MessageId) for end in ends), ends
        there = [one.data() for one in await stage.all_of(T)]
        assert len(there) == len(set(there)) and set(confirmed) <= set(there)
        await producer.close()
        await consumer.close()

    play(story)


@pytest.mark.parametrize("pause", [0.0, 0.001, 0.003, 0.01, 0.1])
def test_close_while_chunks_are_half_sent(pause: float) -> None:
    """The message is there as a whole or not at all, its sender hears which, and others come."""

    async def story(stage: Stage) -> None:
        consumer = await stage.subscribe(T, consumer_type=SubType.Exclusive)
        producer = await stage.client.create_producer(T, chunking_enabled=True)
        large = asyncio.ensure_future(outcome(producer.send(bytes(2_000_000))))
        await asyncio.sleep(pause)
        assert [*await asyncio.gather(outcome(producer.close()), outcome(producer.close()))] == [None, None]
        end = await large
        await stage.send(b"after")
        found = [await consumer.receive(10_000)]
        if found[0].data() != b"after":
            found.append(await consumer.receive(10_000))
            assert len(found[0].data()) == 2_000_000
        else:
            assert isinstance(end, AlreadyClosedError), end
        assert found[-1].data() == b"after"
        await consumer.acknowledge(list(found))
        await nothing(consumer, 1)

    play(story)


def test_a_seek_beside_a_handler_with_messages() -> None:
    """What is at hand is handled, everything after the place of the seek comes, and the run goes on."""

    async def story(stage: Stage) -> None:
        handled: list[bytes] = []
        go_on, half = asyncio.Event(), asyncio.Event()

        async def handle(message: Message) -> None:
            if len(handled) >= 4:
                half.set()
                await go_on.wait()
            handled.append(message.data())

        for kind in (SubType.Exclusive, SubType.Shared):
            handled.clear()
            go_on.clear()
            half.clear()
            topic = f"{T}-{kind.name}"
            consumer = await stage.subscribe(topic, consumer_type=kind)
            await stage.send(*ALL, topic=topic)
            run = asyncio.ensure_future(consumer.run(handle, concurrency=2, in_hand=4))
            await half.wait()
            await consumer.seek(MessageId.earliest)
            before = len(handled)
            go_on.set()
            await asyncio.sleep(30)
            assert set(handled[before:]) == set(ALL), handled
            assert stage.backlog(topic) == 0
            await stage.send(b"more", topic=topic)
            await asyncio.sleep(5)
            consumer.stop()
            assert (await run).handled == len(handled) and handled[-1] == b"more"
            await consumer.close()

    play(story)


def test_what_was_acknowledged_before_a_seek_comes_again() -> None:
    """Acknowledgements that wait to be written do not undo a part of the seek."""

    async def story(stage: Stage) -> None:
        consumer = await stage.subscribe(consumer_type=SubType.Exclusive, ack_group_time_ms=10_000)
        await stage.send(*ALL)
        for _ in ALL:
            await consumer.acknowledge(await consumer.receive(1_000))
        await consumer.seek(MessageId.earliest)
        assert [(await consumer.receive(1_000)).data() for _ in ALL] == ALL
        await asyncio.sleep(20)
        assert stage.backlog() == len(ALL)

    play(story)


@pytest.mark.parametrize("way", ["refuse", "drop"])
def test_a_seek_that_is_not_done_loses_nothing(way: str) -> None:
    """What waited in the queue comes again, and so does what was not acknowledged."""
    with PulsarBroker(seed=1) as broker, broker.client(operation_timeout_seconds=1) as client:
        consumer = client.subscribe("refused", "s", initial_position=InitialPosition.Earliest)
        with client.create_producer("refused") as producer:
            for value in ALL:
                producer.send(value)
        first = consumer.receive(5_000)
        consumer.acknowledge(first)
        with getattr(broker.faults, way)("SEEK", times=1), pytest.raises(ClientError):
            consumer.seek(MessageId.earliest)
        assert [consumer.receive(5_000).data() for _ in ALL[1:]] == ALL[1:]


@pytest.mark.parametrize("size", [1, 3, 100])
@pytest.mark.parametrize("kind", [SubType.Exclusive, SubType.Shared])
@pytest.mark.parametrize("cut", [False, True])
def test_a_table_that_is_cancelled_loses_nothing(kind: SubType, size: int, cut: bool) -> None:
    """Nor does one during which the connection is lost, nor what is handed back afterwards."""

    async def story(stage: Stage) -> None:
        await stage.partitioned(T, 2)
        consumer = await stage.subscribe(T, consumer_type=kind, receiver_queue_size=size)
        await stage.send(*ALL, batch=True)
        first = (await consumer.receive_table(3, 5.0))["value"].to_pylist()
        for _ in range(3):
            waiting = asyncio.ensure_future(consumer.receive_table(1_000, 30.0))
            await asyncio.sleep(2)
            if cut:
                for link in stage.world.network.links:
                    link.cut()
                await asyncio.sleep(5)
            waiting.cancel()
            await asyncio.wait([waiting])
        found: list[bytes] = []
        while len(set(found) | set(first)) < len(ALL):
            found += (await consumer.receive_table(5, 20.0))["value"].to_pylist()
            assert len(found) < 100
        if not cut and (size > 1 or kind is SubType.Shared):  # without a queue, ordered, all that is not acknowledged
            assert sorted([*first, *found]) == sorted(ALL)

    play(story)
