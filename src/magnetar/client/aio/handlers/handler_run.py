"""Runs a handler over what a consumer receives: some messages at a time, each key in order, until it is stopped.

    receive -> HandlerSchedule -> a task for each message -> acknowledged | comes again | dead letter topic

Nothing is received while as many messages are at hand as may be: the broker keeps the rest for other consumers.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final, Protocol

from magnetar.client.aio.handlers.outcome import Outcome, Reject, RejectedMessageError, Retry, RunReport
from magnetar.client.errors import AlreadyClosedError
from magnetar.client.machines.handler_schedule import NEVER, HandlerSchedule
from magnetar.client.machines.message import Message
from magnetar.client.machines.message_id import MessageId
from magnetar.model.errors import InvalidValueError

Handler = Callable[[Message[Any]], Awaitable[Outcome] | Outcome]

CONCURRENCY_MAX: Final = 10_000
_RETRY_FIRST: Final = 1.0
_RETRY_MOST: Final = 60.0
_log = logging.getLogger(__name__)


class HandledConsumer(Protocol):
    """What a run asks of a consumer."""

    def topic(self) -> str: ...
    async def receive(self) -> Message[Any]: ...
    def receive_nowait(self) -> Message[Any] | None: ...
    async def acknowledge(self, message: Message[Any], /) -> None: ...
    async def come_again(self, message: Message[Any], after: float | None, /) -> None: ...
    async def reject(self, message: Message[Any], reason: str, cause: BaseException | None, /) -> bool: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """How a handler is run."""

    concurrency: int = 1
    per_key_order: bool = True
    in_hand: int = 0
    """Messages that are handled or wait for it at most; 0: four times ``concurrency``."""
    attempts: int = 0
    """How often a message is handled before it is rejected; 0: for ever. Counted here where keys are in order, and
    otherwise by the broker's redelivery count."""
    drain_seconds: float = 30.0
    """How long handlers may go on after the run was stopped; then they are cancelled."""

    def __post_init__(self) -> None:
        """Raises InvalidValueError."""
        if not 1 <= self.concurrency <= CONCURRENCY_MAX:
            raise InvalidValueError(f"concurrency is from 1 to {CONCURRENCY_MAX}, not {self.concurrency}")
        if self.in_hand and self.in_hand < self.concurrency:
            raise InvalidValueError(f"in_hand {self.in_hand} is below concurrency {self.concurrency}")
        if self.attempts < 0 or not self.drain_seconds >= 0:
            raise InvalidValueError("attempts and drain_seconds are not below 0")


class HandlerRun:
    """One run; `run` returns when it was stopped and everything at hand is done with or given back."""

    def __init__(self, consumer: HandledConsumer, handler: Handler, options: RunOptions) -> None:
        self._consumer = consumer
        self._handler = handler
        self._options = options
        self._loop = asyncio.get_running_loop()
        self._schedule: HandlerSchedule[MessageId] = HandlerSchedule(
            options.concurrency, options.in_hand or 4 * options.concurrency
        )
        self._messages: dict[MessageId, Message[Any]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._receiving: asyncio.Task[Message[Any]] | None = None
        self._wake = asyncio.Event()
        self._stopping = False
        self._cancelling = False
        self._failure: Exception | None = None
        self._report = RunReport()
        self._threads: ThreadPoolExecutor | None = None
        if not inspect.iscoroutinefunction(handler) and not inspect.iscoroutinefunction(
            getattr(handler, "__call__", None)  # noqa: B004 - an object with an asynchronous __call__
        ):
            self._threads = ThreadPoolExecutor(options.concurrency, thread_name_prefix="magnetar-handler")

    def stop(self) -> None:
        """Receive no more, let what has begun come to its end, and give the rest back."""
        self._stopping = True
        self._wake.set()

    async def run(self) -> RunReport:
        """Receive and handle until `stop`. Raises RejectedMessageError, and what ends the consumer.

        Cancelled, it cancels its handlers and gives their messages back.
        """
        try:
            while not self._stopping:
                await self._receive()
                self._start_handlers()
                await self._something()
            await self._drain()
        finally:
            await self._end_receiving()
            await self._give_back()
            if self._threads is not None:
                self._threads.shutdown(wait=False, cancel_futures=True)
        if self._failure is not None:
            raise self._failure
        return self._report

    async def _receive(self) -> None:
        """Take what is here, and wait for more in a task if there is room; an error ends the run in good order."""
        try:
            if self._receiving is not None and self._receiving.done():
                done, self._receiving = self._receiving, None
                self._add(await done)
            if self._receiving is None and self._fill():
                self._receiving = self._loop.create_task(self._consumer.receive())
                self._receiving.add_done_callback(self._woken)
        except Exception as error:
            self._fail(error)

    def _fail(self, error: Exception) -> None:
        self._failure = self._failure or error
        self.stop()

    def _woken(self, _: object) -> None:
        self._wake.set()

    async def _something(self) -> None:
        """Wait until a message or a handler's end is there, a held one is due, or the run is to stop."""
        due = self._schedule.next_due
        timer = None if due == NEVER else self._loop.call_at(due, self._wake.set)
        try:
            await self._wake.wait()
        finally:
            if timer is not None:
                timer.cancel()
        self._wake.clear()

    def _fill(self) -> bool:
        """Take what is here already; returns whether more may be taken."""
        while self._schedule.room:
            message = self._consumer.receive_nowait()
            if message is None:
                return True
            self._add(message)
        return False

    def _add(self, message: Message[Any]) -> None:
        message_id = message.message_id()
        if message_id in self._messages:
            return  # it came again after a lost connection, and is at hand still: its acknowledgement counts
        self._messages[message_id] = message
        ordered = self._options.per_key_order and (message.has_key() or message.ordering_key_bytes())
        self._schedule.add(message_id, (message.ordering_key_bytes() or message.key_bytes()) if ordered else None)

    def _start_handlers(self) -> None:
        # A timer may fire a moment early.
        for message_id, before in self._schedule.start(self._loop.time() + 0.001):
            task = self._loop.create_task(self._handle(message_id, self._messages[message_id], before))
            self._tasks.add(task)
            task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._fail(error if isinstance(error, Exception) else RuntimeError(repr(error)))
        self._wake.set()

    async def _handle(self, message_id: MessageId, message: Message[Any], before: int) -> None:
        outcome: Outcome
        cause: BaseException | None = None
        try:
            outcome = await self._call(message)
        except (Retry, Reject) as answer:
            outcome, cause = answer, answer.__cause__ or answer.__context__
        except asyncio.CancelledError:
            if self._cancelling:
                raise
            outcome = Retry()
            _log.warning("%s: the handler of message %s cancelled itself", self._consumer.topic(), message_id)
        except Exception as error:
            _log.exception("%s: the handler failed on message %s", self._consumer.topic(), message_id)
            outcome, cause = Retry(), error
        await self._settle(message_id, message, outcome, before, cause)

    async def _call(self, message: Message[Any]) -> Outcome:
        if self._threads is not None:
            found: Any = await self._loop.run_in_executor(self._threads, self._handler, message)
        else:
            found = self._handler(message)
        if inspect.isawaitable(found):
            found = await found
        if found is None or isinstance(found, Retry | Reject):
            return found
        raise InvalidValueError(
            f"a handler returns None, Retry or Reject, and not {type(found).__name__}; publish what it makes"
        )

    async def _settle(
        self, message_id: MessageId, message: Message[Any], outcome: Outcome, before: int, cause: BaseException | None
    ) -> None:
        options = self._options
        if isinstance(outcome, Retry) and options.attempts:
            tried = (before if options.per_key_order else message.redelivery_count()) + 1
            if tried >= options.attempts:
                outcome = Reject(f"handled {tried} times without success" + (f": {cause!r}" if cause else ""))
        if outcome is None:
            await self._consumer.acknowledge(message)
            self._report.handled += 1
        elif isinstance(outcome, Reject):
            if not await self._consumer.reject(message, outcome.reason, cause):
                raise RejectedMessageError(self._consumer.topic(), message_id, outcome.reason) from cause
            self._report.rejected += 1
        else:
            self._report.retried += 1
            after = outcome.after
            if options.per_key_order:
                wait = min(_RETRY_FIRST * 2**before, _RETRY_MOST) if after is None else after
                self._schedule.hold(message_id, self._loop.time() + wait)
                return
            await self._consumer.come_again(message, after)
        self._let_go(message_id)

    def _let_go(self, message_id: MessageId) -> None:
        self._schedule.done(message_id)
        del self._messages[message_id]

    async def _drain(self) -> None:
        for message_id in self._schedule.give_up():
            await self._return(message_id)
        deadline = self._loop.time() + self._options.drain_seconds
        while self._tasks and (left := deadline - self._loop.time()) > 0:
            await asyncio.wait(set(self._tasks), timeout=left)
        if self._tasks:
            _log.warning(
                "%s: %d handlers did not end within %g s and are cancelled; their messages come again",
                self._consumer.topic(), len(self._tasks), self._options.drain_seconds,
            )  # fmt: skip

    async def _give_back(self) -> None:
        """End what still runs, and have everything at hand come again."""
        self._cancelling = True
        tasks = set(self._tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        for message_id in list(self._messages):
            await self._return(message_id)

    async def _return(self, message_id: MessageId) -> None:
        message = self._messages.pop(message_id)
        self._report.given_back += 1
        try:
            await self._consumer.come_again(message, 0.0)
        except AlreadyClosedError:
            pass  # what is closed gives everything back

    async def _end_receiving(self) -> None:
        """Cancel it; a message that it has returned all the same is given back."""
        receiving = self._receiving
        if receiving is not None:
            receiving.cancel()
            await asyncio.wait([receiving])
            if not receiving.cancelled() and receiving.exception() is None:
                self._add(receiving.result())
