"""Awaiting what is answered by callback: the broker's inside calls back, REST and background runs await."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


async def answered(ask: Callable[[Callable[[T | Exception], None]], object]) -> T:
    """What ``ask`` has its callback told, at once or later; an exception is raised. What comes after a cancellation is
    not heard."""
    answer: asyncio.Future[T] = asyncio.get_running_loop().create_future()

    def told(result: T | Exception) -> None:
        if answer.done():
            return
        if isinstance(result, Exception):
            answer.set_exception(result)
        else:
            answer.set_result(result)

    ask(told)
    return await answer


async def settled(register: Callable[[Callable[[], None], Callable[[Exception], None]], object]) -> None:
    """Until the first of the two callbacks that ``register`` is given is called: it is done, or the error is raised."""
    answer: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def done() -> None:
        if not answer.done():
            answer.set_result(None)

    def failed(error: Exception) -> None:
        if not answer.done():
            answer.set_exception(error)

    register(done, failed)
    await answer
