"""What is due soon is due on every event loop: uvloop's handles of such moments do not know when."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
import uvloop

from magnetar.client.aio.topics.due_timer import NEVER, DueTimer


@pytest.mark.parametrize("loop_factory", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_it_rings_once_at_the_earliest_moment(loop_factory: Callable[[], asyncio.AbstractEventLoop]) -> None:
    async def scenario() -> None:
        loop, rung = asyncio.get_running_loop(), list[float]()
        timer = DueTimer(loop, lambda: rung.append(loop.time()))
        now = loop.time()
        timer.by(NEVER)
        timer.by(now + 3600)
        timer.by(now + 0.0001)  # before uvloop's shortest timer
        timer.by(now + 0.0003)
        timer.by(now - 5)
        await asyncio.sleep(0.02)
        assert len(rung) == 1
        timer.by(loop.time() + 0.01)
        await asyncio.sleep(0.03)
        assert len(rung) == 2
        timer.by(loop.time())
        timer.end()
        timer.by(loop.time())
        await asyncio.sleep(0.02)
        assert len(rung) == 2

    with asyncio.Runner(loop_factory=loop_factory) as runner:
        runner.run(scenario())
