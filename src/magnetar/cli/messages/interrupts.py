"""What SIGINT, SIGTERM and SIGHUP do to a command that is connected: the first ends it in order, a second one at once.

asyncio's own second Ctrl-C raises KeyboardInterrupt wherever the event loop is. Within the loop's own lines that loses
a callback, and the closing that waits for it never ends. Nothing is raised here.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Final

INTERRUPTED: Final = 130
"""The exit code."""
_PATIENCE_S: Final = 1.5
"""How long brokers may take to answer when everything is closed."""


class Interrupts:
    """The signals of one command."""

    def __init__(self) -> None:
        self._heard = 0
        self._task: asyncio.Task[None] | None = None
        self.leave: Callable[[], object] | None = None
        """Is called where closing takes too long after a signal, and leaves everything as it is."""

    @property
    def heard(self) -> bool:
        """Whether a signal has come."""
        return self._heard > 0

    def end(self, task: asyncio.Task[None]) -> None:
        """Cancel this task at the first signal. Raises CancelledError if there was one already."""
        self._task = task
        if self._heard:
            raise asyncio.CancelledError

    def on_signal(self, number: int, frame: FrameType | None) -> None:
        """Take a signal, wherever the program is; also while a write to a full pipe stops everything."""
        self._heard += 1
        if self._heard > 1:
            os._exit(INTERRUPTED)
        if self._task is not None:
            loop = self._task.get_loop()
            if not loop.is_closed():
                loop.call_soon_threadsafe(self._end, self._task)

    def _end(self, task: asyncio.Task[None]) -> None:
        task.cancel()
        if self.leave is not None:
            task.get_loop().call_later(_PATIENCE_S, self.leave)


@contextlib.contextmanager
def interrupts() -> Iterator[Interrupts]:
    """Take the signals within; not those that the program was started to ignore, as by nohup."""
    found = Interrupts()
    before = {
        number: signal.signal(number, found.on_signal)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        if signal.getsignal(number) is not signal.SIG_IGN
    }
    try:
        yield found
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
