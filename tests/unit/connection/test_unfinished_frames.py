"""Very many frames that are not whole at the same time."""

from __future__ import annotations

import asyncio

from magnetar.broker.connection.bounds.unfinished_frames import UnfinishedFrames

MB = 1 << 20


def test_shortage_costs_each_look_once_and_little_ones_count_when_they_are_many() -> None:
    """Hundreds of frames that came together were looked at for each of them."""
    told = looks = 0

    class One:
        def hold_off(self) -> None:
            nonlocal told
            told += 1

        carry_on = hold_off

        def too_slow(self, held: int) -> None: ...

    class Counted(UnfinishedFrames):
        def _divide(self) -> None:
            nonlocal looks
            looks += 1
            super()._divide()

    async def scenario() -> None:
        frames = Counted(10 * MB)
        many = [One() for _ in range(1_000)]
        for one in many:
            frames.changed(one, 0, 20_000, 0)
        await asyncio.sleep(0)
        assert told == 0
        for one in many:
            frames.changed(one, 20_000, 30_000, 0)
        await asyncio.sleep(0)
        # each is below what is its own, all together are three times the budget
        assert 600 < told < 3_000
        assert looks == 1
        for one in many:
            frames.changed(one, 30_000, 0, 0)
        await asyncio.sleep(0)
        assert frames.bytes == frames._wanted == 0
        assert frames._large == {}

    asyncio.run(scenario())
