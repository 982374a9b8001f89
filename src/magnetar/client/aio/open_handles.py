"""The producers and consumers that are open in one client, and what looks after them from time to time."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final

from magnetar.client.aio.consumers.consumer import Consumer
from magnetar.client.aio.producers.producer import Producer
from magnetar.client.errors import AlreadyClosedError, ClientError, ForkedClientError

_LOG: Final = logging.getLogger(__name__)


class OpenHandles:
    """The handles of one client; once it is closed no other is kept."""

    def __init__(self, stats_interval: float = 0.0) -> None:
        """``stats_interval``: seconds between two lines in the log about each handle; 0: there are none."""
        self._stats_interval = stats_interval
        self.closed = False
        self._refusal: ForkedClientError | None = None
        self._handles: dict[int, Producer[Any] | Consumer[Any]] = {}
        self._watchers: set[asyncio.Task[None]] = set()
        self._ending: set[asyncio.Task[None]] = set()

    def check(self) -> None:
        """Raise AlreadyClosedError once the client is closed, ForkedClientError in a process that was forked off."""
        if self._refusal is not None:
            raise self._refusal
        if self.closed:
            raise AlreadyClosedError("the client is closed")

    async def keep(self, handle: Producer[Any] | Consumer[Any]) -> None:
        """Close a handle with the client. Raises AlreadyClosedError if the client is closed, and then so is it."""
        if self.closed:
            await handle.close()
            self.check()
        self._handles[id(handle)] = handle
        handle.at_close.append(partial(self._handles.pop, id(handle), None))
        if self._stats_interval > 0:

            async def tell() -> None:
                _LOG.info("%s: %s", handle.topic(), handle.stats())

            self.watch(handle, tell, self._stats_interval)

    def release(self, handle: Producer[Any] | Consumer[Any]) -> None:
        """Leave the closing of a handle to the one it belongs to."""
        self._handles.pop(id(handle), None)

    def watch(self, handle: Producer[Any] | Consumer[Any], look: Callable[[], Awaitable[None]], period: float) -> None:
        """Call ``look`` every ``period`` seconds until the handle is closed; what fails is tried the next time."""

        async def run() -> None:
            while not self.closed:
                await asyncio.sleep(period)
                try:
                    await look()
                except AlreadyClosedError:
                    return
                except (ClientError, OSError):
                    continue

        task = asyncio.get_running_loop().create_task(run(), name=f"upkeep of {handle.topic()}")
        self._watchers.add(task)
        task.add_done_callback(self._watchers.discard)
        handle.at_close.append(task.cancel)

    def forked(self, error: ForkedClientError) -> None:
        """Have all refuse everything in a process that was forked off; nothing of them is closed there."""
        self._refusal, self.closed = error, True
        for handle in list(self._handles.values()):
            handle.forked(error)
        self._handles.clear()
        self._watchers.clear()

    def shut(self) -> None:
        """Keep no other, and look after none any more."""
        self.closed = True
        for task in list(self._watchers):
            task.cancel()

    def end(self) -> None:
        """Begin to close all: producers send what they have first, if there are connections."""
        for handle in list(self._handles.values()):
            task = asyncio.get_running_loop().create_task(handle.close())
            self._ending.add(task)
            task.add_done_callback(self._met_its_end)

    def _met_its_end(self, task: asyncio.Task[None]) -> None:
        self._ending.discard(task)
        if not task.cancelled():
            task.exception()  # a handle that cannot be closed keeps no other

    async def ended(self, seconds: float | None = None) -> None:
        """Wait until they are closed; not longer than so many seconds."""
        if self._ending:
            await asyncio.wait(self._ending, timeout=seconds)
