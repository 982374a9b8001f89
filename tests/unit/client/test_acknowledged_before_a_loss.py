"""What was acknowledged and not written yet when the connection was lost."""

from __future__ import annotations

import asyncio

from tests.sim.world import T
from tests.support.delivery_stage import Stage, nothing, play


def test_it_does_not_come_again() -> None:
    """It is written before messages are asked for, however long acknowledgements wait for others."""

    async def story(stage: Stage) -> None:
        consumer = await stage.subscribe(ack_group_time_ms=60_000)
        await stage.send(b"a")
        await consumer.acknowledge(await consumer.receive(5_000))
        await asyncio.sleep(1)
        consumer.member_of(T).requests.connection().close()
        await nothing(consumer, 30)
        assert stage.backlog() == 0

    play(story)
