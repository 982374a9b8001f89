"""What a consumer has for handlers: `run`, `run_in_transactions` and `stop`."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from typing import Any, Generic, Protocol

from magnetar.client.aio.client_transaction import ClientTransaction
from magnetar.client.aio.handlers.handler_run import HandlerRun, RunOptions
from magnetar.client.aio.handlers.outcome import Outcome, Reject, RejectedMessageError, Retry, RunReport
from magnetar.client.aio.handlers.termination import stopped_by_sigterm
from magnetar.client.aio.handlers.transaction_run import TransactionRun, TransactionRunOptions
from magnetar.client.aio.parameters import checked
from magnetar.client.errors import ClientError
from magnetar.client.machines.message import Message, T


class TransactionSource(Protocol):
    """What gives transactions: a client."""

    def new_transaction(self, timeout_seconds: float = 60.0) -> Awaitable[ClientTransaction]: ...


class HandlerHost(ABC, Generic[T]):
    """A consumer over which handlers run."""

    facade: Any = None
    """The blocking consumer over this one, if there is one."""
    _runs: HandlerRun | TransactionRun | None = None

    @abstractmethod
    def topic(self) -> str: ...
    @abstractmethod
    async def receive(self, timeout_millis: int | None = None) -> Message[T]: ...
    @abstractmethod
    def receive_nowait(self) -> Message[T] | None: ...
    @abstractmethod
    async def acknowledge(self, message: Message[T], *, txn: ClientTransaction | None = None) -> None: ...
    @abstractmethod
    async def negative_acknowledge(
        self, message: Message[T], delay: float | timedelta | None = None, *, error: BaseException | str | None = None
    ) -> None: ...
    @abstractmethod
    def redeliver(self, message: Message[T], after: float = 0.0) -> None: ...

    async def come_again(self, message: Message[T], after: float | None, error: BaseException | None = None) -> None:
        """Have a message come again after so many seconds; None: as after a negative acknowledgement.

        ``error`` is what its dead letter says, if it comes no more.
        """
        if after is None:
            await self.negative_acknowledge(message, error=error)
        else:
            self.redeliver(message, after)

    async def reject(self, message: Message[T], reason: str, cause: BaseException | None = None) -> bool:
        """Copy a message to the dead letter topic, and acknowledge it then; returns whether there is such a topic."""
        return False

    async def settle(self, message: Message[T], error: BaseException | None) -> bool:
        """Do what an answer about a message asks for: acknowledge it without an error, `Retry`, `Reject`.

        After any other error it comes again as after a negative acknowledgement. Returns whether it was an answer.

        Raises RejectedMessageError if it was rejected and there is no dead letter topic; it comes again then.
        """
        if error is not None:
            checked("settle", message=message, error=error)
        if error is None:
            await self.acknowledge(message)
        elif isinstance(error, Retry):
            await self.come_again(message, error.after)
        elif isinstance(error, Reject):
            if not await self.reject(message, error.reason, error.__cause__ or error.__context__):
                await self.come_again(message, None)
                raise RejectedMessageError(self.topic(), message.message_id(), error.reason)
        else:
            await self.come_again(message, None, error)
        return isinstance(error, Retry | Reject)

    async def run(
        self,
        handler: Callable[[Message[T]], Awaitable[Outcome] | Outcome],
        *,
        concurrency: int = 1,
        per_key_order: bool = True,
        in_hand: int = 0,
        attempts: int = 0,
        drain_seconds: float = 30.0,
        stop_on_sigterm: bool = True,
    ) -> RunReport:
        """Run ``handler(message)`` over all messages until `stop` or SIGTERM; one is acknowledged once it returns.

        Up to ``concurrency`` messages are handled at a time, those of one key (the ordering key, if there is one) one
        after the other with ``per_key_order``; ``in_hand`` (0: four times as many) bounds what is handled or waits for
        it. A handler that is no coroutine function runs in a thread of its own.

        It may return or raise `Retry` (the message comes again, with ``per_key_order`` here and before the next ones of
        its key, otherwise from the broker) and `Reject` (it goes to the dead letter topic). Any other error is logged
        and counts as Retry, with pauses from 1 to 60 s; after so many ``attempts`` as Reject.

        To end, what has begun has ``drain_seconds``; all else that is at hand comes again, to this consumer or another.
        Cancelled, it cancels the handlers at once. Raises InvalidValueError, RejectedMessageError if there is no dead
        letter topic, and what ends the consumer.
        """
        checked(
            "run", handler=handler, concurrency=concurrency, per_key_order=per_key_order, in_hand=in_hand,
            attempts=attempts, drain_seconds=drain_seconds, stop_on_sigterm=stop_on_sigterm,
        )  # fmt: skip
        options = RunOptions(
            concurrency=concurrency, per_key_order=per_key_order, in_hand=in_hand, attempts=attempts,
            drain_seconds=drain_seconds,
        )  # fmt: skip
        return await self._run(HandlerRun(self, handler, options), stop_on_sigterm=stop_on_sigterm)

    async def run_in_transactions(
        self,
        client: TransactionSource,
        handler: Callable[[Sequence[Message[T]], ClientTransaction], Awaitable[None]],
        *,
        messages: int = 100,
        attempts: int = 0,
        drain_seconds: float = 30.0,
        transaction_seconds: float = 60.0,
        stop_on_sigterm: bool = True,
    ) -> RunReport:
        """Run ``handler(batch, txn)`` over all messages until `stop` or SIGTERM, each batch in a transaction.

        What the handler sends with ``txn=txn`` counts once the batch is acknowledged, and only then: readers see the
        effect of each message once, whatever crashes. An error aborts the transaction, and the batch comes again, after
        pauses from 0.1 to 60 s; ``attempts`` failures one after the other end the run with the error (0: never).

        A batch has what is here, ``messages`` at most. Raises InvalidValueError, RefusedError if the cluster has no
        transactions, and what ends the consumer.
        """
        checked(
            "run_in_transactions", client=client, handler=handler, messages=messages, attempts=attempts,
            drain_seconds=drain_seconds, transaction_seconds=transaction_seconds, stop_on_sigterm=stop_on_sigterm,
        )  # fmt: skip
        options = TransactionRunOptions(messages=messages, attempts=attempts, drain_seconds=drain_seconds)
        run = TransactionRun(self, lambda: client.new_transaction(transaction_seconds), handler, options)
        return await self._run(run, stop_on_sigterm=stop_on_sigterm)

    async def _run(self, run: HandlerRun | TransactionRun, *, stop_on_sigterm: bool) -> RunReport:
        if self._runs is not None:
            raise ClientError(f"{self.topic()}: a handler runs over this consumer already; stop it, or subscribe again")
        self._runs = run
        try:
            if not stop_on_sigterm:
                return await run.run()
            with stopped_by_sigterm(asyncio.get_running_loop(), run.stop):
                return await run.run()
        finally:
            self._runs = None

    def stop(self) -> None:
        """Have the handler's run end: it receives no more, finishes what has begun and gives the rest back.

        Without a run nothing happens.
        """
        if self._runs is not None:
            self._runs.stop()
