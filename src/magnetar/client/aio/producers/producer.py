"""What applications publish with: one producer for a topic, or for all its partitions."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Generic

from magnetar.client.aio.client_environment import Environment
from magnetar.client.aio.parameters import check_message, checked, whole_number
from magnetar.client.aio.statistics.handle_stats import ProducerStatistics, producer_stats
from magnetar.client.aio.topics.lazy_partition import LazyPartition
from magnetar.client.aio.topics.producer_options import ProducerOptions
from magnetar.client.aio.topics.receipt import FateToken, Receipt
from magnetar.client.aio.topics.topic_producer import TopicProducer
from magnetar.client.errors import AlreadyClosedError, ForkedClientError, SchemaError, ValueTypeError
from magnetar.client.machines.message import T
from magnetar.client.machines.message_id import MessageId
from magnetar.client.machines.outgoing.entry_fate import EntryFate
from magnetar.client.machines.outgoing.outgoing_message import OutgoingMessage
from magnetar.client.machines.outgoing.partition_router import PartitionRouter
from magnetar.client.machines.outgoing.pending_bytes import PendingBytes
from magnetar.model.errors import InvalidValueError
from magnetar.model.names import TopicName

if TYPE_CHECKING:
    from magnetar.client.aio.client_transaction import ClientTransaction
    from magnetar.client.aio.producers.table_sender import TableSender


class Producer(Generic[T]):
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
        eager = range(len(topics)) if not options.lazy else [router.first(len(topics))]
        self._producers: list[TopicProducer | LazyPartition] = [
            TopicProducer(one, environment, options) if number in eager else self._lazy(one)
            for number, one in enumerate(topics)
        ]
        self._values = options.values
        only = self._producers[0]
        plain = len(self._producers) == 1 and options.values is None
        self._only = only if plain and isinstance(only, TopicProducer) else None
        """The one for all messages; None where there are several or values have a schema, and when it is closed."""
        self._tables: TableSender | None = None
        self._loop = asyncio.get_running_loop()
        self._since = self._loop.time()
        self._closed = False
        self.at_close: list[Callable[[], object]] = []
        """What the client wants to be called when it is closed."""

    @property
    def options(self) -> ProducerOptions:
        """What it was opened with."""
        return self._options

    @property
    def memory(self) -> PendingBytes:
        """That of the client's messages without a receipt."""
        return self._environment.memory

    @property
    def partitions(self) -> int:
        """How many topics it publishes to: the partitions, or one."""
        return len(self._producers)

    def _lazy(self, topic: str) -> LazyPartition:
        return LazyPartition(topic, self._environment, self._options, self._put_in_place)

    def _put_in_place(self, lazy: LazyPartition, opened: TopicProducer) -> None:
        self._producers[self._producers.index(lazy)] = opened

    async def opened(self) -> None:
        """Wait until all partitions are open, but for lazy ones. Raises why one is not, and then none stays open."""
        try:
            await asyncio.gather(*(one.opened() for one in self._producers if isinstance(one, TopicProducer)))
        except BaseException:
            await self.close()
            raise

    async def __aenter__(self) -> Producer[T]:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def topic(self) -> str:
        """Return the topic, without a partition."""
        return self._topic

    def producer_name(self) -> str:
        """Return the name, given or made by the broker."""
        return next((one.name for one in self._producers if one.name), "")

    def last_sequence_id(self) -> int:
        """Return the highest sequence id that was confirmed, -1 if there is none."""
        return max(one.last_sequence_id for one in self._producers)

    def is_connected(self) -> bool:
        """Whether all partitions are open at a broker at the moment, but for lazy ones without messages."""
        return not self._closed and all(one.connected for one in self._producers)

    async def send(
        self,
        content: T | None,
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
        txn.check_use(self._environment.lookup)
        chosen = self._choose(message)
        with txn.beginning():
            await txn.publishes_to(chosen.topic)
            receipt = chosen.add(replace(message, txn=txn.txn_id))
            txn.watch(receipt)
        return await asyncio.shield(receipt.as_future())  # the transaction waits for it even if this one does not

    def message(
        self,
        content: T | None,
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
        encoded, partition_key, null_value = self._encoded(content, partition_key)
        rare = replication_clusters is not None or disable_replication is not None or deliver_after is not None
        if rare or properties is not None or ordering_key is not None:
            check_message(properties, ordering_key, replication_clusters, disable_replication, deliver_after)
        if sequence_id is not None:
            sequence_id = whole_number("sequence_id", sequence_id)
        if event_timestamp is not None:
            event_timestamp = whole_number("event_timestamp", event_timestamp)
        if deliver_at is not None:
            deliver_at = whole_number("deliver_at", deliver_at)
        if deliver_after is not None:
            if deliver_at is not None:
                raise InvalidValueError("give deliver_at or deliver_after, not both")
            deliver_at = self._environment.clock.now_ms() + max(int(deliver_after.total_seconds() * 1000), 0)
        key, key_is_base64 = None, False
        if isinstance(partition_key, bytes):
            key, key_is_base64 = base64.b64encode(partition_key).decode(), True
        elif partition_key is not None:
            if type(partition_key) is not str or not partition_key.isascii():
                checked("send", partition_key=partition_key)
            key = partition_key
        if isinstance(ordering_key, str):
            ordering_key = ordering_key.encode()
        clusters = ("__local__",) if disable_replication else tuple(replication_clusters or ())
        return OutgoingMessage(
            encoded,
            tuple((properties or {}).items()),
            key,
            key_is_base64,
            ordering_key,
            event_timestamp or 0,
            deliver_at or 0,
            sequence_id,
            null_value,
            clusters,
        )

    def _encoded(self, content: Any, key: str | bytes | None) -> tuple[bytes, str | bytes | None, bool]:
        """Return payload, key and whether there is no value. Raises SchemaError, InvalidValueError."""
        schema = self._values
        if content is None:
            return b"", key, True
        if schema is None:
            if not isinstance(content, bytes | bytearray | memoryview):
                raise ValueTypeError(
                    f"a message is bytes, and not {type(content).__name__}; give the producer a schema, or encode it"
                )
            return bytes(content), key, False
        try:
            payload = schema.encode(content)
            if schema.separates_key:
                if key is not None:
                    raise InvalidValueError("the schema makes the message's key of the value's; give no partition_key")
                return payload, schema.key_of(content), content[1] is None
        except SchemaError as error:
            raise type(error)(f"{self._topic}: {error}") from error
        return payload, key, False

    async def enqueue(self, message: OutgoingMessage) -> Receipt:
        """Add a message to the queue, waiting for room if the producer was made so; its receipt gets its id."""
        chosen = self._choose(message)
        if self._options.block_if_queue_full:
            await chosen.room()
        return chosen.add(message)

    def send_nowait(self, content: T | OutgoingMessage) -> Receipt:
        """Add a message to the queue at once; its receipt gets its id. Raises QueueFullError, MessageTooLargeError.

        For many messages a second; a value alone is a message without key and properties.
        """
        if type(content) is bytes:
            only = self._only
            if only is not None:
                return only.add_content(content)
            if self._values is None:
                return self._choose(OutgoingMessage(content)).add_content(content)
        message = content if isinstance(content, OutgoingMessage) else self.message(content)
        return self._choose(message).add(message)

    def send_many_nowait(self, contents: Sequence[T]) -> list[Receipt]:
        """Add messages without key and properties, as many as there is room for; the receipts are of those, the rest
        was not added. Wait for `room` and go on with it. Raises as `send_nowait`, if not for want of room."""
        only = self._only
        if only is not None:
            return only.add_contents(contents)  # type: ignore[arg-type]  # bytes: there is no schema
        found: list[Receipt] = []
        for content in contents:
            message = self.message(content)
            chosen = self._choose(message)
            if chosen.full:
                break
            found.append(chosen.add(message))
        return found

    def send_with(self, message: bytes | OutgoingMessage, token: FateToken) -> None:
        """Do the same as `send_nowait` without a receipt: ``token`` is completed as a future would be."""
        if type(message) is bytes:
            only = self._only
            if only is not None:
                only.add_content_with(message, token)
                return
        one = OutgoingMessage(message) if isinstance(message, bytes) else message
        self._choose(one).add_with(one, token)

    def join_many(self, contents: Sequence[bytes], at: int, stop: int) -> tuple[EntryFate | None, int]:
        """Send those from ``at`` until ``stop`` that may join a batch which is open, without a receipt; returns what
        becomes of them and how many they are, perhaps none: the next one takes `send_with`."""
        only = self._only
        return (None, 0) if only is None else only.join_many(contents, at, stop)

    async def send_message(self, message: OutgoingMessage, txn: ClientTransaction | None = None) -> MessageId:
        """Publish a message that was made before, and return its id once it is stored. Raises as `send`."""
        self._environment.home.check()
        if txn is not None:
            checked("send", txn=txn)
            return await self._send_in(txn, message)
        receipt = await self.enqueue(message)
        if self._options.limits.batching:
            self.hurry()
        return await receipt

    def hurry(self, *, any_delay: bool = False) -> None:
        """Let no message that was added wait for company for longer than until those before it have their receipts.

        ``any_delay``: even if a longer delay than the usual one was asked for.
        """
        for one in self._producers:
            one.hurry(any_delay=any_delay)

    async def send_table(self, table: Any) -> Any:
        """Publish the rows of a table of pyarrow, polars or pandas, and return where they are, once all are stored.

        The value is the column ``value`` (binary or string), or with a schema its fields; beside it there may be __key,
        __eventTime, __deliverAt (milliseconds or timestamps), __orderingKey, __messageProperties (a map) and
        __partition. The answer is a pa.Table with a row for each entry: __topic, __ledgerId, __entryId, messages. Needs
        magnetar[columns]. Cancelled, what is made already is on its way all the same. Raises InvalidValueError for
        columns that cannot be sent, MessageTooLargeError and as `send` with a note about the rows; those before are
        sent.
        """
        if self._closed:
            raise AlreadyClosedError(f"{self._topic}: the producer is closed")
        if self._tables is None:
            from magnetar.client.aio.producers.table_sender import TableSender

            self._tables = TableSender(self._topic, self._producers, self._environment, self._options, self._router)
        return await self._tables.send(table)

    async def room(self) -> None:
        """Wait until there is room in the queue, on every partition."""
        for one in self._producers:
            await one.room()

    def _choose(self, message: OutgoingMessage) -> TopicProducer | LazyPartition:
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
            topic = name.partition(number).fqn
            if self._options.lazy:
                self._producers.append(self._lazy(topic))
                self._only = None
                continue
            one = TopicProducer(topic, self._environment, self._options)
            try:
                await one.opened()
            except BaseException:
                await one.close()
                raise
            if self._closed:
                await one.close()
                return
            self._producers.append(one)
            self._only = None

    def stats(self) -> ProducerStatistics:
        """Return what was counted since the producer was opened."""
        pending = sum(one.pending for one in self._producers)
        return producer_stats([one.counters for one in self._producers], pending, self._loop.time() - self._since)

    async def flush(self) -> None:
        """Send what waits for company, and wait until every message has met its fate."""
        if self._closed:
            raise AlreadyClosedError(f"{self._topic}: the producer is closed")
        self._environment.home.check()
        await asyncio.gather(*(one.flush() for one in self._producers))

    def forked(self, error: ForkedClientError) -> None:
        """Refuse everything in a process that was forked off, where closing does nothing."""
        for one in self._producers:
            one.forked(error)

    async def close(self) -> None:
        """Send what is in the queue, then close; closing twice is no error (rule 6.1.7).

        A broker that does not answer has operation_timeout_seconds for both together.
        """
        if self._closed:
            return
        self._closed = True
        self._only = None
        for call in self.at_close:
            call()
        self.at_close.clear()
        deadline = self._loop.time() + self._environment.timeout
        try:
            flushing = (one.flush() for one in self._producers if one.connected)
            async with asyncio.timeout_at(deadline):
                await asyncio.gather(*flushing, return_exceptions=True)
        except TimeoutError:
            pass  # what has no receipt by now fails with the closing
        finally:
            await asyncio.gather(*(one.close(deadline) for one in self._producers))
