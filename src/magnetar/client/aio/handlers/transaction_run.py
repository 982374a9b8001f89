"""Runs a handler within transactions: what it publishes and the messages it was given count together or not at all.

    batch_receive -> new transaction -> handler publishes in it -> acknowledged in it -> commit
                                             |
                                             +- raises: abort, and the same messages come again

A crash anywhere leaves either everything or nothing of a batch, so that who reads the outputs sees the effect of each
message once (PIP-31).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from magnetar.client.aio.client_transaction import ClientTransaction
from magnetar.client.aio.handlers.outcome import RunReport
from magnetar.client.errors import AlreadyClosedError, ClientError, RefusedError
from magnetar.client.machines.message import Message
from magnetar.model.errors import InvalidValueError, ServerError

TransactionHandler = Callable[[Sequence[Message[Any]], ClientTransaction], Awaitable[None]]

MESSAGES_MAX: Final = 10_000
_RETRY_FIRST: Final = 0.1
_RETRY_MOST: Final = 60.0
_log = logging.getLogger(__name__)


class TransactionalConsumer(Protocol):
    """What a run asks of a consumer."""

    def topic(self) -> str: ...
    async def receive(self) -> Message[Any]: ...
    def receive_nowait(self) -> Message[Any] | None: ...
    async def acknowledge(self, message: Message[Any], /, *, txn: ClientTransaction | None = None) -> None: ...
    async def come_again(self, message: Message[Any], after: float | None, /) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionRunOptions:
    """How a handler is run."""

    messages: int = 100
    """In one transaction at most."""
    attempts: int = 0
    """How many transactions may fail one after the other before the run ends with the error; 0: any number."""
    drain_seconds: float = 30.0
    """How long a transaction that has begun may go on after the run was stopped; then it is aborted."""

    def __post_init__(self) -> None:
        """Raises InvalidValueError."""
        if not 1 <= self.messages <= MESSAGES_MAX:
            raise InvalidValueError(f"messages is from 1 to {MESSAGES_MAX}, not {self.messages}")
        if self.attempts < 0 or not self.drain_seconds >= 0:
            raise InvalidValueError("attempts and drain_seconds are not below 0")


class TransactionRun:
    """One run; `run` returns when it was stopped and its last transaction has ended."""

    def __init__(
        self,
        consumer: TransactionalConsumer,
        begin: Callable[[], Awaitable[ClientTransaction]],
        handler: TransactionHandler,
        options: TransactionRunOptions,
    ) -> None:
        """``begin`` returns a new transaction."""
        self._consumer = consumer
        self._begin = begin
        self._handler = handler
        self._options = options
        self._stop = asyncio.Event()
        self._report = RunReport()
        self._begun = False
        """Whether the cluster has given a transaction."""

    def stop(self) -> None:
        """Receive no more, and let the transaction that has begun come to its end."""
        self._stop.set()

    async def run(self) -> RunReport:
        """Receive, handle and commit until `stop`. Raises the handler's error after so many attempts, and what ends the
        consumer. Cancelled, it aborts the transaction."""
        failures = 0
        while (batch := await self._receive()) is not None:
            try:
                await self._in_time(self._one(batch))
            except Exception as error:
                failures += 1
                self._report.retried += len(batch)
                if failures == self._options.attempts:
                    raise
                if isinstance(error, AlreadyClosedError) or (not self._begun and _has_none(error)):
                    raise
                _log.exception("%s: a transaction of %d messages failed", self._consumer.topic(), len(batch))
                await self._pause(failures)
            else:
                failures = 0
                self._report.handled += len(batch)
        return self._report

    async def _receive(self) -> list[Message[Any]] | None:
        """Return what is there, one message at least; None once the run is to stop."""
        if self._stop.is_set():
            return None
        first = self._consumer.receive_nowait() or await self._wait()
        if first is None:
            return None
        # What was asked for again while it was on its way comes twice; a transaction may acknowledge it twice, too.
        batch = {first.message_id(): first}
        while len(batch) < self._options.messages and (message := self._consumer.receive_nowait()) is not None:
            batch.setdefault(message.message_id(), message)
        return list(batch.values())

    async def _wait(self) -> Message[Any] | None:
        receiving = asyncio.get_running_loop().create_task(self._consumer.receive())
        stopping = asyncio.get_running_loop().create_task(self._stop.wait())
        try:
            await asyncio.wait((receiving, stopping), return_when=asyncio.FIRST_COMPLETED)
            return receiving.result() if receiving.done() else None
        finally:
            stopping.cancel()
            if not receiving.done():
                receiving.cancel()
                await asyncio.wait([receiving])
                if not receiving.cancelled() and receiving.exception() is None:
                    await self._consumer.come_again(receiving.result(), 0.0)

    async def _in_time(self, work: Coroutine[Any, Any, None]) -> None:
        """Await it, but not longer than ``drain_seconds`` after the run was stopped."""
        task = asyncio.get_running_loop().create_task(work)
        stopping = asyncio.get_running_loop().create_task(self._stop.wait())
        try:
            await asyncio.wait((task, stopping), return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                await asyncio.wait([task], timeout=self._options.drain_seconds)
            if not task.done():
                task.cancel()
                await asyncio.wait([task])
                raise ClientError(
                    f"{self._consumer.topic()}: the handler did not end within {self._options.drain_seconds:g} s; its "
                    "transaction was aborted, and its messages come again"
                )
            task.result()
        except asyncio.CancelledError:
            task.cancel()
            await asyncio.wait([task])
            raise
        finally:
            stopping.cancel()

    async def _one(self, batch: Sequence[Message[Any]]) -> None:
        try:
            async with await self._begin() as txn:
                self._begun = True
                await self._handler(batch, txn)
                await asyncio.gather(*(self._consumer.acknowledge(message, txn=txn) for message in batch))
        except BaseException:
            for message in batch:
                await self._consumer.come_again(message, 0.0)
            raise

    async def _pause(self, failures: int) -> None:
        try:
            async with asyncio.timeout(min(_RETRY_FIRST * 2 ** min(failures - 1, 20), _RETRY_MOST)):
                await self._stop.wait()
        except TimeoutError:
            pass


def _has_none(error: Exception) -> bool:
    """Whether an error says that the cluster has no transactions."""
    return isinstance(error, RefusedError) and error.code is ServerError.TransactionCoordinatorNotFound
