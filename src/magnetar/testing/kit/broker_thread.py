"""The thread in which a broker of a test runs, and the ways into its event loop from other threads and loops."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Coroutine
from typing import Any, Final, TypeVar

from magnetar.model.errors import MagnetarError
from magnetar.testing.kit.virtual_loop import Timeline, VirtualLoop

T = TypeVar("T")

_PATIENCE_SECONDS: Final = 5.0


class BrokerClosedError(MagnetarError):
    """The broker of the test is closed, or belongs to the process that this one was forked from."""


class WouldBlockError(MagnetarError):
    """The call waits for something that cannot happen while it waits; the text names the call to use instead."""


class BrokerThread:
    """Owns thread and loop from :meth:`start` to :meth:`end`. The thread is a daemon: it keeps no process alive."""

    def __init__(self, timeline: Timeline) -> None:
        self.loop = VirtualLoop(timeline)
        self._process = os.getpid()
        self._open = False
        self._thread = threading.Thread(target=self._run, name="magnetar-test-broker", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._open = True
        self._thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        try:
            self.loop.run_forever()
        finally:
            self._tidy()

    def _tidy(self) -> None:
        loop = self.loop
        rest = loop.unfinished()
        for task in rest:
            task.cancel()
        if rest:
            loop.run_until_complete(asyncio.wait(rest, timeout=_PATIENCE_SECONDS))
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.run_until_complete(loop.shutdown_default_executor())
        asyncio.set_event_loop(None)
        loop.close()

    @property
    def inside(self) -> bool:
        """Whether the caller runs in this thread."""
        return threading.current_thread() is self._thread

    @property
    def open(self) -> bool:
        """Whether it serves this process."""
        return self._open and os.getpid() == self._process

    def _check(self) -> None:
        if not self._open:
            raise BrokerClosedError("this PulsarBroker is closed: make another one, or keep the test inside its `with`")
        if os.getpid() != self._process:
            raise BrokerClosedError(
                "this PulsarBroker lives in the process that this one was forked from: connect to its service_url, "
                "or make a broker here"
            )

    def call(self, make: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Run a coroutine in the loop and wait for its result; another thread only.

        Raises BrokerClosedError, WouldBlockError, and what it raises.
        """
        self._check()
        if self.inside:
            raise WouldBlockError("this is the broker's own thread, which cannot wait for itself: call from the test")
        doing = asyncio.run_coroutine_threadsafe(make(), self.loop)
        try:
            return doing.result()
        except BaseException:
            doing.cancel()  # Ctrl-C, for one
            raise

    async def await_(self, make: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Do as :meth:`call`, for another event loop."""
        self._check()
        if self.inside:
            return await make()
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(make(), self.loop))

    def abandon(self, close: Callable[[], Coroutine[Any, Any, object]]) -> None:
        """Close and end without waiting: the broker is no longer referenced."""
        if self.open:
            self._open = False
            loop = self.loop

            async def finish() -> None:
                try:
                    await close()
                finally:
                    loop.stop()

            asyncio.run_coroutine_threadsafe(finish(), loop)

    def end(self) -> None:
        """End loop and thread and wait for it. Repeatable; what still runs in the loop is cancelled."""
        if not self._open or os.getpid() != self._process:
            return
        self._open = False
        self.loop.call_soon_threadsafe(self.loop.stop)
        if not self.inside:
            self._thread.join()
