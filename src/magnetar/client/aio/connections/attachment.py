"""Keeps one producer or consumer attached to the broker that serves its topic: the I/O around `HandleLife`.

One task looks the topic up, opens the handle, waits until it is lost, pauses, and begins again, until the application
closes it or an error is final. Its owner says how it is opened, and hears of every opening and every loss.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from typing import TypeVar

from magnetar.client.aio.connections.topic_lookup import TopicLookup, is_transient
from magnetar.client.aio.connections.wire_connection import WireConnection
from magnetar.client.errors import AlreadyClosedError, ClientTimeoutError, ConnectionLostError, RefusedError
from magnetar.client.machines.handle_life import HandleLife, LifeEvent, LifeState
from magnetar.runtime.log import RateLimitedLog

Answer = TypeVar("Answer")
_limited = RateLimitedLog(logging.getLogger(__name__), burst=1)


class Attachment:
    """One handle's way to its broker."""

    def __init__(
        self,
        topic: str,
        lookup: TopicLookup,
        rng: random.Random,
        open_handle: Callable[[WireConnection], Awaitable[None]],
        on_failed: Callable[[Exception], None],
        *,
        timeout: float,
    ) -> None:
        """``open_handle`` opens it on a connection or raises; ``on_failed`` is called when it never will be again."""
        self.topic = topic
        self.connection: WireConnection | None = None
        """Where it is open; None while it is not."""
        self.trouble: Exception | None = None
        """Why the last attempt failed; None if it did not."""
        self._lookup = lookup
        self._rng = rng
        self._open_handle = open_handle
        self._on_failed = on_failed
        self._loop = asyncio.get_running_loop()
        self.life = HandleLife(self._loop.time() + timeout, lookup.backoff)
        self._ready: asyncio.Future[None] = self._loop.create_future()
        self._loss: asyncio.Future[Exception] = self._loop.create_future()
        self._task: asyncio.Task[None] | None = self._loop.create_task(self._run())

    @property
    def why(self) -> str:
        """Why it is not connected, in brackets after a sentence that says so; empty if that is not known."""
        return "" if self.trouble is None else f" ({self.trouble})"

    async def opened(self) -> None:
        """Wait until it is open for the first time. Raises why it never will be."""
        await asyncio.shield(self._ready)

    async def reopened(self, openings: int) -> None:
        """Wait until it was open more than ``openings`` times. Raises why it never will be."""
        while self.life.openings <= openings:
            if self.life.ended:
                raise self.life.error or AlreadyClosedError(f"{self.topic}: it is closed")
            if self._ready.done():
                self._ready = self._loop.create_future()
            await asyncio.shield(self._ready)

    async def ask(
        self, what: str, deadline: float, attempt: Callable[[WireConnection, float], Awaitable[Answer]]
    ) -> Answer:
        """Return what ``attempt`` returns, made where it is open, and again where it is open next if it is lost then.

        Only for what may be asked twice: whether a request whose answer got lost was carried out is not known. Raises
        ClientTimeoutError at the deadline, why it never will be open again, and RefusedError.
        """
        began = self._loop.time()
        while True:
            connection = await self._reached(what, deadline, began)
            openings = self.life.openings
            try:
                return await attempt(connection, deadline)
            except (ConnectionLostError, RefusedError) as error:
                if self.connection is connection and self.life.openings == openings:
                    raise
                # A topic that is unloaded knows its consumers no more, and says so.
                if isinstance(error, RefusedError) and not error.retriable:
                    raise

    async def _reached(self, what: str, deadline: float, began: float) -> WireConnection:
        """Return where it is open, waiting for that until the deadline."""
        try:
            async with asyncio.timeout_at(deadline):
                while self.connection is None:
                    await self.reopened(self.life.openings)
                return self.connection
        except TimeoutError:
            raise ClientTimeoutError(
                f"{what}: {self.topic} was not connected again within {deadline - began:.3g} s{self.why}"
            ) from None

    def on_lost(self, error: Exception) -> None:
        """Note that the broker does not serve it any more; it is opened again."""
        self.connection = None
        if not self._loss.done():
            self._loss.set_result(error)

    async def _run(self) -> None:
        try:
            while not self.life.ended:
                pause = await self._attempt()
                if pause is not None:
                    await self._lookup.pause(pause)
                    self.life.on(LifeEvent.PAUSE_OVER)
        except Exception as error:  # an error of ours must not leave everybody waiting
            if not self.life.ended:
                self.life.state, self.life.error = LifeState.FAILED, error
        if self.life.state is LifeState.FAILED:
            assert self.life.error is not None
            if not self._ready.done():
                self._ready.set_exception(self.life.error)
                self._ready.exception()
            self._on_failed(self.life.error)

    async def _attempt(self) -> float | None:
        """Open it once and stay with it; returns the pause before the next attempt."""
        self._loss = self._loop.create_future()
        try:
            connection = await self._lookup.connect(self.topic)
            await self._open_handle(connection)
        except Exception as error:
            self.trouble = error
            pause = self.life.failed(error, self._loop.time(), self._rng.random())
            if pause is not None and not is_transient(error):
                _limited.warning(
                    f"{type(error).__name__}: {error}"[:500],
                    "%s was open, and cannot be opened again; it is tried on: %s", self.topic, error,
                    extra={"topic": self.topic},
                )  # fmt: skip
            return pause
        self.trouble = None
        self.life.opened()
        if not self._loss.done():
            self.connection = connection
        if not self._ready.done():
            self._ready.set_result(None)
        return self.life.failed(await self._loss, self._loop.time(), self._rng.random())

    async def close(self) -> WireConnection | None:
        """End it; returns the connection on which the handle is still open."""
        connection, self.connection = self.connection, None
        self.life.on(LifeEvent.CLOSE)
        if self._task is not None:
            self._task.cancel()
            # nothing refers to itself: the task ends with an error, and that has the frames of this object's functions
            self._task, self._open_handle, self._on_failed = None, _closed, _ignored
        if not self._ready.done():
            self._ready.set_exception(AlreadyClosedError(f"{self.topic}: it was closed"))
            self._ready.exception()
        return connection


async def _closed(_: WireConnection) -> None:
    raise AlreadyClosedError("it is closed")


def _ignored(_: Exception) -> None:
    return
