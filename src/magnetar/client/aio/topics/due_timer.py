"""A timer that knows when it is due, whatever the event loop's handles can say.

uvloop answers ``call_at`` for a moment that is less than half a millisecond away with a handle that has no ``when``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

NEVER: Final = float("inf")


class DueTimer:
    """Calls back once at the earliest moment that was asked for."""

    def __init__(self, loop: asyncio.AbstractEventLoop, callback: Callable[[], None]) -> None:
        self._loop = loop
        self._callback = callback
        self._handle: asyncio.Handle | None = None
        self._due = NEVER

    def by(self, due: float) -> None:
        """Call back at ``due``, by the loop's clock, unless that happens before."""
        if due < self._due:
            if self._handle is not None:
                self._handle.cancel()
            self._due = due
            self._handle = self._loop.call_at(max(due, self._loop.time()), self._ring)

    def end(self) -> None:
        """Never call back."""
        if self._handle is not None:
            self._handle.cancel()
        self._handle, self._due, self._callback = None, -NEVER, _nothing

    def _ring(self) -> None:
        self._handle, self._due = None, NEVER
        self._callback()


def _nothing() -> None:
    return
