"""What applications consume with: one consumer for a topic and its partitions, for several topics, or for a pattern."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable
from typing import TYPE_CHECKING

from magnetar.client.aio.client_environment import Environment
from magnetar.client.aio.topic_consumer import ConsumerOptions, TopicConsumer
from magnetar.client.errors import AlreadyClosedError, ClientTimeoutError
from magnetar.client.machines.message import Message
from magnetar.client.machines.message_id import MessageId
from magnetar.model.errors import InvalidValueError
from magnetar.model.subscription_types import SubType
from magnetar.protocol import commands as c

if TYPE_CHECKING:
    from magnetar.client.aio.client_transaction import ClientTransaction


class Consumer:
    """A consumer; make it with `Client.subscribe`, and use it as an asynchronous context manager.

    Several tasks may receive at once: each message is returned to one of them, in the order it came.
    """

    def __init__(self, topic: str, environment: Environment, options: ConsumerOptions) -> None:
        self._topic = topic
        self._environment = environment
        self._options = options
        self._loop = asyncio.get_running_loop()
        self._members: dict[str, TopicConsumer] = {}
        self._ready: deque[TopicConsumer] = deque()
        """Those with messages in their queues; one may stand here with none."""
        self._in_ready: set[TopicConsumer] = set()
        self._waiters: deque[asyncio.Future[None]] = deque()
        self._closed = False
        self.at_close: list[Callable[[], object]] = []
        """What the client wants to be called when it is closed."""
        self._failure: Exception | None = None
        self._without_queue = options.limits.queue_size == 0

    async def add(self, topics: Iterable[str]) -> None:
        """Subscribe to internal topics. Raises why one cannot be, and then none of these stays."""
        names, new = list(topics), list[TopicConsumer]()
        at_once = self._environment.bounds.opening or max(len(names), 1)
        try:
            for at in range(0, len(names), at_once):
                part = [
                    TopicConsumer(one, self._environment, self._options, self._has_messages)
                    for one in names[at : at + at_once]
                ]
                new += part
                await asyncio.gather(*(one.opened() for one in part))
        except BaseException:
            await asyncio.gather(*(one.close() for one in new), return_exceptions=True)
            raise
        if self._closed:
            await asyncio.gather(*(one.close() for one in new))
            return
        self._members |= {one.topic: one for one in new}

    async def drop(self, topics: Iterable[str]) -> None:
        """Leave internal topics that have vanished."""
        gone = [self._members.pop(one) for one in topics if one in self._members]
        await asyncio.gather(*(one.close() for one in gone))

    @property
    def topics(self) -> list[str]:
        """The internal topics."""
        return list(self._members)

    async def __aenter__(self) -> Consumer:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def __aiter__(self) -> AsyncIterator[Message]:
        while True:
            yield await self.receive()

    def topic(self) -> str:
        """Return what was subscribed to: a topic, topics with commas between, or a pattern."""
        return self._topic

    def subscription_name(self) -> str:
        """Return the subscription's name."""
        return self._options.subscription

    def consumer_name(self) -> str:
        """Return the name that was given, empty if the broker made one."""
        return self._options.name or ""

    def is_connected(self) -> bool:
        """Whether all its topics are subscribed at the moment."""
        return not self._closed and all(one.connected for one in self._members.values())

    def has_reached_end_of_topic(self) -> bool:
        """Whether all its topics were terminated and everything was read."""
        return bool(self._members) and all(one.ended and not one.consumption.queue for one in self._members.values())

    async def receive(self, timeout_millis: int | None = None) -> Message:
        """Return the next message; cancelled, it takes none along.

        Raises ClientTimeoutError if none comes in ``timeout_millis``, AlreadyClosedError, and why a topic can be read
        no more.
        """
        message = self.receive_nowait()
        if message is not None:
            return message
        if timeout_millis is None:
            return await self._receive()
        try:
            async with asyncio.timeout(timeout_millis / 1000):
                return await self._receive()
        except TimeoutError:
            raise ClientTimeoutError(f"{self._topic}: no message came in {timeout_millis} ms") from None

    async def _receive(self) -> Message:
        while True:
            message = self.receive_nowait()
            if message is not None:
                return message
            if self._without_queue:
                for one in self._members.values():
                    one.want()
            await self._something()

    async def _something(self) -> None:
        """Wait until messages have come, or there will be none any more."""
        waiter: asyncio.Future[None] = self._loop.create_future()
        self._waiters.append(waiter)
        try:
            await waiter
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled():
                self._wake()  # it was this one's turn: let another have it
            elif waiter in self._waiters:
                self._waiters.remove(waiter)
            raise

    def receive_nowait(self) -> Message | None:
        """Return a message that is here already, None if there is none. Raises AlreadyClosedError, and why a topic can
        be read no more."""
        if self._closed:
            raise AlreadyClosedError(f"{self._topic}: the consumer is closed")
        ready = self._ready
        while ready:
            one = ready[0]
            if one.consumption.queue:
                message = one.take()
                if len(ready) > 1 or not one.consumption.queue:
                    ready.popleft()
                    if one.consumption.queue:
                        ready.append(one)
                    else:
                        self._in_ready.discard(one)
                return message
            ready.popleft()
            self._in_ready.discard(one)
        if self._failure is not None:
            raise self._failure
        return None

    def _has_messages(self, one: TopicConsumer) -> None:
        if one not in self._in_ready:
            self._in_ready.add(one)
            self._ready.append(one)
        self._failure = self._failure or one.failure
        if self._waiters:
            for _ in range(min(len(self._waiters), max(len(one.consumption.queue), 1))):
                self._wake()

    def _wake(self) -> None:
        while self._waiters:
            waiter = self._waiters.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return

    async def batch_receive(self, max_messages: int = 100, timeout_millis: int = 100) -> list[Message]:
        """Return up to ``max_messages``, fewer if the time is over (rule 6.1.4); cancelled, it takes none along."""
        if self._without_queue:
            raise InvalidValueError("batch_receive needs a receiver queue (rule 6.1.2)")
        deadline = self._loop.time() + timeout_millis / 1000
        while sum(len(one.consumption.queue) for one in self._ready) < max_messages and self._failure is None:
            left = deadline - self._loop.time()
            if left <= 0 or self._closed:
                break
            try:
                async with asyncio.timeout(left):
                    await self._something()
            except TimeoutError:
                break
        found: list[Message] = []
        while len(found) < max_messages and (message := self.receive_nowait()) is not None:
            found.append(message)
        return found

    async def acknowledge(self, message: Message | MessageId, *, txn: ClientTransaction | None = None) -> None:
        """Take a message as done with. The broker hears of it at the end of this turn of the loop; with ``txn`` when
        the transaction is committed. Raises AlreadyClosedError."""
        one = self._member(message)
        if txn is not None:
            await txn.acknowledges(one, self._options.subscription, _id(message), c.AckType.Individual)
            return
        if isinstance(message, Message):
            one.consumption.acknowledge_message(message)
        else:
            one.consumption.acknowledge(message)
        one.settle_soon()

    async def acknowledge_cumulative(
        self, message: Message | MessageId, *, txn: ClientTransaction | None = None
    ) -> None:
        """Take a message and all before it of its topic as done with; not on Shared and Key_Shared."""
        if self._options.sub_type in (SubType.Shared, SubType.Key_Shared):
            raise InvalidValueError(f"a {self._options.sub_type.name} subscription cannot be acknowledged cumulatively")
        one = self._member(message)
        if txn is not None:
            await txn.acknowledges(one, self._options.subscription, _id(message), c.AckType.Cumulative)
            return
        one.consumption.acknowledge_cumulative(_id(message))
        one.settle_soon()

    async def negative_acknowledge(self, message: Message | MessageId) -> None:
        """Have a message come again after negative_ack_redelivery_delay_ms."""
        self._member(message).refuse(_id(message))

    def redeliver(self, message: Message | MessageId) -> None:
        """Have a message come again now, as when the time for its acknowledgement is over."""
        self._member(message).refuse(_id(message), at_once=True)

    async def redeliver_unacknowledged_messages(self) -> None:
        """Have everything come again that is not acknowledged."""
        for one in self._open():
            one.consumption.redeliver_all()
            one.settle_soon()

    async def seek(self, messageid: MessageId | int) -> None:
        """Move the subscription to a message, which comes next, or to a publish time in milliseconds.

        Several topics have the ends in common (earliest, latest) and times, but no other message (rule 5.9.8).
        """
        members = self._open()
        if isinstance(messageid, int):
            command, start = c.CommandSeek(0, 0, message_publish_time=messageid), None
        else:
            command, start = c.CommandSeek(0, 0, message_id=_seek_data(messageid)), messageid
            if len(members) > 1 and messageid not in (MessageId.earliest, MessageId.latest):
                if not messageid.topic and messageid.partition() < 0:
                    raise InvalidValueError("a seek on several topics needs an id that says which, or a time")
                members = [self._member(messageid)]
        await asyncio.gather(*(one.seek(command, start) for one in members))

    def has_waiting(self) -> bool:
        """Whether a message is here already."""
        return any(one.consumption.queue for one in self._ready)

    async def end_of(self, topic: str) -> c.CommandGetLastMessageIdResponse:
        """Return what the broker says about the end of an internal topic."""
        return await self._members[topic].last_message_id()

    async def get_last_message_id(self) -> MessageId:
        """Return the id of the last message; of a partitioned topic use `get_last_message_ids`."""
        ids = await self.get_last_message_ids()
        if len(ids) != 1:
            raise InvalidValueError(f"{self._topic} has {len(ids)} internal topics; ask get_last_message_ids")
        return ids[0]

    async def get_last_message_ids(self) -> list[MessageId]:
        """Return the id of the last message of each internal topic."""
        found: list[MessageId] = []
        for one in self._open():
            last = (await one.last_message_id()).last_message_id
            found.append(MessageId(one.partition, last.ledger, last.entry, last.batch_index, topic=one.topic))
        return found

    async def unsubscribe(self, *, force: bool = False) -> None:
        """Delete the subscription on all topics, and close."""
        await asyncio.gather(*(one.unsubscribe(force=force) for one in self._open()))
        self._end()

    async def close(self) -> None:
        """Close; what was not acknowledged goes to others. Closing twice is no error (rule 6.1.7)."""
        if self._closed:
            return
        self._end()
        await asyncio.gather(*(one.close() for one in self._members.values()))

    def _end(self) -> None:
        self._closed = True
        for call in self.at_close:
            call()
        while self._waiters:
            self._wake()

    def _open(self) -> list[TopicConsumer]:
        if self._closed:
            raise AlreadyClosedError(f"{self._topic}: the consumer is closed")
        return list(self._members.values())

    def _member(self, message: Message | MessageId) -> TopicConsumer:
        members = self._open()
        if len(members) == 1:
            return members[0]
        topic = message.envelope.topic if isinstance(message, Message) else message.topic
        found = self._members.get(topic)
        if found is None and isinstance(message, MessageId) and message.partition() >= 0:
            of_partition = [one for one in members if one.partition == message.partition()]
            found = of_partition[0] if len(of_partition) == 1 else None
        if found is None:
            raise InvalidValueError(f"{topic or message} is not among the topics of {self._topic} (rule 6.8.6)")
        return found


def _id(message: Message | MessageId) -> MessageId:
    return message.message_id() if isinstance(message, Message) else message


def _seek_data(message_id: MessageId) -> c.MessageIdData:
    """Within a batch the ack set says where (rule 5.9.6)."""
    index, size = message_id.batch_index(), message_id.batch_size
    if message_id.chunks:
        return c.MessageIdData(*message_id.chunks[0])
    data = c.MessageIdData(message_id.ledger_id(), message_id.entry_id(), message_id.partition())
    if index > 0 and size > index:
        from magnetar.client.machines.acknowledgement import ack_set_of

        left = ((1 << size) - 1) & ~((1 << index) - 1)
        return data._replace(batch_index=index, ack_set=ack_set_of(left))
    return data
