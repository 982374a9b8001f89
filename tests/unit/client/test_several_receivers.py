"""Several tasks that wait for messages of one consumer: none waits while a message is there that others leave."""

from __future__ import annotations

import asyncio

import pytest

from magnetar.model.errors import InvalidValueError
from tests.sim.world import T
from tests.support.delivery_stage import Stage, play


def test_what_is_put_back_is_for_all_who_wait() -> None:
    async def story(stage: Stage) -> None:
        consumer = await stage.subscribe()
        await stage.send(b"a", b"b")
        await asyncio.sleep(1)
        taken = consumer.take_entries(2)
        waiting = [asyncio.ensure_future(consumer.receive()) for _ in range(2)]
        await asyncio.sleep(1)
        one, generation, _ = taken[0]
        one.consumption.put_back([entry for _, _, entry in taken], generation)
        consumer.has_again(one)
        assert [(await found).data() for found in waiting] == [b"a", b"b"]

    play(story)


def test_one_who_gathers_leaves_a_message_to_one_who_receives() -> None:
    """A batch of ten that is not full yet takes nothing, and nothing must wait for it."""

    async def story(stage: Stage) -> None:
        consumer = await stage.subscribe()
        gathering = asyncio.ensure_future(consumer.batch_receive(10, 3_600_000))
        await asyncio.sleep(1)
        receiving = asyncio.ensure_future(consumer.receive(60_000))
        await asyncio.sleep(1)
        await stage.send(b"a")
        assert (await receiving).data() == b"a"
        assert not gathering.done()
        gathering.cancel()

    play(story)


def test_a_message_of_another_topic_is_not_acknowledged_among_many() -> None:
    async def story(stage: Stage) -> None:
        consumer, other = await stage.subscribe(), await stage.subscribe(f"{T}-other")
        await stage.send(b"a")
        await stage.send(b"b", topic=f"{T}-other")
        own, foreign = await consumer.receive(5_000), await other.receive(5_000)
        with pytest.raises(InvalidValueError, match="not among the topics"):
            consumer.acknowledge_many([own, foreign])
        await asyncio.sleep(1)
        assert (stage.backlog(), stage.backlog(f"{T}-other")) == (0, 1)

    play(story)
