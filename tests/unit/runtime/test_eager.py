"""Coroutines that begin at once: what does not wait is done before the call returns."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from magnetar.model.errors import MagnetarError, NotFoundError
from magnetar.runtime.eager import run_eagerly
from magnetar.runtime.tasks import TaskGroup

Ended = list[tuple[int | None, MagnetarError | None]]


def both(ended: Ended) -> Callable[[int | None, MagnetarError | None], None]:
    return lambda value, error: ended.append((value, error))


async def number(turns: int, error: MagnetarError | None = None) -> int:
    for _ in range(turns):
        await asyncio.sleep(0)
    if error is not None:
        raise error
    return turns


def test_what_does_not_wait_has_ended_when_the_call_returns() -> None:
    """There is no task, and no loop is needed."""
    ended: Ended = []
    refused = NotFoundError("no")
    run_eagerly(number(0), both(ended), TaskGroup("t"), "n")
    run_eagerly(number(0, refused), both(ended), TaskGroup("t"), "n")
    assert ended == [(0, None), (None, refused)]


def test_what_waits_goes_on_as_a_task() -> None:
    async def main() -> Ended:
        ended: Ended = []
        tasks = TaskGroup("t")
        refused = NotFoundError("no")
        run_eagerly(number(3), both(ended), tasks, "n")
        run_eagerly(number(2, refused), both(ended), tasks, "n")
        assert ended == []
        for _ in range(6):
            await asyncio.sleep(0)
        assert ended == [(None, refused), (3, None)]
        await tasks.close()
        return ended

    assert len(asyncio.run(main())) == 2


def test_real_waits_and_cancellation_reach_the_coroutine() -> None:
    """The rest of the coroutine sees what a task of its own would: results of futures, and its end."""
    seen: list[str] = []

    async def waiting(future: asyncio.Future[str]) -> int:
        try:
            seen.append(await future)
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            seen.append("cancelled")
            raise
        return 1

    async def main() -> None:
        ended: Ended = []
        tasks = TaskGroup("t")
        future: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        run_eagerly(waiting(future), both(ended), tasks, "n")
        future.set_result("came")
        await asyncio.sleep(0.001)
        assert seen == ["came"]
        await tasks.close()
        assert seen == ["came", "cancelled"]
        assert ended == []

    asyncio.run(main())


def test_other_errors_are_the_callers_before_the_first_wait() -> None:
    async def broken() -> int:
        raise ValueError("a fault of ours")

    with pytest.raises(ValueError, match="a fault of ours"):
        run_eagerly(broken(), both([]), TaskGroup("t"), "n")
