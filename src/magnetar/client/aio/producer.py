"""What applications publish with: one producer for a topic, or for all its partitions."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

from magnetar.client.aio.client_environment import Environment
from magnetar.client.aio.topic_producer import FateToken, ProducerOptions, Receipt, TopicProducer
from magnetar.client.errors import AlreadyClosedError
from magnetar.client.machines.message_id import MessageId
from magnetar.client.machines.outgoing_message import OutgoingMessage
from magnetar.client.machines.partition_router import PartitionRouter
from magnetar.model.errors import InvalidValueError
from magnetar.model.names import TopicName

if TYPE_CHECKING:
    from magnetar.client.aio.client_transaction import ClientTransaction

_INT64 = 1 << 63


class Producer:
    """A producer; make it with `Client.create_producer`, and use it as an asynchronous context manager."""

    def __init__(
        self, topic: str, partitions: int, environment: Environment, options: ProducerOptions, router: PartitionRouter
    ) -> None:
        self._topic = topic
        self._environment = environment
        self._options = options
        self._router = router
        name = TopicName.parse(topic)
        topics = [one.fqn for one in name.partitions(partitions)] if partitions else [topic]
        self._producers = [TopicProducer(one, environment, options) for one in topics]
        self._loop = asyncio.get_running_loop()
        self._closed = False
        self.at_close: list[Callable[[], object]] = []
        """What the client wants to be called when it is closed."""

    async def opened(self) -> None:
        """Wait until all partitions are open. Raises why one is not, and then none stays open."""
        try:
            await asyncio.gather(*(one.opened() for one in self._producers))
        except BaseException:
            await self.close()
            raise

    async def __aenter__(self) -> Producer:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def topic(self) -> str:
        """Return the topic, without a partition."""
        return self._topic

    def producer_name(self) -> str:
        """Return the name, given or made by the broker."""
        return self._producers[0].name

    def last_sequence_id(self) -> int:
        """Return the highest sequence id that was confirmed, -1 if there is none."""
        return max(one.last_sequence_id for one in self._producers)

    def is_connected(self) -> bool:
        """Whether all partitions are open at a broker at the moment."""
        return not self._closed and all(one.connected for one in self._producers)

    async def send(
        self,
        content: bytes | None,
        properties: Mapping[str, str] | None = None,
        partition_key: str | bytes | None = None,
        ordering_key: str | bytes | None = None,
        sequence_id: int | None = None,
        replication_clusters: Sequence[str] | None = None,
        disable_replication: bool | None = None,
        event_timestamp: int | None = None,
        deliver_at: int | None = None,
        deliver_after: timedelta | None = None,
        *,
        txn: ClientTransaction | None = None,
    ) -> MessageId:
        """Publish, and return the message's id once it is stored.

        ``content`` None is a message without a value, which compaction takes for a deletion. Cancelled while it waits
        for the receipt, the message is on its way all the same. Raises QueueFullError, MessageTooLargeError,
        RefusedError, ClientTimeoutError, AlreadyClosedError.
        """
        message = self.message(
            content, properties, partition_key, ordering_key, sequence_id, replication_clusters, disable_replication,
            event_timestamp, deliver_at, deliver_after,
        )  # fmt: skip
        return await self.send_message(message, txn)

    async def _send_in(self, txn: ClientTransaction, message: OutgoingMessage) -> MessageId:
        chosen = self._choose(message)
        await txn.publishes_to(chosen.topic)
        receipt = chosen.add(replace(message, txn=txn.txn_id))
        txn.watch(receipt)
        return await asyncio.shield(receipt)

    def message(
        self,
        content: bytes | None,
        properties: Mapping[str, str] | None = None,
        partition_key: str | bytes | None = None,
        ordering_key: str | bytes | None = None,
        sequence_id: int | None = None,
        replication_clusters: Sequence[str] | None = None,
        disable_replication: bool | None = None,
        event_timestamp: int | None = None,
        deliver_at: int | None = None,
        deliver_after: timedelta | None = None,
    ) -> OutgoingMessage:
        """Return a message for `send_nowait`, which may be sent many times. Raises InvalidValueError."""
        if content is not None and not isinstance(content, bytes | bytearray | memoryview):
            raise InvalidValueError(f"a message is bytes, and not {type(content).__name__}; encode it first")
        for what, number in (
            ("sequence_id", sequence_id),
            ("event_timestamp", event_timestamp),
            ("deliver_at", deliver_at),
        ):
            if number is not None and not 0 <= number < _INT64:
                raise InvalidValueError(f"{what} {number} is not from 0 to 2^63 - 1")
        if deliver_after is not None:
            if deliver_at is not None:
                raise InvalidValueError("give deliver_at or deliver_after, not both")
            deliver_at = self._environment.clock.now_ms() + max(int(deliver_after.total_seconds() * 1000), 0)
        key, key_is_base64 = None, False
        if isinstance(partition_key, bytes):
            key, key_is_base64 = base64.b64encode(partition_key).decode(), True
        elif partition_key is not None:
            key = partition_key
        if isinstance(ordering_key, str):
            ordering_key = ordering_key.encode()
        clusters = ("__local__",) if disable_replication else tuple(replication_clusters or ())
        return OutgoingMessage(
            b"" if content is None else bytes(content),
            tuple((properties or {}).items()),
            key,
            key_is_base64,
            ordering_key,
            event_timestamp or 0,
            deliver_at or 0,
            sequence_id,
            content is None,
            clusters,
        )

    async def enqueue(self, message: OutgoingMessage) -> Receipt:
        """Add a message to the queue, waiting for room if the producer was made so; its future gets its id."""
        chosen = self._choose(message)
        if self._options.block_if_queue_full:
            await chosen.room()
        return chosen.add(message)

    def send_nowait(self, content: bytes | OutgoingMessage) -> Receipt:
        """Add a message to the queue at once; its future gets its id. Raises QueueFullError, MessageTooLargeError.

        For many messages a second; bytes alone are a message without key and properties.
        """
        message = OutgoingMessage(content) if isinstance(content, bytes) else content
        return self._choose(message).add(message)

    def send_with(self, message: OutgoingMessage, token: FateToken) -> None:
        """Do the same without a future: ``token`` is completed as one would be, and cannot be awaited."""
        self._choose(message).add_with(message, token)

    async def send_message(self, message: OutgoingMessage, txn: ClientTransaction | None = None) -> MessageId:
        """Publish a message that was made before, and return its id once it is stored. Raises as `send`."""
        if txn is not None:
            return await self._send_in(txn, message)
        return await asyncio.shield(await self.enqueue(message))

    async def room(self) -> None:
        """Wait until there is room in the queue, on every partition."""
        for one in self._producers:
            await one.room()

    def _choose(self, message: OutgoingMessage) -> TopicProducer:
        if self._closed:
            raise AlreadyClosedError(f"{self._topic}: the producer is closed")
        count = len(self._producers)
        if count == 1:
            return self._producers[0]
        return self._producers[self._router.choose(message, count, self._loop.time())]

    async def grow(self, partitions: int) -> None:
        """Take up partitions that the topic has gained."""
        name = TopicName.parse(self._topic)
        for number in range(len(self._producers), partitions):
            one = TopicProducer(name.partition(number).fqn, self._environment, self._options)
            try:
                await one.opened()
            except BaseException:
                await one.close()
                raise
            if self._closed:
                await one.close()
                return
            self._producers.append(one)

    async def flush(self) -> None:
        """Send what waits for company, and wait until every message has met its fate."""
        if self._closed:
            raise AlreadyClosedError(f"{self._topic}: the producer is closed")
        await asyncio.gather(*(one.flush() for one in self._producers))

    async def close(self) -> None:
        """Send what is in the queue, then close; closing twice is no error (rule 6.1.7)."""
        if self._closed:
            return
        self._closed = True
        for call in self.at_close:
            call()
        try:
            flushing = (one.flush() for one in self._producers if one.connected)
            async with asyncio.timeout(self._environment.timeout):
                await asyncio.gather(*flushing, return_exceptions=True)
        except TimeoutError:
            pass  # what has no receipt by now fails with the closing
        finally:
            await asyncio.gather(*(one.close() for one in self._producers))
