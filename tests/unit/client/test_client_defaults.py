"""What a client does that was given no options, in virtual time against a whole broker."""

from __future__ import annotations

import asyncio
import inspect
from typing import Any

import pytest

from magnetar.client.aio.client import Client
from magnetar.client.errors import AlreadyClosedError, ConnectionLostError, QueueFullError, RefusedError
from magnetar.model.errors import InvalidValueError, ServerError
from magnetar.protocol.commands import ProducerAccessMode
from tests.sim.world import T
from tests.support.delivery_stage import Stage, play


def _defaults(call: Any) -> dict[str, object]:
    return {name: one.default for name, one in inspect.signature(call).parameters.items()}


def test_the_defaults_are_those_of_all_clients() -> None:
    """Time-outs and bounds (rules 3.3.9, 5.2.2 and 6.10.3)."""
    client, producer = _defaults(Client), _defaults(Client.create_producer)
    assert (client["operation_timeout_seconds"], client["connection_timeout_ms"]) == (30, 10_000)
    assert client["memory_limit_bytes"] == 64 << 20
    assert producer["send_timeout_millis"] == 30_000
    assert producer["max_pending_messages"] == 1_000
    assert producer["max_pending_messages_across_partitions"] == 50_000
    assert _defaults(Client.subscribe)["receiver_queue_size"] == 1_000


def test_a_full_queue_fails_unless_it_is_to_wait() -> None:
    """Rule 3.3.9."""

    async def story(stage: Stage) -> None:
        producer = await stage.client.create_producer(T, max_pending_messages=1)
        first = producer.send_nowait(b"a")
        with pytest.raises(QueueFullError):
            await producer.send(b"b")
        await first
        waiting = await stage.client.create_producer(T, max_pending_messages=1, block_if_queue_full=True)
        await asyncio.gather(*(waiting.send(b"%d" % number) for number in range(5)))

    play(story)


def test_chunks_and_batches_exclude_each_other() -> None:
    """Rule 3.6.1."""

    async def story(stage: Stage) -> None:
        with pytest.raises(InvalidValueError, match="exclude each other"):
            await stage.client.create_producer(T, chunking_enabled=True, batching_enabled=True)

    play(story)


def test_who_owns_a_topic_no_more_hears_so_by_the_next_message() -> None:
    """An exclusive producer that another one has fenced out never comes back (rules 3.2.7 and 6.10.4)."""

    async def story(stage: Stage) -> None:
        first = await stage.client.create_producer(T, access_mode=ProducerAccessMode.Exclusive)
        await first.send(b"a")
        second = await stage.client.create_producer(T, access_mode=ProducerAccessMode.ExclusiveWithFencing)
        for _ in range(2):
            with pytest.raises(RefusedError) as refused:
                await first.send(b"b")
            assert refused.value.code is ServerError.ProducerFenced
            await asyncio.sleep(60)
        await second.send(b"c")
        assert [one.data() for one in await stage.all_of(T)] == [b"a", b"c"]

    play(story)


def test_shutting_down_waits_for_nothing() -> None:
    """What waits for an answer fails, and the broker notices by the connection (rule 6.1.8)."""

    async def story(stage: Stage) -> None:
        client = stage.client.twin()
        producer = await client.create_producer(T)
        consumer = await client.subscribe(T, "s")
        sent, receiving = producer.send_nowait(b"a"), asyncio.ensure_future(consumer.receive())
        await asyncio.sleep(0)
        began = stage.now
        client.shutdown()
        for one in (sent, receiving):
            with pytest.raises((AlreadyClosedError, ConnectionLostError)):
                await one
        with pytest.raises(AlreadyClosedError):
            await producer.send(b"b")
        assert stage.now == began
        await client.wait_closed()
        await asyncio.sleep(1)
        topic = stage.world.machine.broker.service.topics[T]
        assert not topic.subscriptions["s"].consumers

    play(story)
