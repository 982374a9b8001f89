"""An asyncio loop in virtual time: no sockets, no sleeping, no threads; the same seed gives the same run.

Theory of operation. When nothing is ready the loop asks its selector to wait; ours waits by moving the clock
forward to the next timer. An hour of timeouts therefore costs nothing, and "nothing ready and no timer" is
provably a deadlock, reported with every waiting task instead of hanging. Callbacks keep asyncio's promised first-in
order; chance enters only through delays (disk here, network in :mod:`magnetar.testing.network`), all drawn from
:attr:`SimLoop.rng`.

Disk work. :meth:`SimLoop.run_in_executor` models a job as three moments: the worker takes it, its *work* happens (at
once, in this thread), its completion reaches the loop. A crash can fall between any two. One executor with a single
thread is one lane: work happens and completes in submission order, as the journal's writer needs. Other executors
give no order, as in life.

Processes (:mod:`magnetar.testing.processes`) can be killed at any moment.

Five private hooks of CPython's ``BaseEventLoop`` are used (``_selector``, ``_clock_resolution``, ``_process_events``,
``_write_to_self`` and the queues ``_ready``/``_scheduled``): ``tests/unit/testing/test_simloop.py`` is what a Python
upgrade must rerun.
"""

from __future__ import annotations

import asyncio
import contextvars
import random
import struct
import zlib
from collections.abc import Callable, Coroutine
from typing import Any, Final, Protocol, TypeVar, TypeVarTuple

from typing_extensions import override

from magnetar.testing.executor_lane import Job, Lane
from magnetar.testing.processes import ProcessLoop, SimulationError

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

IDLE_TURNS_MAX: Final = 1_000_000
"""So many turns without the clock moving are an endless loop of callbacks."""


class SimulationStuckError(SimulationError):
    """Every task waits and nothing can wake one of them, or virtual time ran past the limit."""


class Connector(Protocol):
    """What implements ``create_connection`` and ``create_server`` (:class:`magnetar.testing.network.Network`)."""

    async def connect(
        self, factory: Callable[[], asyncio.BaseProtocol], host: str, port: int
    ) -> tuple[asyncio.Transport, asyncio.BaseProtocol]: ...

    def listen(self, factory: Callable[[], asyncio.BaseProtocol], host: str, port: int) -> asyncio.AbstractServer: ...


class _VirtualSelector:
    """Waits by moving the clock, and folds every turn into a checksum of the run."""

    def __init__(self, loop: SimLoop) -> None:
        self._loop = loop
        self.now = 0.0
        self.turns = 0
        self.idle_turns = 0
        self.checksum = 0

    def select(self, timeout: float | None) -> list[Any]:
        loop = self._loop
        if timeout is None:
            raise SimulationStuckError(f"stuck at {self.now:.6f} s, no timer is set; {loop.waiting()}")
        self.turns += 1
        self.idle_turns = 0 if timeout > 0 else self.idle_turns + 1
        if self.idle_turns > IDLE_TURNS_MAX:
            raise SimulationStuckError(f"callbacks never rest at {self.now:.6f} s; {loop.waiting()}")
        self.now += max(timeout, 0.0)
        if loop.limit_s is not None and self.now > loop.limit_s:
            raise SimulationStuckError(f"virtual time passed the limit of {loop.limit_s:g} s; {loop.waiting()}")
        self.checksum = zlib.crc32(struct.pack("<dI", self.now, loop.ready_count()), self.checksum)
        return []

    def close(self) -> None:
        pass


class SimLoop(ProcessLoop):
    """One run. ``limit_s`` is the virtual time after which the run is an error (None: no limit)."""

    def __init__(
        self, seed: int, *, limit_s: float | None = None, disk_delay_s: tuple[float, float] = (0.0001, 0.02)
    ) -> None:
        super().__init__()
        self.seed = seed
        self.rng = random.Random(seed)
        self.limit_s = limit_s
        self.disk_delay_s = disk_delay_s
        self.network: Connector | None = None
        self.failures: list[tuple[str, BaseException | None]] = []
        self._virtual = _VirtualSelector(self)
        self._selector = self._virtual
        self._clock_resolution = 1e-9
        self._lanes: dict[int, Lane] = {}
        self.set_exception_handler(lambda _, context: self._note_failure(context))

    @override
    def time(self) -> float:
        return self._virtual.now

    def fingerprint(self) -> tuple[int, int, int]:
        """Turns, checksum over every turn, state of chance. Equal for equal runs; for tests of determinism."""
        return self._virtual.turns, self._virtual.checksum, zlib.crc32(repr(self.rng.getstate()).encode())

    def ready_count(self) -> int:
        return len(self._ready)  # type: ignore[attr-defined]  # private queue of BaseEventLoop

    def waiting(self) -> str:
        """Each unfinished task and the line it waits at."""
        lines = [f"{task.get_name()} at {_place(task)}" for task in self._unfinished]
        return f"{len(lines)} waiting: " + "; ".join(lines)

    @override
    def call_soon_threadsafe(
        self,
        callback: Callable[[*Ts], object],
        *args: *Ts,
        context: contextvars.Context | None = None,
    ) -> asyncio.Handle:
        return self.call_soon(callback, *args, context=context)  # there is one thread; none has to be woken

    @override
    def run_in_executor(self, executor: Any, func: Callable[[*Ts], T], *args: *Ts) -> asyncio.Future[T]:
        """Disk work: taken, done and completed at three later moments (module docstring)."""
        if getattr(executor, "_shutdown", False):
            raise RuntimeError("cannot schedule new futures after shutdown")
        if getattr(executor, "_max_workers", 0) == 1:
            lane = self._lanes.setdefault(id(executor), Lane(executor))
        else:
            lane = Lane(executor)  # nothing else is in it: no order
        job = Job(self.create_future(), lambda: func(*args))
        if lane.held is None:
            job.schedule(self, lane)
        else:
            lane.held.append(job)
        return job.done

    def hold(self, executor: Any) -> None:
        """Begin nothing more that is given to this executor of one thread: its disk hangs."""
        lane = self._lanes.setdefault(id(executor), Lane(executor))
        if lane.held is None:
            lane.held = []

    def release(self, executor: Any) -> None:
        """The disk works again: what waits is done in the order in which it came."""
        lane = self._lanes.setdefault(id(executor), Lane(executor))
        waiting, lane.held = lane.held or [], None
        for job in waiting:
            job.schedule(self, lane)

    @override
    async def create_connection(  # type: ignore[override]  # only the host-and-port form exists here
        self, protocol_factory: Callable[[], asyncio.BaseProtocol], host: str, port: int, **_: Any
    ) -> tuple[asyncio.Transport, asyncio.BaseProtocol]:
        if self.network is None:
            raise ConnectionRefusedError("this simulation has no network")
        return await self.network.connect(protocol_factory, host, port)

    @override
    async def create_server(  # type: ignore[override]  # only the host-and-port form exists here
        self, protocol_factory: Callable[[], asyncio.BaseProtocol], host: str, port: int, **_: Any
    ) -> asyncio.AbstractServer:
        if self.network is None:
            raise OSError("this simulation has no network")
        return self.network.listen(protocol_factory, host, port)

    @override
    async def getaddrinfo(self, host: Any, port: Any, **_: Any) -> Any:
        raise OSError(f"no name service in a simulation: {host}:{port}")

    def _note_failure(self, context: dict[str, Any]) -> None:
        if "future" in context or "task" in context:
            # "never retrieved" comes when the garbage collector finds it: worth a log line, but no part of the run
            self.default_exception_handler(context)
        else:
            self.failures.append((str(context.get("message")), context.get("exception")))

    def _process_events(self, event_list: list[Any]) -> None:
        pass

    def _write_to_self(self) -> None:
        pass


def _place(task: asyncio.Task[Any]) -> str:
    """File, line and function of the innermost await we can see."""
    awaited: Any = task.get_coro()
    frame = None
    while awaited is not None:
        frame = getattr(awaited, "cr_frame", None) or getattr(awaited, "gi_frame", None) or frame
        awaited = getattr(awaited, "cr_await", None) or getattr(awaited, "gi_yieldfrom", None)
    if frame is None:
        return "an unknown place"
    code = frame.f_code
    return f"{code.co_filename.rpartition('/')[2]}:{frame.f_lineno} ({code.co_qualname})"


class SimClock:
    """Wall-clock time of the simulated machine: starts at ``epoch_ms``, follows virtual time, can jump."""

    def __init__(self, loop: asyncio.AbstractEventLoop, epoch_ms: int = 1_700_000_000_000) -> None:
        self._loop = loop
        self.epoch_ms = epoch_ms
        self.offset_ms = 0

    def now_ms(self) -> int:
        return self.epoch_ms + self.offset_ms + int(self._loop.time() * 1000)

    def jump(self, by_ms: int) -> None:
        """What a wrong clock or its correction does: forwards or backwards, timers are not touched."""
        self.offset_ms += by_ms


def run(seed: int, main: Coroutine[Any, Any, T], *, limit_s: float | None = 7 * 86_400.0) -> T:
    """Run ``main`` to its end in a new :class:`SimLoop`; a failed callback fails the run.

    Inside, ``asyncio.get_running_loop()`` is the SimLoop.
    """
    return run_in(SimLoop(seed, limit_s=limit_s), main)


def run_in(loop: SimLoop, main: Coroutine[Any, Any, T]) -> T:
    """:func:`run` with a loop of your own settings; the loop is closed afterwards."""
    try:
        try:
            result = loop.run_until_complete(main)
        finally:
            _cancel_rest(loop)
    finally:
        loop.close()
    for message, error in loop.failures:
        raise SimulationError(f"seed {loop.seed}: {message}") from error
    return result


def _cancel_rest(loop: SimLoop) -> None:
    rest = list(loop._unfinished)
    for task in rest:
        task.cancel()
    loop.limit_s = None
    loop._virtual.idle_turns = 0
    try:
        if rest:
            loop.run_until_complete(asyncio.wait(rest))
        loop.run_until_complete(loop.shutdown_asyncgens())
    except SimulationStuckError as stuck:
        loop.failures.append((f"tasks do not end when cancelled: {stuck}", None))
