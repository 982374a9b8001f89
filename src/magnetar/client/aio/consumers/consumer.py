"""What applications consume with: one consumer for a topic and its partitions, for several topics, or for a pattern."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from typing_extensions import override

from magnetar.client.aio.client_environment import Environment
from magnetar.client.aio.consumers.letter_producer import OpenOutlet
from magnetar.client.aio.consumers.prefetch import Prefetch
from magnetar.client.aio.consumers.seek_position import seek_command, sought
from magnetar.client.aio.consumers.settlement import Settlement
from magnetar.client.aio.parameters import checked
from magnetar.client.aio.statistics.handle_stats import ConsumptionStatistics, consumer_stats
from magnetar.client.aio.topics.consumer_options import ConsumerOptions
from magnetar.client.aio.topics.demanded_consumer import DemandedConsumer
from magnetar.client.aio.topics.topic_consumer import TopicConsumer
from magnetar.client.errors import ClientTimeoutError, ForkedClientError, SealedMessageError
from magnetar.client.machines.batch_receive_policy import ConsumerBatchReceivePolicy
from magnetar.client.machines.message import Message, T
from magnetar.client.machines.message_id import AFTER_BATCH, MessageId, order_of
from magnetar.model.errors import InvalidValueError
from magnetar.protocol import commands as c

if TYPE_CHECKING:
    from magnetar.client.aio.consumers.table_receiver import TableReceiver


class Consumer(Settlement[T]):
    """A consumer; make it with `Client.subscribe`, and use it as an asynchronous context manager.

    Several tasks may receive at once: each message is returned to one of them, in the order it came.
    """

    def __init__(
        self, topic: str, environment: Environment, options: ConsumerOptions, open_outlet: OpenOutlet | None = None
    ) -> None:
        """``open_outlet`` opens producers for letters, where the consumer has some."""
        super().__init__(topic, environment, options, open_outlet)
        self._since = self._loop.time()
        self.at_close: list[Callable[[], object]] = []
        """What the client wants to be called when it is closed."""
        self._tables: TableReceiver | None = None
        self._moving: asyncio.Task[None] | None = None
        self._closing: asyncio.Task[None] | None = None

    async def add(self, topics: Iterable[str], start: MessageId | None = None) -> None:
        """Subscribe to internal topics. Raises why one cannot be, and then none of these stays.

        ``start``: where a reader begins on these, if not where it began on the others.
        """
        options = self._options if start is None else replace(self._options, start=start)
        names, new = list(topics), list[TopicConsumer]()
        at_once = self._environment.bounds.opening or max(len(names), 1)
        try:
            for at in range(0, len(names), at_once):
                part = [self._made(one, options) for one in names[at : at + at_once]]
                new += part
                await asyncio.gather(*(one.opened() for one in part))
        except BaseException:
            await asyncio.gather(*(one.close() for one in new), return_exceptions=True)
            raise
        if self._closed:
            await asyncio.gather(*(one.close() for one in new))
            return
        self._members |= {one.topic: one for one in new}
        self._only = new[0] if len(self._members) == len(new) == 1 else None
        for one in new:
            if one.waiting or one.ended or one.failure is not None:
                self._has_messages(one)

    def _made(self, topic: str, options: ConsumerOptions) -> TopicConsumer:
        given = topic, self._environment, options, self._has_messages, self._bury
        one: TopicConsumer
        if self._prefetch is None:
            one = TopicConsumer(*given)
        else:
            one = demanded = DemandedConsumer(*given)
            demanded.on_change = self._prefetch.note
        one.consumption.intake.owner = self
        return one

    async def drop(self, topics: Iterable[str]) -> None:
        """Leave internal topics that have vanished."""
        gone = [self._members.pop(one) for one in topics if one in self._members]
        self._only = None  # messages of the gone ones may be with the application
        await asyncio.gather(*(one.close() for one in gone))
        if self._prefetch is not None:
            for one in gone:
                self._prefetch.left(one)

    @property
    def options(self) -> ConsumerOptions:
        """What it subscribes with."""
        return self._options

    @property
    def topics(self) -> list[str]:
        """The internal topics."""
        return list(self._members)

    async def __aenter__(self) -> Consumer[T]:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def __aiter__(self) -> AsyncIterator[Message[T]]:
        while True:
            yield await self.receive()

    @override
    def topic(self) -> str:
        """Return what was subscribed to: a topic, topics with commas between, or a pattern."""
        return self._topic

    def subscription_name(self) -> str:
        """Return the subscription's name."""
        return self._options.subscription

    def consumer_name(self) -> str:
        """Return the name that was given, or the one that was made for all its topics and connections."""
        return self._options.name or ""

    @property
    def waiting_bytes(self) -> int:
        """Bytes of the messages that have come and were not taken, about."""
        return sum(one.consumption.queue.size for one in self._members.values())

    def is_connected(self) -> bool:
        """Whether all its topics are subscribed at the moment."""
        return not self._closed and all(one.connected for one in self._members.values())

    def has_reached_end_of_topic(self) -> bool:
        """Whether all its topics were terminated and everything was read."""
        return bool(self._members) and all(one.ended and not one.waiting for one in self._members.values())

    @override
    async def receive(self, timeout_millis: int | None = None) -> Message[T]:
        """Return the next message; cancelled, it takes none along.

        Raises ClientTimeoutError if none comes in ``timeout_millis``, AlreadyClosedError, and why a topic can be read
        no more.
        """
        at_hand = self._at_hand
        if at_hand:
            message = at_hand.pop()
            if not at_hand:
                self._used_up(message)
            return message
        if timeout_millis is None:
            return await self._receive()
        checked("receive", timeout_millis=timeout_millis)
        try:
            async with asyncio.timeout(timeout_millis / 1000):
                return await self._receive()
        except TimeoutError:
            raise ClientTimeoutError(f"{self._topic}: no message came in {timeout_millis} ms") from None

    async def _receive(self) -> Message[T]:
        self._environment.home.check()
        if self._prefetch is not None:
            with self._prefetch.receiving():
                return await self._next(self._prefetch)
        while True:
            message = self.receive_nowait()
            if message is not None:
                return message
            await self._something()

    async def _next(self, prefetch: Prefetch) -> Message[T]:
        while True:
            message = self.receive_nowait()
            if message is not None:
                return message
            prefetch.permit()
            await self._something()

    async def batch_receive(
        self, max_messages: int | None = None, timeout_millis: float | None = None
    ) -> list[Message[T]]:
        """Return messages as soon as the batch_receive_policy has enough, fewer if its time is over (rule 6.1.4).

        ``max_messages`` and ``timeout_millis`` stand in for those of the policy. Cancelled, it takes none along.
        """
        checked("batch_receive", max_messages=max_messages, timeout_millis=timeout_millis)
        self._environment.home.check()
        if self._without_queue:
            raise InvalidValueError("batch_receive needs a receiver queue: a receiver_queue_size above 0")
        policy = self._options.delivery.batch.instead(max_messages, timeout_millis)
        deadline = None if policy.timeout is None else self._loop.time() + policy.timeout
        while not self._closed and self._failure is None and not self._enough(policy):
            left = None if deadline is None else deadline - self._loop.time()
            if left is not None and left <= 0:
                break
            try:
                async with asyncio.timeout(left):
                    await self._something(gathering=True)
            except TimeoutError:
                break
        return self._take(policy)

    def _enough(self, policy: ConsumerBatchReceivePolicy) -> bool:
        ready = self._ready
        size = sum(one.consumption.queue.size for one in ready) if policy.max_num_bytes > 0 else 0
        # A queue that is full gets no more before something is taken from it.
        return policy.enough(sum(one.waiting for one in ready), size) or any(one.consumption.full for one in ready)

    async def receive_table(self, max_rows: int = 20_000, max_wait: float = 1.0, *, metadata: str = "") -> Any:
        """Return a pa.Table of up to ``max_rows`` messages, fewer (or none) if ``max_wait`` seconds are over.

        The columns are ``value``, or with a schema its fields, and those that ``metadata`` names as Spark's source has
        them (``all``, or names with commas; by default __key, __publishTime, __eventTime and __messageProperties), and
        the ids that `acknowledge_table` needs. What of a batch is too much stays for the next call. A Shared
        subscription gives some 50,000 messages before one is acknowledged (maxUnackedMessagesPerConsumer). Needs
        magnetar[columns]. Cancelled, or if a value cannot be read (InvalidValueError), it takes no message along.
        Raises as `receive_nowait`, if there is no message before.
        """
        checked("receive_table", max_rows=max_rows, max_wait=max_wait, metadata=metadata)
        if self._without_queue:
            raise InvalidValueError("receive_table needs a receiver queue: a receiver_queue_size above 0")
        return await self._table_receiver().receive(max_rows, max_wait, metadata)

    async def acknowledge_table(self, table: Any, *, cumulative: bool = False) -> None:
        """Take all rows of a table as done with, which `receive_table` has given, or some of whose rows it is.

        With ``cumulative`` all messages before the last row of each topic, too; not on Shared and Key_Shared. Raises
        AlreadyClosedError; InvalidValueError, acknowledging nothing, if ids are missing or were not given as rows.
        """
        checked("acknowledge_table", cumulative=cumulative)
        if cumulative:
            self._check_cumulative()
        self._open()
        self._table_receiver().acknowledge(table, cumulative=cumulative)

    def _table_receiver(self) -> TableReceiver:
        if self._tables is None:
            from magnetar.client.aio.consumers.table_receiver import TableReceiver

            self._tables = TableReceiver(self, self._options.schema)
        return self._tables

    def _take(self, policy: ConsumerBatchReceivePolicy) -> list[Message[T]]:
        found: list[Message[T]] = []
        size = 0
        while at_hand := self._at_hand or self._refill(quiet=bool(found)):
            message = at_hand[-1]
            size += len(message.data())
            if not policy.fits(len(found) + 1, size):
                break
            found.append(at_hand.pop())
            if not at_hand:
                self._used_up(message)
        return found

    async def pause_message_listener(self) -> None:
        """Ask the brokers for no more messages; those that are here may be received."""
        for one in self._open():
            one.pause(True)

    async def resume_message_listener(self) -> None:
        """Go on after `pause_message_listener`."""
        for one in self._open():
            one.pause(False)

    async def seek(self, messageid: MessageId | int) -> None:
        """Move the subscription after a message, or to a publish time in milliseconds.

        With ``start_message_id_inclusive`` the message itself comes next (rule 5.9.1). Several topics have the ends in
        common (earliest, latest) and times, but no other message (rule 5.9.8). Cancelled, it moves all the same, and
        the next seek waits for that. While the client connects again it waits for that. Raises ClientTimeoutError after
        operation_timeout_seconds.
        """
        checked("seek", messageid=messageid)
        self._open()
        while self._moving is not None:
            await asyncio.wait([self._moving])
        moving = self._moving = self._loop.create_task(self._seek(messageid))
        moving.add_done_callback(self._moved)
        await sought(moving, self._topic)

    def _moved(self, done: asyncio.Task[None]) -> None:
        self._moving = None
        if not done.cancelled():
            done.exception()  # those who wait for it have it

    async def _seek(self, messageid: MessageId | int) -> None:
        command, start = seek_command(messageid, inclusive=self._options.start_inclusive)
        await asyncio.gather(*(one.seek(command, start) for one in self.moved_by(messageid)))

    def stats(self) -> ConsumptionStatistics:
        """Return what was counted since the consumer was opened, on the topics that it has now."""
        members = list(self._members.values())
        counters = [one.consumption.counters for one in members]
        return consumer_stats(counters, sum(one.waiting for one in members), self._loop.time() - self._since)

    def has_waiting(self) -> bool:
        """Whether a message is here already."""
        return any(one.waiting for one in self._ready)

    def deadline(self) -> float:
        """Return when an operation that begins now has to be over, of the loop's time."""
        return self._loop.time() + self._environment.timeout

    @property
    def asks(self) -> bool:
        """Whether messages come by themselves: there is a queue, and it is not paused."""
        return not self._without_queue and not any(one.consumption.paused for one in self._members.values())

    def place_in(self, topic: str) -> tuple[int, int, int]:
        """Return how far an internal topic was read: after a message that was taken, or an entry that has none."""
        queue = self._members[topic].consumption.queue
        taken = (-1, -1, -1) if queue.last_taken is None else order_of(queue.last_taken)
        return taken if queue.passed is None or queue.waiting else max(taken, (*queue.passed, AFTER_BATCH))

    def refuse_sealed(self) -> None:
        """Fail at an encrypted message that no key opens, also one that came already, in place of passing it over."""
        self._options = replace(self._options, sealed_stay=False)
        for one in self._members.values():
            one.consumption.intake.sealed_stay = False
            if (left := one.consumption.intake.sealed_left) is not None:
                one.fail(SealedMessageError(*left, one.topic))

    async def end_of(self, topic: str, deadline: float) -> c.CommandGetLastMessageIdResponse:
        """Return what the broker says about the end of an internal topic."""
        return await self._members[topic].requests.last_message_id(deadline)

    async def get_last_message_id(self) -> MessageId:
        """Return the id of the last message; of a partitioned topic use `get_last_message_ids`.

        Waits while the client connects again. Raises ClientTimeoutError after operation_timeout_seconds.
        """
        ids = await self.get_last_message_ids()
        if len(ids) != 1:
            raise InvalidValueError(f"{self._topic} has {len(ids)} internal topics; ask get_last_message_ids")
        return ids[0]

    async def get_last_message_ids(self) -> list[MessageId]:
        """Return the id of the last message of each internal topic."""
        found: list[MessageId] = []
        members, deadline = self._open(), self.deadline()
        for one in members:
            last = (await one.requests.last_message_id(deadline)).last_message_id
            found.append(MessageId(one.partition, last.ledger, last.entry, last.batch_index, topic=one.topic))
        return found

    async def unsubscribe(self, *, force: bool = False) -> None:
        """Delete the subscription on all topics, and close. Raises why one is left; called again, it goes on there."""
        checked("unsubscribe", force=force)
        ends = (one.unsubscribe(force=force) for one in self._open())
        for failure in await asyncio.gather(*ends, return_exceptions=True):
            if failure is not None:
                raise failure
        await self.close()

    def forked(self, error: ForkedClientError) -> None:
        """Refuse everything in a process that was forked off, where closing does nothing."""
        self._closed, self._refusal, self._only, self._at_hand = True, error, None, []
        self._moving = self._closing = None  # tasks of the other process's loop
        self._ready.clear()

    async def close(self) -> None:
        """Close; what was not acknowledged goes to others. Closing twice is no error (rule 6.1.7).

        A broker that does not answer has operation_timeout_seconds. Cancelled, it closes all the same.
        """
        if not self._closed:
            self._end()
            self._closing = self._loop.create_task(self._close())
        if self._closing is not None:
            await asyncio.shield(self._closing)

    async def _close(self) -> None:
        deadline = self._loop.time() + self._environment.timeout
        await self._close_letters()
        await asyncio.gather(*(one.close(deadline) for one in self._members.values()))

    def _end(self) -> None:
        self._closed = True
        self._only = None
        self._at_hand = []
        if self._prefetch is not None:
            self._prefetch.close()
        if self._moving is not None:
            self._moving.cancel()
        for call in self.at_close:
            call()
        self.at_close.clear()
        while self._waiters:
            self._wake()
        if self.when_messages is not None:
            call, self.when_messages = self.when_messages, None
            call()
