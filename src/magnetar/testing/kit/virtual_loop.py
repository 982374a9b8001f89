"""Event loops on real sockets whose time is the machine's plus what a test has skipped.

A :class:`Timeline` says how many seconds were skipped. A :class:`VirtualLoop` adds them to its time, and so does a loop
that another program made, from the moment it joins (:meth:`Timeline.join`). Time runs on by itself meanwhile: what
waits for a socket or a short pause needs no call to move it.

Used of CPython's ``BaseEventLoop`` are the queues ``_ready`` and ``_scheduled``.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any, TypeVar, TypeVarTuple

from typing_extensions import override

from magnetar.model.errors import InvalidValueError
from magnetar.testing.processes import ProcessLoop

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class Timeline:
    """The time of one broker and of those that share it; only its clock moves it."""

    def __init__(self) -> None:
        self.skipped = 0.0
        """Seconds."""
        self.guests: list[asyncio.AbstractEventLoop] = []
        """Loops of others that have joined."""

    def join(self, loop: asyncio.AbstractEventLoop) -> None:
        """Have a loop's timers follow from now on; it never goes back. Raises InvalidValueError if it cannot."""
        if loop in self.guests or (isinstance(loop, VirtualLoop) and loop.timeline is self):
            return  # the broker's own, or one that was made for it
        own, before = loop.time, self.skipped

        def time() -> float:
            return own() + self.skipped - before

        try:
            loop.time = time  # type: ignore[method-assign]  # the one place that all its timers ask
            _queues(loop)
        except AttributeError:
            raise InvalidValueError(
                f"the time of {type(loop).__module__}.{type(loop).__qualname__} cannot be moved: run the test in an "
                "event loop of asyncio itself, or give the client the service_url, so that its timers stay real"
            ) from None
        self.add(loop)

    def add(self, loop: asyncio.AbstractEventLoop) -> None:
        """Wait for a loop, too, whose time is this one already."""
        self.guests = [*self.guests, loop]


class VirtualLoop(ProcessLoop, asyncio.SelectorEventLoop):
    """asyncio's own loop on a timeline; counts what is given to threads, so that one can wait until it is at rest."""

    def __init__(self, timeline: Timeline) -> None:
        self.timeline = timeline
        self.in_threads = 0
        """Jobs of executors that are not done."""
        super().__init__()

    @override
    def time(self) -> float:
        return super().time() + self.timeline.skipped

    @override
    def run_in_executor(self, executor: Executor | None, func: Callable[[*Ts], T], *args: *Ts) -> asyncio.Future[T]:
        done: asyncio.Future[T] = super().run_in_executor(executor, func, *args)
        self.in_threads += 1
        # in no process: a job ends although who wanted it is dead
        done.add_done_callback(self._job_done, context=contextvars.Context())
        return done

    def _job_done(self, _: asyncio.Future[Any]) -> None:
        self.in_threads -= 1


class InlineExecutor(Executor):
    """Does a job at once where it is submitted: the disk is memory, and a thread would only make it wait."""

    _max_workers = 1

    @override
    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        done: Future[T] = Future()
        try:
            done.set_result(fn(*args, **kwargs))
        except BaseException as error:
            done.set_exception(error)
        return done


def _queues(loop: asyncio.AbstractEventLoop) -> tuple[Any, list[asyncio.TimerHandle]]:
    return loop._ready, loop._scheduled  # type: ignore[attr-defined]  # private queues


def nothing_ready(loop: asyncio.AbstractEventLoop) -> bool:
    """Whether no callback waits for its turn; asked within the loop's thread."""
    return not _queues(loop)[0]


def next_timer(loop: asyncio.AbstractEventLoop) -> float | None:
    """Seconds until its first timer that counts, None if there is none; asked within the loop's thread."""
    timers = _queues(loop)[1]
    if not timers:
        return None
    first = timers[0] if not timers[0].cancelled() else None
    if first is None:
        first = min((timer for timer in timers if not timer.cancelled()), default=None)
    return None if first is None else first.when() - loop.time()
