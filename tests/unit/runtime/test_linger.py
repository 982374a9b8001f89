"""How long what a peer still sends is dropped: in virtual time, so that no machine is too busy."""

from __future__ import annotations

import asyncio

import pytest
from typing_extensions import override

from magnetar.runtime.connections.lingering_close import LINGER_BYTES, LINGER_SECONDS, LINGER_SECONDS_MAX, Linger
from magnetar.testing import simloop


class _Transport(asyncio.Transport):
    unsent = 0

    def __init__(self) -> None:
        self.aborted: asyncio.Future[float] = asyncio.get_running_loop().create_future()

    @override
    def get_write_buffer_size(self) -> int:
        return self.unsent

    @override
    def abort(self) -> None:
        self.aborted.set_result(asyncio.get_running_loop().time())


async def cut_after(every: float, size: int, times: int = 1 << 30) -> float:
    """Seconds until one is cut that sends so much so often."""
    transport = _Transport()
    began = asyncio.get_running_loop().time()
    linger = Linger(transport)
    for _ in range(times):
        await asyncio.sleep(every)
        if transport.aborted.done():
            break
        linger.dropped(size)
    return await transport.aborted - began


@pytest.mark.parametrize("every", [0.05, 1.0, 1.9])
def test_one_that_sends_steadily_has_its_time(every: float) -> None:
    cut = simloop.run(0, cut_after(every, 1))
    assert LINGER_SECONDS_MAX <= cut <= LINGER_SECONDS_MAX + LINGER_SECONDS


def test_one_that_is_silent_is_cut() -> None:
    assert simloop.run(0, cut_after(1.0, 1, times=0)) == LINGER_SECONDS
    assert simloop.run(0, cut_after(0.9 * LINGER_SECONDS, 1, times=3)) <= 5 * LINGER_SECONDS


def test_one_that_sends_much_is_cut() -> None:
    assert simloop.run(0, cut_after(0.1, LINGER_BYTES // 4)) < LINGER_SECONDS


def test_one_whose_body_ends_is_left_alone() -> None:
    async def steps() -> bool:
        transport = _Transport()
        Linger(transport).end()
        await asyncio.sleep(100)
        return transport.aborted.done()

    assert not simloop.run(0, steps())
