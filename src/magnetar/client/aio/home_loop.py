"""The event loop of one asyncio client: the first one that it is used on.

Sockets, timers and futures belong to a loop, and a second one, of another asyncio.run or another thread, would find
them closed or wait for what is never completed.
"""

from __future__ import annotations

import asyncio

from magnetar.client.errors import ForeignLoopError


class HomeLoop:
    """Which loop it is, once that is known."""

    __slots__ = ("_loop",)

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None

    def forget(self) -> None:
        """Begin anew, in a process that was forked off: what is refused there has another reason."""
        self._loop = None

    def check(self) -> None:
        """Raise ForeignLoopError on another loop than the first one."""
        running = asyncio._get_running_loop()
        if running is not self._loop and running is not None:
            if self._loop is not None:
                raise ForeignLoopError()
            self._loop = running
