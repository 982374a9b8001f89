"""What Python, asyncio and uvloop keep of freed objects goes back to the allocator after a burst.

Python gives an arena of 1 MB back to the system when no block of it is in use. Of some types freed objects are kept for
the next one: up to 2,000 tuples of each length, 255 contexts, 100 floats; 255 iterators of futures (asyncio's); 250
handles and 250 timers (uvloop's). After hundreds of connections they lie in all arenas, and so do the names that the
cache of attribute look-ups holds, and the formats in the cache of :mod:`struct`, one for each number of entries that
were stored together. No object refers to what is kept, so nothing that looks at objects finds it.

Python's own lists are emptied by a full collection, as the documentation of :func:`gc.collect` says. The others cannot
be emptied, only filled anew: all that is in them is taken out, as many are made beside, and these are put in first.
"""

from __future__ import annotations

import asyncio
import gc
import struct
import sys
from collections.abc import Callable
from typing import Any, Final

KEPT: Final = 256
"""Objects that one list of asyncio's or uvloop's holds at most, or a few more."""
_BLOCKS_MORE: Final = 200_000
"""Blocks in use beyond those at first, above which nothing is collected: it would take long, and much is in use."""


class FreeLists:
    """The lists of one process; made when it has what it needs to run."""

    def __init__(self) -> None:
        self._at_first = sys.getallocatedblocks()

    async def give_back(self) -> None:
        """Empty them, or fill them anew: some milliseconds on the running loop, unless very much is in use."""
        loop = asyncio.get_running_loop()
        future = loop.create_future()
        _exchange([iter(future) for _ in range(2 * KEPT)])
        timers = [loop.call_later(3600.0, _nothing) for _ in range(2 * KEPT)]
        handles = [loop.call_soon(_nothing) for _ in range(2 * KEPT)]
        for one in (*timers, *handles):
            one.cancel()
        await asyncio.sleep(0)  # the loop lets go of them
        _exchange(timers)
        _exchange(handles)
        if sys.getallocatedblocks() <= self._at_first + _BLOCKS_MORE:
            gc.collect()
        _forget_names()
        _forget_formats()


if sys.version_info >= (3, 13):
    _forget_names = sys._clear_internal_caches  # its name since then
else:
    _forget_names = sys._clear_type_cache

_forget_formats: Final[Callable[[], None]] = getattr(struct, "_clearcache", lambda: None)
"""Empties the cache of :mod:`struct`; there is no public name for it."""


def _exchange(made: list[Any]) -> None:
    """Free what was made of new memory, which the list keeps, and then what came from the list."""
    del made[len(made) // 2 :]
    made.clear()


def _nothing() -> None:
    """What is never called."""
