"""Turns callbacks into ``await``: the broker's inside calls back, REST and background tasks await."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


async def answered(ask: Callable[[Callable[[T | Exception], None]], object]) -> T:
    """Return what ``ask`` passes to its callback, at once or later; an exception is raised.

    A result that comes after a cancellation is dropped.
    """
    answer: asyncio.Future[T] = asyncio.get_running_loop().create_future()

    def receive(result: T | Exception) -> None:
        if answer.done():
            return
        if isinstance(result, Exception):
            answer.set_exception(result)
        else:
            answer.set_result(result)

    ask(receive)
    return await answer


async def settled(register: Callable[[Callable[[], None], Callable[[Exception], None]], object]) -> None:
    """Wait for one of the two callbacks that ``register`` is given: the first returns, the second raises its error."""
    answer: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def done() -> None:
        if not answer.done():
            answer.set_result(None)

    def failed(error: Exception) -> None:
        if not answer.done():
            answer.set_exception(error)

    register(done, failed)
    await answer
