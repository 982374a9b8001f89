"""What threads consume with: a consumer over its asyncio twin."""

from __future__ import annotations

import asyncio
import logging
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Any, Final, Generic, Protocol

from magnetar.client.aio.client_transaction import ClientTransaction as AioTransaction
from magnetar.client.aio.consumers.consumer import Consumer as AioConsumer
from magnetar.client.aio.handlers.handler_host import TransactionSource
from magnetar.client.aio.handlers.handler_run import Handler
from magnetar.client.aio.handlers.outcome import RunReport
from magnetar.client.aio.handlers.termination import sigterm_calls
from magnetar.client.aio.parameters import checked
from magnetar.client.aio.statistics.handle_stats import ConsumptionStatistics
from magnetar.client.blocking.hand_over import HandOver
from magnetar.client.blocking.listener_pool import Listener, ListenerPool, ListenerTurns, refuse_receive
from magnetar.client.blocking.loop_thread import LoopThread
from magnetar.client.blocking.transaction import ClientTransaction, twin_of
from magnetar.client.errors import AlreadyClosedError, ClientError
from magnetar.client.machines.message import Message, T
from magnetar.client.machines.message_id import MessageId

_LOG: Final = logging.getLogger(__name__)


class BlockingTransactionSource(Protocol):
    """What gives transactions: a blocking client."""

    @property
    def twin(self) -> TransactionSource: ...


class Consumer(Generic[T]):
    """A consumer; make it with `Client.subscribe`, and use it as a context manager.

    Several threads may receive at once: each message is returned to one of them.
    """

    def __init__(
        self,
        thread: LoopThread,
        twin: AioConsumer[T],
        listener: Listener | None = None,
        pool: ListenerPool | None = None,
    ) -> None:
        """``listener`` is called with every message, on a thread of ``pool``."""
        self.twin = twin
        """Its asyncio twin, which lives on the loop thread."""
        self._thread = thread
        self._hand_over = HandOver(thread, twin)
        self._take: Callable[[int | None], Message[T]] = self._hand_over.take
        self._acks: list[Message[T] | MessageId] = []
        """Acknowledged, and not known to the loop yet."""
        self._acks_posted = False
        self._several = len(twin.topics) != 1 or twin.awaits_receipts
        self._one_topic = "" if self._several else twin.topics[0]
        self._closed = False
        twin.facade = weakref.proxy(self)  # the loop keeps the twin, which must not keep the thread
        thread.closes_with(self, twin)
        self._listening: ListenerTurns | None = None
        if listener is not None and pool is not None:
            self._take = refuse_receive
            self._listening = ListenerTurns(pool, self._hand_over, self, listener)

    def __enter__(self) -> Consumer[T]:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __iter__(self) -> Iterator[Message[T]]:
        while True:
            yield self.receive()

    @property
    def topics(self) -> list[str]:
        """The internal topics."""
        return self.twin.topics

    def topic(self) -> str:
        """Return what was subscribed to: a topic, topics with commas between, or a pattern."""
        return self.twin.topic()

    def subscription_name(self) -> str:
        """Return the subscription's name."""
        return self.twin.subscription_name()

    def consumer_name(self) -> str:
        """Return the name that was given, or the one that was made for all its topics and connections."""
        return self.twin.consumer_name()

    def is_connected(self) -> bool:
        """Whether all its topics are subscribed at the moment."""
        self._thread.check_process()
        return self.twin.is_connected()

    def has_reached_end_of_topic(self) -> bool:
        """Whether all its topics were terminated and everything was read."""
        self._thread.check_process()
        return self.twin.has_reached_end_of_topic()

    def receive(self, timeout_millis: int | None = None) -> Message[T]:
        """Return the next message, waiting for it as long as it takes, or ``timeout_millis``.

        Raises ClientTimeoutError, AlreadyClosedError, and why a topic can be read no more. Interrupted, it takes none.
        """
        return self._take(timeout_millis)

    def batch_receive(self, max_messages: int | None = None, timeout_millis: float | None = None) -> list[Message[T]]:
        """Return messages as soon as the batch_receive_policy has enough, fewer if its time is over (rule 6.1.4).

        ``max_messages`` and ``timeout_millis`` stand in for those of the policy.
        """
        return self._thread.run(self._batch(max_messages, timeout_millis), self._untaken)

    async def _batch(self, *given: Any) -> list[Message[T]]:
        if self._listening is not None:
            refuse_receive()
        return await self.twin.batch_receive(*given)

    def _untaken(self, messages: list[Message[T]]) -> None:
        """Have messages come again that an interrupted call has taken and not returned, on the loop."""
        with suppress(AlreadyClosedError):
            for message in messages:
                self.twin.redeliver(message)

    def _all_untaken(self) -> None:
        """Do the same for a table, and for all else that is not acknowledged."""
        with suppress(AlreadyClosedError):
            self.twin.redeliver_all()

    def receive_table(self, max_rows: int = 20_000, max_wait: float = 1.0, *, metadata: str = "") -> Any:
        """Return a pa.Table of up to ``max_rows`` messages, fewer (or none) if ``max_wait`` seconds are over.

        As the asyncio consumer's, which says what its columns are. Interrupted, it takes no message along.
        """
        return self._thread.run(self._table(max_rows, max_wait, metadata), lambda _: self._all_untaken())

    async def _table(self, max_rows: int, max_wait: float, metadata: str) -> Any:
        if self._listening is not None:
            refuse_receive()
        return await self.twin.receive_table(max_rows, max_wait, metadata=metadata)

    def acknowledge_table(self, table: Any, *, cumulative: bool = False) -> None:
        """Take all rows of a table as done with, or with ``cumulative`` all messages before the last row of each topic,
        too. Raises AlreadyClosedError, InvalidValueError."""
        self._thread.run(self.twin.acknowledge_table(table, cumulative=cumulative))

    def pause_message_listener(self) -> None:
        """Call the listener no more after the message it is at, and ask the brokers for no more messages.

        Without a listener, those that are here may be received.
        """
        self._thread.may_wait()
        if self._listening is not None:
            self._listening.paused = True
        self._thread.run(self.twin.pause_message_listener())

    def resume_message_listener(self) -> None:
        """Go on after `pause_message_listener`, with what has come meanwhile first."""
        self._thread.run(self.twin.resume_message_listener())
        if self._listening is not None:
            self._listening.paused = False
            self._listening.schedule()

    def acknowledge(
        self,
        message: Message[T] | MessageId | Sequence[Message[T] | MessageId],
        *,
        txn: ClientTransaction | None = None,
    ) -> None:
        """Take a message, or each of a list, as done with. The broker hears of it at the end of the loop's next turn.

        With ack_receipt_enabled this waits until it is stored; with ``txn`` it counts when the transaction is
        committed. Raises AlreadyClosedError, ArgumentError about an id of another topic, and what the broker answers.
        """
        if (
            txn is not None
            or self._several
            or not isinstance(message, Message)
            or message.envelope.topic != self._one_topic
        ):
            self._acknowledge_with_care(message, txn)
            return
        if self._closed or self._thread.refusal is not None:
            self._check()
        self._acks.append(message)
        if not self._acks_posted:
            self._acks_posted = True
            try:
                self._thread.post(self._cross_acks)
            except BaseException:
                self._acks_posted = False  # interrupted: the next one wakes the loop up for both
                raise

    def _acknowledge_with_care(
        self, message: Message[T] | MessageId | Sequence[Message[T] | MessageId], txn: ClientTransaction | None
    ) -> None:
        self._thread.run(self.twin.acknowledge(message, txn=twin_of(txn)))

    def _cross_acks(self) -> None:
        """Hand the loop what was acknowledged, on the loop."""
        self._acks_posted = False
        acks = self._acks
        count = len(acks)
        crossing = acks[:count]
        del acks[:count]
        try:
            self.twin.acknowledge_many(crossing)
        except ClientError as error:
            _LOG.warning("%d messages of %s stay unacknowledged: %s", count, self.twin.topic(), error)

    def _check(self) -> None:
        self._thread.check()
        if self._closed:
            raise AlreadyClosedError(f"{self.twin.topic()}: the consumer is closed")

    def acknowledge_cumulative(self, message: Message[T] | MessageId, *, txn: ClientTransaction | None = None) -> None:
        """Take a message and all before it of its topic as done with; not on Shared and Key_Shared."""
        self._thread.run(self.twin.acknowledge_cumulative(message, txn=twin_of(txn)))

    def negative_acknowledge(
        self,
        message: Message[T] | MessageId,
        delay: float | timedelta | None = None,
        *,
        error: BaseException | str | None = None,
    ) -> None:
        """Have a message come again after ``delay`` (a timedelta, or milliseconds), by default after that of
        negative_ack_redelivery_backoff or negative_ack_redelivery_delay_ms.

        ``error`` is what a dead letter says about it, if this was its last delivery.
        """
        self._thread.run(self.twin.negative_acknowledge(message, delay, error=error))

    def reconsume_later(
        self,
        message: Message[T],
        delay: float | timedelta = 0,
        custom_properties: Mapping[str, str] | None = None,
        *,
        error: BaseException | str | None = None,
    ) -> None:
        """Have a copy of a message come after ``delay`` (a timedelta, or milliseconds), and be done with it.

        After as many retries as the policy has, it is a dead letter. Raises why the copy was not stored, and then the
        message is acknowledged negatively; InvalidValueError without retry_enable.
        """
        self._thread.run(self.twin.reconsume_later(message, delay, custom_properties, error=error))

    def reconsume_later_cumulative(
        self,
        message: Message[T],
        delay: float | timedelta = 0,
        custom_properties: Mapping[str, str] | None = None,
        *,
        error: BaseException | str | None = None,
    ) -> None:
        """Do the same, and be done with all messages before it, too; not on Shared and Key_Shared."""
        self._thread.run(self.twin.reconsume_later_cumulative(message, delay, custom_properties, error=error))

    def reject(self, message: Message[T], reason: str = "", cause: BaseException | None = None) -> bool:
        """Copy a message to the dead letter topic now, with ``reason`` and ``cause``, and be done with it.

        Returns whether there is such a topic; without a dead_letter_policy nothing is done. Raises why the copy was not
        stored, and then the message is acknowledged negatively.
        """
        return self._thread.run(self.twin.reject(message, reason, cause))

    def redeliver_unacknowledged_messages(self) -> None:
        """Have everything come again that is not acknowledged."""

        async def redeliver() -> None:
            await self.twin.redeliver_unacknowledged_messages()

        self._thread.run(redeliver())

    def settle(self, message: Message[T], error: BaseException | None) -> bool:
        """Do what an answer about a message asks for: acknowledge it without an error, `Retry`, `Reject`.

        ``with message:`` calls it. Raises RejectedMessageError if there is no dead letter topic.
        """
        return self._thread.run(self.twin.settle(message, error))

    def run(
        self,
        handler: Handler,
        *,
        concurrency: int = 1,
        per_key_order: bool = True,
        in_hand: int = 0,
        attempts: int = 0,
        drain_seconds: float = 30.0,
        stop_on_sigterm: bool = True,
    ) -> RunReport:
        """Run ``handler(message)`` over all messages until `stop` or SIGTERM; one is acknowledged once it returns.

        Each of ``concurrency`` handlers has a thread of its own; docs/client-handlers.md says the rest. Ctrl-C ends the
        run as a cancellation does. Raises as the asyncio client's.
        """
        checked("run", stop_on_sigterm=stop_on_sigterm)
        run = self.twin.run(
            handler, concurrency=concurrency, per_key_order=per_key_order, in_hand=in_hand, attempts=attempts,
            drain_seconds=drain_seconds, stop_on_sigterm=False,
        )  # fmt: skip
        if not stop_on_sigterm:
            return self._thread.run(run)
        with sigterm_calls(self.stop):
            return self._thread.run(run)

    def run_in_transactions(
        self,
        client: BlockingTransactionSource,
        handler: Callable[[Sequence[Message[T]], ClientTransaction], None],
        *,
        messages: int = 100,
        attempts: int = 0,
        drain_seconds: float = 30.0,
        transaction_seconds: float = 60.0,
        stop_on_sigterm: bool = True,
    ) -> RunReport:
        """Run ``handler(batch, txn)`` over all messages until `stop` or SIGTERM, each batch in a transaction.

        The handler has a thread of its own. Raises as the asyncio client's.
        """
        checked("Consumer.run_in_transactions", client=client, handler=handler, stop_on_sigterm=stop_on_sigterm)
        thread = self._thread

        async def in_thread(batch: Sequence[Message[T]], txn: AioTransaction) -> None:
            await asyncio.to_thread(handler, batch, ClientTransaction(thread, txn))

        run = self.twin.run_in_transactions(
            client.twin, in_thread, messages=messages, attempts=attempts, drain_seconds=drain_seconds,
            transaction_seconds=transaction_seconds, stop_on_sigterm=False,
        )  # fmt: skip
        if not stop_on_sigterm:
            return thread.run(run)
        with sigterm_calls(self.stop):
            return thread.run(run)

    def stop(self) -> None:
        """Have the handler's run end: it receives no more, finishes what has begun and gives the rest back.

        Without a run nothing happens.
        """
        self._thread.post(self.twin.stop)

    def seek(self, messageid: MessageId | int) -> None:
        """Move the subscription after a message, or to a publish time in milliseconds.

        With ``start_message_id_inclusive`` the message itself comes next (rule 5.9.1).

        Several topics have the ends in common (earliest, latest) and times, but no other message (rule 5.9.8).
        """
        self._thread.run(self.twin.seek(messageid))
        self._hand_over.moved()

    def get_last_message_id(self) -> MessageId:
        """Return the id of the last message; of a partitioned topic use `get_last_message_ids`."""
        return self._thread.run(self.twin.get_last_message_id())

    def get_last_message_ids(self) -> list[MessageId]:
        """Return the id of the last message of each internal topic."""
        return self._thread.run(self.twin.get_last_message_ids())

    def stats(self) -> ConsumptionStatistics:
        """Return what was counted since the consumer was opened, on the topics that it has now."""
        self._thread.check_process()
        return self.twin.stats()

    def unsubscribe(self, *, force: bool = False) -> None:
        """Delete the subscription on all topics, and close."""
        self._thread.run(self.twin.unsubscribe(force=force))
        self._closed = True
        self._give_nothing_more()

    def close(self) -> None:
        """Close; what was not acknowledged goes to others. Closing twice is no error (rule 6.1.7)."""
        self._thread.may_wait()
        self._closed = True
        if self._acks:
            self._thread.post(self._cross_acks)
        try:
            self._thread.end(self.twin.close)
        finally:
            self._give_nothing_more()

    def _give_nothing_more(self) -> None:
        self._hand_over.forget()
        if self._listening is not None:
            self._listening.end()
