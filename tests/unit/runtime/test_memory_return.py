"""Memory is asked back once after a crowd has left, not for every connection."""

from __future__ import annotations

import asyncio

from magnetar.runtime.memory_return import CROWD, MemoryReturn, trim
from magnetar.testing.simloop import SimLoop


def test_once_after_a_crowd() -> None:
    times: list[float] = []
    loop = SimLoop(1)

    async def scenario() -> None:
        memory = MemoryReturn(lambda: times.append(loop.time()))
        for _ in range(CROWD - 1):
            memory.left()
        await asyncio.sleep(60)
        assert times == []
        for _ in range(3 * CROWD):
            memory.left()
        await asyncio.sleep(60)
        assert len(times) == 1
        for _ in range(CROWD):
            memory.left()
        memory.close()
        await asyncio.sleep(60)
        assert len(times) == 1

    try:
        loop.run_until_complete(scenario())
    finally:
        loop.close()


def test_the_real_one_does_no_harm() -> None:
    trim()
