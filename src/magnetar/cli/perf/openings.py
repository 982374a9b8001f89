"""What a test opens before it begins: producers, consumers and readers, some at a time however many there are."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable
from itertools import islice
from typing import Final, TypeVar

from magnetar.cli.perf.report import say

AT_ONCE: Final = 200
"""Openings under way: all of 100,000 at once answer no signal for minutes."""
_SAY_EVERY: Final = 5.0
"""Seconds between lines of progress."""
_T = TypeVar("_T")


async def opened(openings: Iterable[Awaitable[_T]]) -> list[_T]:
    """Await ``openings``, made one after the other, and return what they give in their order.

    Raises the first error; those that were not made by then never are. What takes long prints how far it is.
    """
    time = asyncio.get_running_loop().time
    found: list[_T] = []
    left = iter(openings)
    said = time()
    while some := list(islice(left, AT_ONCE)):
        found += await asyncio.gather(*some)
        if time() - said >= _SAY_EVERY:
            said = time()
            say(f"Opened {len(found)} so far")
    return found
