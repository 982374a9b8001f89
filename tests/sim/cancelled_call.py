"""A call that is cancelled at its n-th await, before what it waits for or just as that has come."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Generator
from typing import Any, Final, TypeVar

from tests.sim.world import World, run_seed

T = TypeVar("T")
NOTHING: Final = object()
"""What a cancelled call returned."""
AWAITS_MAX: Final = 400


class CancelledCall:
    """``at``: the await, counted from 1. ``late``: cancel when what is awaited is done and the call has not gone on,
    which is where results get lost; otherwise at once."""

    def __init__(self, at: int, *, late: bool) -> None:
        self._at = at
        self._late = late
        self._count = 0

    @property
    def reached(self) -> bool:
        """Whether the call came to that await."""
        return self._count >= self._at

    async def of(self, call: Coroutine[Any, Any, T]) -> T | object:
        """Return what the call returned, or NOTHING if it was cancelled."""
        task = asyncio.get_running_loop().create_task(self._counted(call))
        await asyncio.wait([task])
        return NOTHING if task.cancelled() else task.result()

    async def _counted(self, call: Coroutine[Any, Any, T]) -> T:
        found: T = await _Awaits(call, self._met)
        return found

    def _met(self, awaited: Any) -> None:
        self._count += 1
        if self._count != self._at:
            return
        task = asyncio.current_task()
        assert task is not None
        if self._late and isinstance(awaited, asyncio.Future):
            awaited.add_done_callback(lambda _: task.cancel())
        else:
            asyncio.get_running_loop().call_soon(task.cancel)


class _Awaits:
    """An awaitable that says what it is about to wait for."""

    def __init__(self, call: Coroutine[Any, Any, Any], met: Callable[[Any], None]) -> None:
        self._call = call
        self._met = met

    def __await__(self) -> Generator[Any, None, Any]:
        inner = self._call.__await__()
        error: BaseException | None = None
        while True:
            try:
                awaited = inner.send(None) if error is None else inner.throw(error)
            except StopIteration as ended:
                return ended.value
            self._met(awaited)
            error = None
            try:
                yield awaited
            except BaseException as thrown:
                error = thrown


Scenario = Callable[[World, CancelledCall], Coroutine[Any, Any, None]]


def at_every_await(scenario: Scenario, **options: Any) -> int:
    """Run a scenario once for each await of its call and each way to cancel there; returns how many awaits it has."""
    awaits = 0
    for late in (False, True):
        for at in range(1, AWAITS_MAX):
            cut = CancelledCall(at, late=late)

            async def simulation(world: World, cut: CancelledCall = cut) -> None:
                await world.boot()
                await scenario(world, cut)
                world.check_tasks()

            try:
                run_seed(simulation, 0, **options)
            except Exception as error:
                way = "as it was over" if late else "before it was over"
                raise AssertionError(f"{scenario.__qualname__}, cancelled at await {at} {way}: {error!r}") from error
            if not cut.reached:
                break
            awaits = max(awaits, at)
        else:
            raise AssertionError(f"{scenario.__qualname__} has {AWAITS_MAX} awaits, or never ends")
    return awaits
