"""Memory goes back to the system when a crowd has left.

What many connections held is free when they are gone, but the C library keeps it in pieces between what is still used;
asked to, it gives whole pages of that back. That takes some milliseconds, in a thread.
"""

from __future__ import annotations

import asyncio
import ctypes
from collections.abc import Callable
from typing import Any, Final

CROWD: Final = 100
_SECONDS: Final = 5.0


def trim() -> None:
    """Give back what can be given back; nothing where the C library has no such thing."""
    library: Any = ctypes.CDLL(None)
    if hasattr(library, "malloc_trim"):
        library.malloc_trim(0)


class MemoryReturn:
    """Told of each connection that left; asks for the memory some seconds after a crowd has."""

    def __init__(self, trim: Callable[[], None] = trim) -> None:
        self._trim = trim
        self._left = 0
        self._timer: asyncio.TimerHandle | None = None
        self._running: asyncio.Future[None] | None = None

    def left(self) -> None:
        """One connection less."""
        self._left += 1
        if self._left >= CROWD and self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_SECONDS, self._give_back)

    def _give_back(self) -> None:
        self._timer = None
        self._left = 0
        self._running = asyncio.get_running_loop().run_in_executor(None, self._trim)

    def close(self) -> None:
        """Not any more."""
        if self._timer is not None:
            self._timer.cancel()
