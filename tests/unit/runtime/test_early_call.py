"""Repeated tasks that something can ask for before their period is over."""

from __future__ import annotations

import asyncio

import pytest

from magnetar.runtime.tasks import EarlyCall, TaskGroup
from magnetar.testing.simloop import run


def runs(asked: list[float], until: float, *, rest: float = 0.0, took: float = 0.0) -> list[float]:
    """Run a task of ten seconds and ask for it at these times; return when it ran."""
    found: list[float] = []

    async def main() -> None:
        loop = asyncio.get_running_loop()
        early, tasks = EarlyCall(rest), TaskGroup("test")

        async def act() -> None:
            found.append(loop.time())
            await asyncio.sleep(took)

        tasks.repeat(10, act, "act", early)
        for moment in asked:
            await asyncio.sleep(moment - loop.time())
            early.ask()
        await asyncio.sleep(until - loop.time())
        await tasks.close()

    run(1, main())
    return found


def test_without_being_asked_for_it_keeps_its_period() -> None:
    assert runs([], 35) == pytest.approx([10, 20, 30])


def test_it_runs_when_it_is_asked_for_and_its_period_begins_anew() -> None:
    assert runs([3, 4.5], 20) == pytest.approx([3, 4.5, 14.5])


def test_it_never_runs_twice_within_a_second() -> None:
    assert runs([0.1, 3, 3.1, 3.2], 10) == pytest.approx([1, 3, 4])


def test_it_rests_for_a_multiple_of_what_it_took_but_no_longer_than_its_period() -> None:
    assert runs([2, 2.6], 20, rest=10, took=0.5) == pytest.approx([2, 7.5, 18])
    assert runs([2, 5], 20, rest=100, took=0.5) == pytest.approx([2, 12.5])
