"""When what a producer is given goes out, in virtual time: batches wait no longer than it pays."""

from __future__ import annotations

import asyncio
from functools import partial

from tests.sim.world import T
from tests.support.delivery_stage import Stage, play

SENDS = 40


def test_who_sends_one_after_the_other_does_not_wait_for_company() -> None:
    """Awaited or not, a message that is alone costs with batches what it costs without, and not their delay."""

    async def story(stage: Stage) -> None:
        def arrived(late: list[float], at: float, _: object) -> None:
            late.append(stage.now - at)

        seconds = dict[tuple[bool, bool], float]()
        for batching in (False, True):
            async with await stage.client.create_producer(T, batching_enabled=batching) as producer:
                began = stage.now
                for _ in range(SENDS):
                    await producer.send(b"x")
                seconds[batching, True] = stage.now - began
                late = list[float]()
                for _ in range(SENDS):
                    at = stage.now
                    producer.send_nowait(b"x").add_done_callback(partial(arrived, late, at))
                    await asyncio.sleep(0.05)
                seconds[batching, False] = sum(late)
        for awaited in (True, False):
            assert seconds[True, awaited] < seconds[False, awaited] + SENDS * 0.005, "half of the delay"

    play(story)


def test_what_is_sent_in_one_turn_goes_together() -> None:
    async def story(stage: Stage) -> None:
        async with await stage.client.create_producer(T, batching_enabled=True) as producer:
            for _ in range(2):
                ids = await asyncio.gather(*(producer.send(b"%d" % number) for number in range(SENDS)))
                assert len({one.entry_id() for one in ids}) == 1
            ids = await asyncio.gather(*(producer.send_nowait(b"%d" % number) for number in range(SENDS)))
            assert len({one.entry_id() for one in ids}) == 1

    play(story)


def test_a_delay_that_was_asked_for_is_kept() -> None:
    async def story(stage: Stage) -> None:
        async with await stage.client.create_producer(
            T, batching_enabled=True, batching_max_publish_delay_ms=500
        ) as producer:
            receipts = []
            for number in range(3):
                receipts.append(producer.send_nowait(b"%d" % number))
                await asyncio.sleep(0.1)
            assert stage.stands(T) == 0
            assert len({(await one).entry_id() for one in receipts}) == 1

    play(story)
