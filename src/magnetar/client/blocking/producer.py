"""What threads publish with: a producer over its asyncio twin."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, Generic

from magnetar.client.aio.parameters import checked
from magnetar.client.aio.producers.producer import Producer as AioProducer
from magnetar.client.aio.statistics.handle_stats import ProducerStatistics
from magnetar.client.blocking.loop_thread import LoopThread, as_argument
from magnetar.client.blocking.send_queue import AwaitedMessage, Callback, PostedMessage, SendQueue
from magnetar.client.blocking.transaction import ClientTransaction, twin_of
from magnetar.client.errors import BlockedLoopError, QueueFullError
from magnetar.client.machines.message import T
from magnetar.client.machines.message_id import MessageId
from magnetar.client.machines.outgoing.outgoing_message import OutgoingMessage
from magnetar.model.errors import InvalidValueError
from magnetar.protocol.commands import ProducerAccessMode


class Producer(Generic[T]):
    """A producer; make it with `Client.create_producer`, and use it as a context manager. Threads may share it."""

    def __init__(self, thread: LoopThread, twin: AioProducer[T]) -> None:
        self.twin = twin
        """Its asyncio twin, which lives on the loop thread."""
        self._thread = thread
        self._bare = bytes if twin.options.values is None else None
        """The type of what needs no message around it."""
        self._queue = SendQueue(thread, twin)
        if twin.options.access_mode is ProducerAccessMode.Shared:
            thread.closes_with(self, twin)
        # a topic that is taken for one producer alone is kept, as by the official client, until the client is closed

    def __enter__(self) -> Producer[T]:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def topic(self) -> str:
        """Return the topic, without a partition."""
        return self.twin.topic()

    def producer_name(self) -> str:
        """Return the name, given or made by the broker."""
        return self.twin.producer_name()

    def last_sequence_id(self) -> int:
        """Return the highest sequence id that was confirmed, -1 if there is none."""
        self._thread.check_process()
        return self.twin.last_sequence_id()

    def is_connected(self) -> bool:
        """Whether all partitions are open at a broker at the moment."""
        self._thread.check_process()
        return self.twin.is_connected()

    def send(
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

        ``content`` None is a message without a value, which compaction takes for a deletion. Interrupted while it waits
        for the receipt, the message is on its way all the same. Raises QueueFullError, MessageTooLargeError,
        RefusedError, ClientTimeoutError, AlreadyClosedError.
        """
        message = self._message(
            content, properties, partition_key, ordering_key, sequence_id, replication_clusters, disable_replication,
            event_timestamp, deliver_at, deliver_after,
        )  # fmt: skip
        if txn is not None:
            return self._thread.run(self.twin.send_message(message, twin_of(txn)))
        if self._thread.inside:
            raise BlockedLoopError()
        awaited = AwaitedMessage(self._queue)
        self._queue.add((message, awaited), hurried=True)
        return awaited.wait()

    def send_async(
        self,
        content: T | None,
        callback: Callback | None,
        properties: Mapping[str, str] | None = None,
        partition_key: str | bytes | None = None,
        ordering_key: str | bytes | None = None,
        sequence_id: int | None = None,
        replication_clusters: Sequence[str] | None = None,
        disable_replication: bool | None = None,
        event_timestamp: int | None = None,
        deliver_at: int | None = None,
        deliver_after: timedelta | None = None,
    ) -> None:
        """Publish without waiting; ``callback(result, message_id)`` is called once the message has met its fate.

        It is called on the thread of the client, in the order of the receipts: it should be short, may send, and must
        not wait (BlockedLoopError). With None a failure is logged. If the queue is full, ``callback`` gets
        ProducerQueueIsFull or MemoryBufferIsFull at once, or the call waits with block_if_queue_full. Raises
        ArgumentError, AlreadyClosedError.
        """
        plain = partition_key is None and properties is None and event_timestamp is None and sequence_id is None
        undelayed = deliver_after is None and deliver_at is None and ordering_key is None
        everywhere = replication_clusters is None and disable_replication is None
        if plain and undelayed and everywhere and type(content) is self._bare:
            message: Any = content
        else:
            message = self._message(
                content, properties, partition_key, ordering_key, sequence_id, replication_clusters,
                disable_replication, event_timestamp, deliver_at, deliver_after,
            )  # fmt: skip
        if callback is not None and not callable(callback):
            checked("send_async", callback=callback)
        try:
            if callback is None and type(message) is bytes:
                self._queue.add(message)
            else:
                self._queue.add((message, PostedMessage(self._queue, callback)))
        except QueueFullError as error:
            if callback is None:
                raise
            callback(error.result, MessageId())

    def _message(self, *given: Any) -> OutgoingMessage:
        try:
            return self.twin.message(*given)
        except InvalidValueError as error:
            raise as_argument(error) from error

    def send_table(self, table: Any) -> Any:
        """Publish the rows of a table of pyarrow, polars or pandas, and return where they are, once all are stored.

        As the asyncio producer's, which says what its columns are.
        """
        return self._thread.run(self.twin.send_table(table))

    def stats(self) -> ProducerStatistics:
        """Return what was counted since the producer was opened."""
        self._thread.check_process()
        return self.twin.stats()

    def flush(self) -> None:
        """Send what waits for company, and wait until every message has met its fate."""
        self._thread.run(self.twin.flush())

    def close(self) -> None:
        """Send what is in the queue, then close; closing twice is no error (rule 6.1.7)."""
        self._thread.end(self.twin.close)
