"""Coroutines begun at once: what does not wait is done before the call returns, what waits goes on as a task.

A write to the metadata store of one process waits for nothing but its own disk, one to a store of many processes waits
for a network. Commands that may write metadata are answered in their turn with the first, as if there were no coroutine
at all, and in no particular order with the second. (Python 3.12 has eager tasks; 3.11 has not.)
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator
from functools import partial
from typing import Any, Generic, TypeVar

from magnetar.model.errors import MagnetarError
from magnetar.runtime.tasks import TaskGroup

T = TypeVar("T")
Done = Callable[[T | None, MagnetarError | None], None]
"""Called with the result, or with the error that was raised."""


def run_eagerly(coroutine: Coroutine[Any, Any, T], done: Done[T], tasks: TaskGroup, name: str) -> None:
    """Run ``coroutine`` up to its first wait, then go on in ``tasks``; ``done`` is called once it has ended.

    Errors other than MagnetarError are the caller's to see, if they are raised before the first wait, else logged by
    ``tasks``; ``done`` is not called for them, nor if ``tasks`` are closed first.
    """
    try:
        waits_for = coroutine.send(None)
    except StopIteration as stop:
        done(stop.value, None)
    except MagnetarError as error:
        done(None, error)
    else:
        tasks.start(_finish(_Begun(coroutine, waits_for), done), name)


async def _finish(begun: _Begun[T], done: Done[T]) -> None:
    try:
        value = await begun
    except MagnetarError as error:
        done(None, error)
    else:
        done(value, None)


class _Begun(Generic[T]):
    """The rest of a coroutine that has run up to a wait, to be awaited like the whole."""

    def __init__(self, coroutine: Coroutine[Any, Any, T], waits_for: Any) -> None:
        self._coroutine = coroutine
        self._waits_for = waits_for

    def __await__(self) -> Generator[Any, Any, T]:
        waits_for = self._waits_for
        while True:
            try:
                value = yield waits_for
            except GeneratorExit:
                self._coroutine.close()
                raise
            except BaseException as error:
                step = partial(self._coroutine.throw, error)
            else:
                step = partial(self._coroutine.send, value)
            try:
                waits_for = step()
            except StopIteration as stop:
                return stop.value  # type: ignore[no-any-return]  # it is what the coroutine returns
