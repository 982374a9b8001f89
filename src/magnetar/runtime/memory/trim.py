"""Freed memory goes back to the system after a burst (``malloc_trim``).

The memory of many connections or large answers is free when they are gone, but the C library keeps it in pieces between
blocks that are still in use; ``malloc_trim`` gives whole pages of it back. A call takes some milliseconds, in a thread,
so it is made only when the process has grown since the last call, and now and then while the process is larger than it
was at first.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
from collections.abc import Awaitable, Callable
from functools import cache
from pathlib import Path
from time import process_time
from typing import Any, Final

SECONDS: Final = 10.0
"""The time between two checks."""
GROWN_BYTES: Final = 8 << 20
"""Growth of resident memory since the last call that is worth another one."""
PATIENCE: Final = 3
"""Checks without a call after which the process's first size counts instead of its last one."""
IDLE_SECONDS: Final = 1.0
"""Processor time between two checks below which nothing is going on for which free memory should be at hand."""

_STATM: Final = Path("/proc/self/statm")


_M_ARENA_MAX: Final = -8


def share_one_heap() -> None:
    """Have all threads allocate from one heap; call it before there is a second thread.

    Else each thread keeps what was freed in a heap of its own, where the loop cannot use it. Python's threads allocate
    one at a time in any case. Does nothing where the C library has no ``mallopt``.
    """
    if hasattr(_library(), "mallopt"):
        _library().mallopt(_M_ARENA_MAX, 1)


def trim() -> None:
    """Give free pages back to the system; does nothing where the C library has no ``malloc_trim``."""
    if hasattr(_library(), "malloc_trim"):
        _library().malloc_trim(0)


@cache
def _library() -> Any:
    """Return the C library; each look at a function that is not there yet leaves garbage."""
    return ctypes.CDLL(None)


def resident_bytes() -> int:
    """Resident memory of this process; 0 where the system does not report it."""
    try:
        return int(_STATM.read_bytes().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


class MemoryTrimmer:
    """Decides from the process's resident memory when to trim, and from what it did lately what to take out of use."""

    def __init__(
        self,
        forget: Callable[[], Awaitable[None]],
        withdraw: Callable[[], Awaitable[object]],
        trim: Callable[[], None] = trim,
        resident: Callable[[], int] = resident_bytes,
        busy: Callable[[], float] = process_time,
    ) -> None:
        """``forget`` lets go of what can be made anew and of what was withdrawn; called before ``trim``, on the loop.

        ``withdraw`` takes free places out of use; called after ``forget`` if the process was idle since the last check.
        ``busy`` is its processor time in seconds.
        """
        self._forget = forget
        self._withdraw = withdraw
        self._trim = trim
        self._resident = resident
        self._busy = busy
        self._first = self._last = resident()
        self._checks = 0
        self._worked = busy()

    async def trim_if_grown(self) -> None:
        """Trim if much memory may be free."""
        idle = self._was_idle()
        self._checks += 1
        resident = self._resident()
        self._last = min(self._last, resident)
        if resident < self._last + GROWN_BYTES and (self._checks < PATIENCE or resident < self._first + GROWN_BYTES):
            return
        self._checks = 0
        await self._forget()
        if idle:
            await self._withdraw()
        await asyncio.to_thread(self._trim)
        self._last = self._resident()

    def _was_idle(self) -> bool:
        """Whether the process did little since this was last asked."""
        before, self._worked = self._worked, self._busy()
        return self._worked - before < IDLE_SECONDS
