"""Named background tasks: every task has an owner, and its failure is logged once."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable
from typing import Any, Final, TypeVar

log = logging.getLogger(__name__)

T = TypeVar("T")

_EARLY_SECONDS: Final = 1.0
"""No repeated task runs more often, whatever is asked for."""
_TURN_SECONDS: Final = 0.001
"""How long a loop over all topics has the event loop for itself: one with many subscriptions takes far longer than
others."""


async def in_turns(things: Iterable[T], per_turn: int = 200) -> AsyncIterator[T]:
    """Yield each of ``things``, and let other tasks run after every ``per_turn``, or after a millisecond if that is
    sooner: for loops over all topics, beside which others wait for receipts."""
    now = asyncio.get_running_loop().time
    count, until = 0, now() + _TURN_SECONDS
    for thing in things:
        count += 1
        if count == per_turn or now() >= until:
            await asyncio.sleep(0)
            count, until = 0, now() + _TURN_SECONDS
        yield thing


class EarlyCall:
    """Asks for a repeated task before its period is over, but not at once after it has run."""

    def __init__(self, rest: float = 0.0) -> None:
        """``rest``: after a run the task rests for so many times what it took, and for a second at least."""
        self._rest = rest
        self._asked = asyncio.Event()

    def ask(self) -> None:
        """Have the task run soon."""
        self._asked.set()

    async def wait(self, seconds: float, took: float) -> None:
        """Return after ``seconds``, or sooner if it is asked for; ``took``: what the last run took."""
        rest = min(seconds, max(_EARLY_SECONDS, self._rest * took))
        await asyncio.sleep(rest)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds - rest):
                await self._asked.wait()
        self._asked.clear()


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
        self, seconds: float | Callable[[], float], run: Callable[[], Awaitable[object]], name: str,
        early: EarlyCall | None = None,
    ) -> asyncio.Task[Any]:  # fmt: skip
        """Call ``run`` every ``seconds``, asked anew each time if callable, until :meth:`close`; its exceptions are
        logged and end nothing. ``early`` can ask for it sooner."""
        return self.start(self._repeat(seconds, run, f"{self._owner}/{name}", early), name)

    async def _repeat(
        self, period: float | Callable[[], float], run: Callable[[], Awaitable[object]], name: str,
        early: EarlyCall | None,
    ) -> None:  # fmt: skip
        now = asyncio.get_running_loop().time
        took = 0.0
        while True:
            seconds = period() if callable(period) else period
            if early is None:
                await asyncio.sleep(seconds)
            else:
                await early.wait(seconds, took)
            begun = now()
            try:
                await run()
            except Exception:
                log.exception("%s failed; it is tried again in %g s", name, seconds)
            took = now() - begun

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
