"""Memory is asked back once after each burst, not at every look."""

from __future__ import annotations

import asyncio

from magnetar.runtime.memory_return import GROWN_BYTES, MemoryReturn, resident_bytes, trim


def test_once_for_each_burst() -> None:
    resident = 100 << 20
    trims = 0

    def trim() -> None:
        nonlocal trims, resident
        trims += 1
        resident -= GROWN_BYTES // 2

    memory = MemoryReturn(trim, lambda: resident)

    async def scenario() -> None:
        nonlocal resident
        await memory.look()
        assert trims == 0
        resident += GROWN_BYTES - 1
        await memory.look()
        assert trims == 0
        resident += 1
        await memory.look()
        await memory.look()
        assert trims == 1
        resident -= GROWN_BYTES  # by itself
        await memory.look()
        resident += GROWN_BYTES
        await memory.look()
        assert trims == 2

    asyncio.run(scenario())


def test_the_real_one_does_no_harm() -> None:
    trim()
    assert resident_bytes() > 1 << 20
