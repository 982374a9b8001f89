"""A consumer that leaves no trace: it begins where the application says, and goes on there after a lost connection
(rules of 6.9)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from typing import Generic

from magnetar.client.aio.consumers.consumer import Consumer
from magnetar.client.aio.parameters import checked
from magnetar.client.machines.message import Message, T
from magnetar.client.machines.message_id import MessageId, end_order, order_of

_ACK_EVERY = 500
"""After so many messages the broker hears how far it is, for its statistics (rule 6.9.1)."""


class Reader(Generic[T]):
    """A reader; make it with `Client.create_reader`, and use it as an asynchronous context manager."""

    def __init__(self, consumer: Consumer[T], start: MessageId) -> None:
        self._consumer = consumer
        self._start = start
        self._starts: dict[str, MessageId] = {}
        """Where it was moved to, of topics where it was."""
        self._last: dict[str, Message[T]] = {}
        self._ends: dict[str, MessageId] = {}
        self._unsaid = 0

    async def __aenter__(self) -> Reader[T]:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def __aiter__(self) -> AsyncIterator[Message[T]]:
        while True:
            yield await self.read_next()

    def topic(self) -> str:
        """Return the topic."""
        return self._consumer.topic()

    def has_reached_end_of_topic(self) -> bool:
        """Whether the topic was terminated and everything was read."""
        return self._consumer.has_reached_end_of_topic()

    def is_connected(self) -> bool:
        """Whether all its partitions are open at a broker at the moment."""
        return self._consumer.is_connected()

    async def read_next(self, timeout_millis: int | None = None) -> Message[T]:
        """Return the next message; cancelled, it takes none along. Raises as `Consumer.receive`."""
        message = await self._consumer.receive(timeout_millis)
        self._last[message.topic_name()] = message
        self._unsaid += 1
        if self._unsaid >= _ACK_EVERY:
            self._unsaid = 0
            for last in self._last.values():
                await self._consumer.acknowledge_cumulative(last)
        return message

    @property
    def consumer(self) -> Consumer[T]:
        """What it reads with."""
        return self._consumer

    def note(self, last: Iterable[Message[T]], count: int) -> None:
        """Take note of what was taken from its consumer: the last message of each topic, and how many in all."""
        for message in last:
            self._last[message.topic_name()] = message
        self._unsaid += count
        if self._unsaid >= _ACK_EVERY:
            self._unsaid = 0
            for message in self._last.values():
                self._consumer.acknowledge_up_to(message)

    async def get_last_message_id(self) -> MessageId:
        """Return the id of the last message; of a partitioned topic use `get_last_message_ids`."""
        return await self._consumer.get_last_message_id()

    async def get_last_message_ids(self) -> list[MessageId]:
        """Return the id of the last message of each internal topic."""
        return await self._consumer.get_last_message_ids()

    def has_read(self, message_id: MessageId) -> bool:
        """Whether a message of an internal topic was read, or one after it; of an empty topic everything was."""
        return message_id.entry_id() < 0 or self._place(message_id.topic) >= end_order(message_id)

    async def has_message_available(self) -> bool:
        """Whether a message is stored that was not read yet (rule 6.9.3).

        Waits while the client connects again. Raises ClientTimeoutError after operation_timeout_seconds.
        """
        consumer = self._consumer
        if consumer.has_waiting():
            return True
        deadline = consumer.deadline()
        behind = [topic for topic in consumer.topics if await self._is_behind(topic, deadline)]
        if not behind or not consumer.asks:
            return bool(behind)
        ends = {topic: self._ends.get(topic) for topic in behind}
        # What is stored there may not be readable: damaged, or encrypted without a key for it.
        try:
            async with asyncio.timeout_at(deadline):
                while not consumer.has_waiting():
                    if all(end is not None and self._place(topic) >= end_order(end) for topic, end in ends.items()):
                        return False
                    await consumer.heard()
        except TimeoutError:
            pass
        return True

    def _place(self, topic: str) -> tuple[int, int, int]:
        """Return how far a topic was read."""
        last, place = self._last.get(topic), self._consumer.place_in(topic)
        return place if last is None else max(place, order_of(last.message_id()))

    async def _is_behind(self, topic: str, deadline: float) -> bool:
        place = self._place(topic)
        known = self._ends.get(topic)
        if place[0] >= 0 and known is not None and place < end_order(known):
            return True
        answer = await self._consumer.end_of(topic, deadline)
        end = answer.last_message_id
        if end.ledger < 0 or end.entry < 0:
            return False
        found = self._ends[topic] = MessageId(-1, end.ledger, end.entry, end.batch_index)
        if place[0] >= 0:
            return self._place(topic) < end_order(found)
        marked = answer.consumer_mark_delete_position
        start = self._starts.get(topic, self._start)
        if start == MessageId.latest:
            return marked is not None and (marked.ledger, marked.entry) < (end.ledger, end.entry)
        if start == MessageId.earliest:
            return True
        begin = order_of(start)
        return begin <= order_of(found) if self._consumer.options.start_inclusive else begin < end_order(found)

    async def seek(self, messageid: MessageId | int) -> None:
        """Go after a message, with ``start_message_id_inclusive`` to it, or to a publish time in milliseconds.

        Cancelled, it goes there all the same.
        """
        checked("seek", messageid=messageid)
        topics = [one.topic for one in self._consumer.moved_by(messageid)]
        try:
            await self._consumer.seek(messageid)
        except asyncio.CancelledError:
            self._moved(topics, messageid)
            raise
        self._moved(topics, messageid)

    def _moved(self, topics: Iterable[str], messageid: MessageId | int) -> None:
        for one in topics:
            self._last.pop(one, None)
            self._ends.pop(one, None)
            self._starts[one] = MessageId.earliest if isinstance(messageid, int) else messageid

    async def close(self) -> None:
        """Close; the broker forgets it."""
        await self._consumer.close()
