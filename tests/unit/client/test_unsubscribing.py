"""What `unsubscribe` ends, and what goes on if the broker refuses it."""

from __future__ import annotations

import asyncio

import pytest

from magnetar.client.errors import AlreadyClosedError, RefusedError
from magnetar.client.machines.redelivery.dead_letter_policy import ConsumerDeadLetterPolicy
from tests.support.delivery_stage import DLQ, Stage, play


def test_dead_letters_go_on_where_it_was_refused() -> None:
    """A Shared subscription with another consumer stays, and so does the way of its dead messages."""

    async def story(stage: Stage) -> None:
        consumer = await stage.subscribe(
            negative_ack_redelivery_delay_ms=100, dead_letter_policy=ConsumerDeadLetterPolicy(1)
        )
        other = await stage.subscribe()
        with pytest.raises(RefusedError):
            await consumer.unsubscribe()
        await other.close()
        await stage.send(b"a")
        for _ in range(2):
            await consumer.negative_acknowledge(await consumer.receive(5_000))
        await asyncio.sleep(5)
        assert [one.data() for one in await stage.all_of(DLQ)] == [b"a"]
        assert stage.backlog() == 0

    play(story)


def test_an_acknowledgement_that_waits_for_others_fails_with_it() -> None:
    """It will never be written; its caller hears that."""

    async def story(stage: Stage) -> None:
        consumer = await stage.subscribe(ack_receipt_enabled=True, ack_group_time_ms=10_000)
        await stage.send(b"a")
        acknowledging = asyncio.ensure_future(consumer.acknowledge(await consumer.receive(5_000)))
        await asyncio.sleep(0)
        await consumer.unsubscribe()
        with pytest.raises(AlreadyClosedError):
            await asyncio.wait_for(acknowledging, 60)

    play(story)
