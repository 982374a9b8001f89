"""Disk work of the simulated machine: what a worker thread of an executor does, and when.

A job has three moments: the thread takes it, its work happens, its completion reaches the loop. One executor with a
single thread is one lane, in which work happens and completes in the order it was submitted in.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from random import Random
from typing import Any, Final, Protocol

_TICK: Final = 1e-7
"""The least distance of two completions in one lane: asyncio's timer heap does not order equal times."""


class DrawnLoop(Protocol):
    """A loop in virtual time that draws delays: what a job needs of :class:`magnetar.testing.simloop.SimLoop`."""

    rng: Random
    disk_delay_s: tuple[float, float]

    def time(self) -> float: ...

    def call_at(self, when: float, callback: Callable[[], object]) -> object: ...


class Lane:
    """Where the one thread of an executor stands: when it is free, and when its last completion arrives."""

    def __init__(self, executor: Any) -> None:
        self.executor = executor  # keeps the id, our key, from being used again
        self.free_at = 0.0
        self.completed_at = 0.0
        self.held: list[Job] | None = None
        """What waits while the lane is held."""


class Job:
    """One call for a worker thread."""

    def __init__(self, done: asyncio.Future[Any], work: Callable[[], Any]) -> None:
        self.done = done
        self._work = work
        self._taken = False
        self._result: Any = None
        self._error: BaseException | None = None

    def schedule(self, loop: DrawnLoop, lane: Lane) -> None:
        low, high = loop.disk_delay_s
        spent = loop.rng.uniform(low, high)
        taken_at = max(loop.time(), lane.free_at) + _TICK
        worked_at = taken_at + spent * loop.rng.random() + _TICK
        lane.free_at = worked_at
        lane.completed_at = max(taken_at + spent, worked_at, lane.completed_at) + _TICK
        loop.call_at(taken_at, self._take)
        loop.call_at(worked_at, self._do)
        loop.call_at(lane.completed_at, self._complete)

    def _take(self) -> None:
        self._taken = not self.done.cancelled()  # as with a real pool, only a job still in the queue can be cancelled

    def _do(self) -> None:
        if not self._taken:
            return
        try:
            self._result = self._work()
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:
            self._error = error

    def _complete(self) -> None:
        if self.done.cancelled():
            return
        if self._error is not None:
            self.done.set_exception(self._error)
        else:
            self.done.set_result(self._result)
