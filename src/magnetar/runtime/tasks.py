"""Named background tasks: every task has an owner, and its failure is logged once."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable
from typing import Any, TypeVar

log = logging.getLogger(__name__)

T = TypeVar("T")


async def in_turns(things: Iterable[T], per_turn: int = 200, seconds: float = math.inf) -> AsyncIterator[T]:
    """Yield each of ``things``, and let other tasks run after every ``per_turn``, or after so many ``seconds`` if that
    is sooner: for loops over all topics."""
    now = asyncio.get_running_loop().time
    count, until = 0, now() + seconds
    for thing in things:
        count += 1
        if count == per_turn or now() >= until:
            await asyncio.sleep(0)
            count, until = 0, now() + seconds
        yield thing


class TaskGroup:
    """The background tasks of one owner.

    It is not for the path of a message, which has no tasks (docs/architecture.md).
    """

    def __init__(self, owner: str) -> None:
        self._owner = owner
        self._tasks: set[asyncio.Task[Any]] = set()

    def start(self, coroutine: Coroutine[Any, Any, object], name: str) -> asyncio.Task[Any]:
        """Run ``coroutine`` until it ends or :meth:`close`; an exception is logged under ``owner/name``."""
        task = asyncio.get_running_loop().create_task(coroutine, name=f"{self._owner}/{name}")
        self._tasks.add(task)
        task.add_done_callback(self._finished)
        return task

    def repeat(
        self, seconds: float | Callable[[], float], run: Callable[[], Awaitable[object]], name: str
    ) -> asyncio.Task[Any]:
        """Call ``run`` every ``seconds``, asked anew each time if callable, until :meth:`close`; its exceptions are
        logged and end nothing."""
        return self.start(self._repeat(seconds, run, f"{self._owner}/{name}"), name)

    async def _repeat(
        self, period: float | Callable[[], float], run: Callable[[], Awaitable[object]], name: str
    ) -> None:
        while True:
            seconds = period() if callable(period) else period
            await asyncio.sleep(seconds)
            try:
                await run()
            except Exception:
                log.exception("%s failed; it is tried again in %g s", name, seconds)

    def _finished(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("background task %s failed", task.get_name(), exc_info=error)

    async def close(self) -> None:
        """Cancel all running tasks and wait until they have ended."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
