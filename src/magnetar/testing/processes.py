"""What can be killed within one event loop: tasks and callbacks carry the mark of the process that started them.

What a :class:`Process` started, directly or through callbacks, carries its mark in the context. Killing it drops all
that at once, with no cleanup reaching the outside, as kill -9 does. The loop has to be a :class:`ProcessLoop`, which
every loop of asyncio's own becomes by inheriting from it first.

Private hooks of CPython's ``BaseEventLoop`` are used (the queues ``_ready`` and ``_scheduled``):
``tests/unit/testing/test_simloop.py`` is what a Python upgrade must rerun.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar, TypeVarTuple

from typing_extensions import override

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class SimulationError(Exception):
    """The simulation itself cannot go on or a callback failed; the text says where."""


_process: contextvars.ContextVar[Process | None] = contextvars.ContextVar("magnetar_sim_process", default=None)


class ProcessLoop(asyncio.BaseEventLoop):
    """A loop that drops what belongs to a dead process."""

    def __init__(self) -> None:
        super().__init__()
        self._any_dead = False
        self._unfinished: dict[asyncio.Task[Any], None] = {}  # in order of creation: asyncio's own set has none

    @override
    def call_soon(
        self,
        callback: Callable[[*Ts], object],
        *args: *Ts,
        context: contextvars.Context | None = None,
    ) -> asyncio.Handle:
        handle = super().call_soon(callback, *args, context=context)
        if self._any_dead:
            _drop_if_dead(handle)
        return handle

    @override
    def call_at(
        self,
        when: float,
        callback: Callable[[*Ts], object],
        *args: *Ts,
        context: contextvars.Context | None = None,
    ) -> asyncio.TimerHandle:
        handle = super().call_at(when, callback, *args, context=context)
        if self._any_dead:
            _drop_if_dead(handle)
        return handle

    @override
    def create_task(  # type: ignore[override]  # typeshed hides the type of what the loop accepts
        self, coro: Coroutine[Any, Any, Any], *, name: str | None = None, context: contextvars.Context | None = None
    ) -> asyncio.Task[Any]:
        task: asyncio.Task[Any] = super().create_task(coro, name=name, context=context)
        process = _process.get() if context is None else context.get(_process)
        self._unfinished[task] = None
        if process is not None:
            process._tasks[task] = None
        task.add_done_callback(lambda done: self._forget(done, process), context=contextvars.Context())
        return task

    def unfinished(self) -> list[asyncio.Task[Any]]:
        """Return the tasks that run, in the order in which they began; those of dead processes are none."""
        return list(self._unfinished)

    def _forget(self, task: asyncio.Task[Any], process: Process | None) -> None:
        self._unfinished.pop(task, None)
        if process is not None:
            process._tasks.pop(task, None)

    def _drop(self, process: Process) -> None:
        self._any_dead = True
        for handle in [*self._ready, *self._scheduled]:  # type: ignore[attr-defined]  # private queues
            if not handle.cancelled() and handle._context.get(_process) is process:
                handle.cancel()


def _drop_if_dead(handle: asyncio.Handle) -> None:
    context: contextvars.Context = handle._context  # type: ignore[attr-defined]  # no public way to ask
    process = context.get(_process)
    if process is not None and not process.alive:
        handle.cancel()


class Process:
    """What can be killed: every task and callback that was started from inside :meth:`start`.

    Owned by the simulation, never by the product. ``kill`` must be called from outside the process.
    """

    def __init__(self, loop: ProcessLoop, name: str) -> None:
        self.name = name
        self.alive = True
        self._loop = loop
        self._context = contextvars.copy_context()
        self._context.run(_process.set, self)
        self._at_kill: list[Callable[[], None]] = []
        self._tasks: dict[asyncio.Task[Any], None] = {}

    @staticmethod
    def current() -> Process | None:
        """The process of the running callback, if it belongs to one."""
        return _process.get()

    def start(self, main: Coroutine[Any, Any, T], name: str | None = None) -> asyncio.Task[T]:
        """Run ``main`` inside the process."""
        if not self.alive:
            main.close()
            raise SimulationError(f"process {self.name} is dead")
        return self._loop.create_task(main, name=name or self.name, context=self._context.copy())

    def waiting(self) -> list[str]:
        """What it has still to do: its tasks that have not ended, and its timers."""
        tasks = [task.get_name() for task in self._tasks]
        timers = [
            repr(handle)
            for handle in self._loop._scheduled  # type: ignore[attr-defined]  # a private queue
            if not handle.cancelled() and handle._context.get(_process) is self
        ]
        return tasks + timers

    def at_kill(self, callback: Callable[[], None]) -> None:
        """Called, outside the process, once it is dead: the network cuts its connections here."""
        self._at_kill.append(callback)

    def kill(self) -> None:
        """Stop everything now. Nothing the dead code still does while it unwinds can schedule anything."""
        if not self.alive:
            return
        if Process.current() is self:
            raise SimulationError(f"process {self.name} cannot kill itself")
        self.alive = False
        self._loop._drop(self)
        for task in list(self._tasks):
            self._loop._forget(task, self)
            if not task.done():
                self._unwind(task)
        for callback in self._at_kill:
            callback()

    def _unwind(self, task: asyncio.Task[Any]) -> None:
        # A suspended coroutine would run its `finally` blocks whenever it is collected, that is at a moment that
        # no other run repeats. So they run here, against a disk and a network which are dead already.
        task._log_destroy_pending = False  # type: ignore[attr-defined]  # asyncio has no public name for it
        coroutine = task.get_coro()
        if coroutine is None:
            return
        for _ in range(1000):
            try:
                self._context.copy().run(coroutine.throw, _KilledError())
            except BaseException:
                return
        raise SimulationError(f"{task.get_name()} cannot be killed: it swallows every exception")


class _KilledError(BaseException):
    """Unwinds the coroutines of a killed process; nothing may catch it to go on."""
