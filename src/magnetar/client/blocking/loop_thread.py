"""The thread with the event loop of one blocking client.

`LoopThread.run` waits for a coroutine; `LoopThread.post` hands a call over without waiting, with one wake-up of the
loop for all that is handed over until it has woken up.

The thread ends when it is stopped, when its `LoopThread` is no longer referenced, and before the interpreter does. In a
process that was forked off there is no such thread: everything that needs it raises ForkedClientError there, and its
loop and sockets are left alone, since the other process goes on with them.
"""

from __future__ import annotations

import asyncio
import atexit
import logging
import os
import threading
import weakref
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from contextvars import ContextVar
from typing import Any, Final, Protocol, TypeVar

from magnetar.client.errors import AlreadyClosedError, ArgumentError, BlockedLoopError, ForkedClientError
from magnetar.model.errors import InvalidValueError

Result = TypeVar("Result")

loop_maker: Final[ContextVar[Callable[[], asyncio.AbstractEventLoop] | None]] = ContextVar("loop_maker", default=None)
"""Makes the loops of clients that are made in its context: the test kit's have its time."""

_LOG: Final = logging.getLogger(__name__)
_END_PATIENCE: Final = 5.0
"""Seconds for the thread to end; it is a daemon, and nothing waits for it longer."""
_LEAVE_PATIENCE: Final = 1.0
"""Seconds to close what was left open."""

_LEAVE_TRIES: Final = 10
"""How often functions of the application may raise SystemExit while the thread ends, and it goes on with that."""


class Closable(Protocol):
    """What can be opened and closed on the loop."""

    async def close(self) -> None: ...


class Giver(Protocol):
    """What lets those go on who wait for it when the thread has ended, and forgets what it has after a fork."""

    def give_up(self) -> None: ...
    def forget(self) -> None: ...


class LoopThread:
    """A daemon thread that runs an event loop until `stop`."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._run = _Run()
        self.loop: Final = self._run.loop
        self.refusal: Exception | None = None
        """Why nothing can be called any more; None while everything can."""
        self._posted: deque[Callable[[], object]] = deque()
        self._woken = False
        self._closing: set[asyncio.Task[None]] = set()
        # The thread knows the run only: it must not keep alive what ends it.
        self._thread = threading.Thread(target=self._run.forever, name=name, daemon=True)
        weakref.finalize(self, self._run.stop).atexit = False
        _OPEN.add(self)
        self._thread.start()

    def run(self, coroutine: Coroutine[Any, Any, Result], undo: Callable[[Result], object] | None = None) -> Result:
        """Wait for a coroutine on the loop; raises what it raises, AlreadyClosedError, BlockedLoopError.

        Interrupted (Ctrl-C), it is cancelled; ``undo`` is called on the loop with a result that is not returned.
        """
        call = _Call(coroutine, undo)
        try:
            self.check()
            if self.inside:
                raise BlockedLoopError()
            self._run.calls.add(call)
            self.loop.call_soon_threadsafe(call.start)
        except BaseException as error:
            coroutine.close()
            if isinstance(error, RuntimeError):  # the loop was closed meanwhile
                raise AlreadyClosedError("the client is closed") from None
            raise
        if self._run.ended:
            call.give_up()
        try:
            call.done.acquire()
            if call.error is None:
                found: Result = call.result
                return found
        except BaseException:
            call.abandoned = True
            self.post(call.cancel)
            raise
        try:
            raise as_argument(call.error)
        finally:
            del call

    def check(self) -> None:
        """Raise why nothing can be called any more."""
        if self.refusal is not None:
            raise self.refusal

    def check_process(self) -> None:
        """Raise ForkedClientError in a process that was forked off, where what is known of connections is not true."""
        if isinstance(self.refusal, ForkedClientError):
            raise self.refusal

    def may_wait(self) -> None:
        """Raise BlockedLoopError where nothing may wait; called first by what changes something before it waits."""
        if self.refusal is None and self.inside:
            raise BlockedLoopError()

    @property
    def inside(self) -> bool:
        """Whether the caller is on the loop thread itself, where nothing may wait."""
        return threading.current_thread() is self._thread

    @property
    def ended(self) -> bool:
        """Whether the loop takes nothing any more; what was handed over and not taken never will be."""
        return self._run.ended

    def post(self, call: Callable[[], object]) -> None:
        """Have the loop call this soon; does nothing once the thread has ended."""
        self._posted.append(call)
        if not self._woken:
            self._woken = True
            try:
                self.loop.call_soon_threadsafe(self._call_posted)
            except RuntimeError:  # the loop is closed
                self._posted.clear()
            except BaseException:
                self._woken = False  # interrupted: the next call wakes the loop up for both
                raise

    def _call_posted(self) -> None:
        self._woken = False
        posted = self._posted
        for _ in range(len(posted)):
            try:
                posted.popleft()()
            except BaseException:  # those after it are of others
                _LOG.exception("%s: a call that was handed over failed", self.name)

    def leaves_with(self, leave: Callable[[], Awaitable[object]]) -> None:
        """Have this awaited on the loop before it ends, whatever ends it."""
        self._run.leave = leave

    def closes_with(self, facade: object, handle: Closable) -> None:
        """Have a handle closed when its façade is no longer referenced: the client lives on, and keeps the handle."""
        weakref.finalize(facade, self._run.dropped, handle).atexit = False

    def gives_up_with(self, giver: Giver) -> None:
        """Have this one let those go on who wait for it, once the thread has ended."""
        self._run.givers.add(giver)

    def end(self, close: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Wait until a handle is closed; does nothing where everything is closed already, or belongs elsewhere."""
        if self.refusal is None:
            self.run(close())

    def closing(self, handle: Closable) -> None:
        """Close, on the loop, what was opened for a caller that is gone."""
        task = self.loop.create_task(handle.close())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    def stop(self) -> None:
        """End the thread and close the loop; nothing can be called afterwards."""
        if self.refusal is None:
            self.refusal = AlreadyClosedError("the client is closed")
        self._run.stop()
        if not self.inside and not self._run.elsewhere:
            self._thread.join(_END_PATIENCE)

    def forked(self) -> None:
        """Refuse everything in a process that was forked off."""
        self.refusal = ForkedClientError(self.name)
        for giver in self._run.givers:
            giver.forget()
        _INHERITED.append(self._run)


class _Run:
    """The loop and what ends it, which is all that the thread itself knows."""

    def __init__(self) -> None:
        self.loop = _new_loop()
        self.leave: Callable[[], Awaitable[object]] | None = None
        self.calls: weakref.WeakSet[_Call] = weakref.WeakSet()
        self.givers: weakref.WeakSet[Giver] = weakref.WeakSet()
        self.ended = False
        self._stopped = False
        self._process = os.getpid()
        self._dropped: set[asyncio.Task[None]] = set()

    @property
    def elsewhere(self) -> bool:
        """Whether the thread is in another process."""
        return os.getpid() != self._process

    def stop(self) -> None:
        """Have the thread end; may be called by any thread, also while garbage is collected."""
        if not self.elsewhere:
            try:
                self.loop.call_soon_threadsafe(self._stop)
            except RuntimeError:
                pass  # it has ended

    def _stop(self) -> None:
        self._stopped = True
        self.loop.stop()

    def _serve(self) -> None:
        """Run the loop until it is stopped, whatever a function of the application raises in it."""
        while not self._stopped:
            try:
                self.loop.run_forever()
            except (SystemExit, KeyboardInterrupt) as error:  # both leave a loop as it is
                _LOG.error("a function of the application raised %s in a client, which goes on", type(error).__name__)

    def dropped(self, handle: Closable) -> None:
        """Close a handle on the loop; may be called by any thread, also while garbage is collected."""
        if not self.elsewhere and not self.ended:
            with suppress(RuntimeError):  # it has ended
                self.loop.call_soon_threadsafe(self._close, handle)

    def _close(self, handle: Closable) -> None:
        task = self.loop.create_task(_closed(handle))
        self._dropped.add(task)
        task.add_done_callback(self._dropped.discard)

    def forever(self) -> None:
        """Run the loop until it is stopped, then leave everything closed."""
        loop = self.loop
        asyncio.set_event_loop(loop)
        try:
            self._serve()
            leaving = loop.create_task(self._leave())
            for _ in range(_LEAVE_TRIES):
                with suppress(RuntimeError, SystemExit, KeyboardInterrupt):  # a stop that waited, or raised meanwhile
                    loop.run_until_complete(leaving)
                    break
        finally:
            self.ended = True
            loop.close()
            for call in list(self.calls):
                call.give_up()
            for giver in list(self.givers):
                giver.give_up()

    async def _leave(self) -> None:
        if self.leave is not None:
            with suppress(TimeoutError):
                async with asyncio.timeout(_LEAVE_PATIENCE):
                    await self.leave()
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=_LEAVE_PATIENCE)
        await asyncio.sleep(0)  # transports close themselves in the next turn


async def _closed(handle: Closable) -> None:
    try:
        await handle.close()
    except Exception as error:
        _LOG.info("an abandoned handle could not be closed: %s", error)


class _Call:
    """One coroutine that a thread waits for."""

    def __init__(self, coroutine: Coroutine[Any, Any, Any], undo: Callable[[Any], object] | None) -> None:
        self.done = threading.Lock()
        self.done.acquire()
        self.error: BaseException | None = None
        self.result: Any = None
        self.abandoned = False
        self._coroutine = coroutine
        self._undo = undo
        self._task: asyncio.Task[Any] | None = None
        self._ended = False

    def start(self) -> None:
        """Begin, on the loop."""
        if self.abandoned:
            self._coroutine.close()
            return
        self._task = asyncio.get_running_loop().create_task(self._coroutine)
        self._task.add_done_callback(self._over)

    def cancel(self) -> None:
        """Stop, on the loop; a result that came before, and that the interrupted thread did not take, is undone."""
        task = self._task
        if task is None:
            return
        if not task.done():
            task.cancel()
        elif not task.cancelled() and task.exception() is None:
            self._take_back(task.result())

    def _take_back(self, result: Any) -> None:
        undo, self._undo = self._undo, None
        if undo is not None:
            undo(result)

    def give_up(self) -> None:
        """Let the thread go on, since the loop has ended."""
        if not self._ended:
            self._ended = True
            self.error = AlreadyClosedError("the client was closed while this call waited")
            if self._task is None:
                self._coroutine.close()
            self.done.release()

    def _over(self, task: asyncio.Task[Any]) -> None:
        if self._ended:
            return
        if task.cancelled():
            self.give_up()
            return
        error = task.exception()
        if error is not None:
            self.error = error
        else:
            self.result = task.result()
            if self.abandoned:
                self._take_back(self.result)
        self._ended = True
        self.done.release()


def as_argument(error: BaseException) -> BaseException:
    """Return an error to raise in a thread: one about an argument is a ValueError there, as in the official client."""
    if isinstance(error, InvalidValueError) and not isinstance(error, ValueError):
        told = ArgumentError(str(error))
        told.__cause__ = error
        return told
    return error


def _new_loop() -> asyncio.AbstractEventLoop:
    """Return the fastest event loop that is installed, or what the context wants."""
    make = loop_maker.get()
    if make is not None:
        return make()
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
    return loop


_OPEN: Final[weakref.WeakSet[LoopThread]] = weakref.WeakSet()
_INHERITED: Final[list[_Run]] = []
"""Of the process that this one was forked from: never closed here, which would disturb them there."""


@atexit.register
def _end_all() -> None:
    """End all threads before the interpreter takes their modules away."""
    for thread in list(_OPEN):
        if thread.refusal is None:
            thread.stop()


def _forked() -> None:
    for thread in list(_OPEN):
        thread.forked()


os.register_at_fork(after_in_child=_forked)
