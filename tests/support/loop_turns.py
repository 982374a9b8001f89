"""Turns of the event loop: those that others have beside something, and those that a test lets pass."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager


async def settled(turns: int = 50) -> None:
    """Let everything happen that is due already, in so many turns."""
    for _ in range(turns):
        await asyncio.sleep(0)


class Turns:
    """How many turns another task has had."""

    def __init__(self) -> None:
        self.count = 0


@contextmanager
def turns_of_others(each: Callable[[], object] = lambda: None) -> Iterator[Turns]:
    """Count the turns that another task has while the block waits, which does ``each`` in every one of them."""
    turns = Turns()

    async def others() -> None:
        while True:
            turns.count += 1
            each()
            await asyncio.sleep(0)

    task = asyncio.get_running_loop().create_task(others())
    try:
        yield turns
    finally:
        task.cancel()
