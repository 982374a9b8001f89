"""Loops over all topics let others have their turn."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator

import pytest

from magnetar.runtime.tasks import in_turns
from tests.support.loop_turns import turns_of_others


def slow(things: int, seconds: float) -> Iterator[int]:
    """Yield numbers, each after so much work."""
    for number in range(things):
        until = time.perf_counter() + seconds
        while time.perf_counter() < until:
            pass
        yield number


@pytest.mark.parametrize(("things", "per_turn", "turns"), [(0, 50, 0), (49, 50, 0), (50, 50, 1), (100, 50, 2)])
def test_others_have_a_turn_after_so_many(things: int, per_turn: int, turns: int) -> None:
    assert asyncio.run(turns_beside(iter(range(things)), per_turn)) >= turns


def test_others_have_a_turn_after_each_that_takes_long() -> None:
    """Two hundred topics with much to count would hold the loop for as long as all of them take."""
    assert asyncio.run(turns_beside(slow(30, 0.003), 200)) >= 29


async def turns_beside(things: Iterator[int], per_turn: int) -> int:
    """Return how often another task ran between the first and the last of ``things``."""
    with turns_of_others() as turns:
        found = [one async for one in in_turns(things, per_turn)]
    assert found == list(range(len(found)))
    return turns.count
