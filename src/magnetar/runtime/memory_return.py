"""Memory goes back to the system when a burst is over.

What many connections or large answers held is free when they are gone, but the C library keeps it in pieces between
what is still used; asked to, it gives whole pages of that back. That takes some milliseconds, in a thread, so it is
asked only when the process has grown since the last time, and now and then while it is larger than it was at first.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

SECONDS: Final = 10.0
"""Between two looks."""
GROWN_BYTES: Final = 8 << 20
"""So much more resident memory than after the last time is worth asking."""
PATIENCE: Final = 3
"""Looks without an asking, after which what is free may be worth it again."""

_STATM: Final = Path("/proc/self/statm")


def trim() -> None:
    """Give back what can be given back; nothing where the C library has no such thing."""
    library: Any = ctypes.CDLL(None)
    if hasattr(library, "malloc_trim"):
        library.malloc_trim(0)


def resident_bytes() -> int:
    """Resident memory of this process; 0 where the system does not tell."""
    try:
        return int(_STATM.read_bytes().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


class MemoryReturn:
    """Looks at the process's memory whenever it is told to."""

    def __init__(self, trim: Callable[[], None] = trim, resident: Callable[[], int] = resident_bytes) -> None:
        self._trim = trim
        self._resident = resident
        self._first = self._last = resident()
        self._looks = 0

    async def look(self) -> None:
        """Ask for what is free if there may be much of it."""
        self._looks += 1
        resident = self._resident()
        self._last = min(self._last, resident)
        if resident < self._last + GROWN_BYTES and (self._looks < PATIENCE or resident < self._first + GROWN_BYTES):
            return
        self._looks = 0
        await asyncio.to_thread(self._trim)
        self._last = self._resident()
