"""The sink: each Spark task sends its rows as batch entries, and is done when the broker has stored them all.

At least once. A task that fails is run again by Spark, and what the first attempt had sent is then there twice. The
option ``idempotent=true`` (streams only) prepares for more: producer names that stay the same over restarts (query id
and task number), sequence ids from the batch id and the row's ordinal, and going on after what the broker knows to
have. With deduplication on at the broker that leaves no repetition, *if* a replayed micro-batch has the same tasks with
the same rows in the same order, which holds for map-only queries and not after a shuffle (PIPELINES 4.4); there it
would lose rows, hence it is not the default.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage

from magnetar.client.lookup import Lookup
from magnetar.client.producer import Producer
from magnetar.model.errors import InvalidValueError
from magnetar.protocol.batches import BatchWriter
from magnetar.runtime.clock import SystemClock
from magnetar.spark.encode import Router, Rows, check_columns
from magnetar.spark.options import SinkOptions

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

_ORDINAL_BITS = 32
_QUERY_ID = "sql.streaming.queryId"
_BATCH_ID = "streaming.sql.batchId"


@dataclass
class Written(WriterCommitMessage):
    """What one task did."""

    messages: int
    skipped: int


class TaskSink:
    """Producers of one task, one for each topic or partition it meets."""

    def __init__(self, options: SinkOptions, name: str | None, first_sequence_id: int) -> None:
        self._options = options
        self._name = name
        self._first = first_sequence_id
        self._lookup = Lookup(options.service_url, timeout=options.operation_timeout, token=options.token)
        self._counts: dict[str, int] = {}
        self._open: dict[tuple[str, int], tuple[Producer, BatchWriter, int]] = {}
        self._clock = SystemClock()

    def run(self, batches: Iterator[Any]) -> Written:
        """Send everything, wait for every receipt, close."""
        options = self._options
        router = Router(options.topic, self._partition_count, murmur=options.murmur, run=options.batch_messages)
        skipped = 0
        with self._lookup, ExitStack() as stack:
            for batch in batches:
                for rows in router.split(batch):
                    skipped += self._send(rows, stack)
            for producer, _, _ in self._open.values():
                producer.flush()
            return Written(sum(producer.messages_confirmed for producer, _, _ in self._open.values()), skipped)

    def _send(self, rows: Rows, stack: ExitStack) -> int:
        """How many rows the broker had already."""
        opened = self._open.get(rows[:2])
        if opened is None:
            options = self._options
            producer = Producer(self._lookup, rows.target, self._name, send_timeout=options.send_timeout)
            stack.callback(producer.close)
            writer = BatchWriter(
                producer.name,
                compression=options.compression,
                max_messages=options.batch_messages,
                max_bytes=options.batch_bytes,
            )
            known = producer.last_sequence_id if self._name is not None else -1
            opened = self._open[rows[:2]] = producer, writer, known
        producer, writer, known = opened
        ids: list[int] = [self._first + ordinal for ordinal in rows.ordinals]
        skip = sum(one <= known for one in ids) if known >= ids[0] else 0
        if skip == len(ids):
            return skip
        batches = writer.pack(
            self._clock.now_ms(),
            rows.values[skip:],
            ids[skip:],
            None if rows.keys is None else rows.keys[skip:],
            None if rows.event_times is None else rows.event_times[skip:],
            None if rows.properties is None else rows.properties[skip:],
        )
        limit = producer.max_message_size
        for batch in batches:
            if len(batch.entry) > limit:
                raise InvalidValueError(
                    f"a message of {len(batch.entry)} bytes is larger than the {limit} that the broker takes; "
                    "raise its maxMessageSize, or compress (pulsar.producer.compressionType)"
                )
            producer.send(*batch)
        return skip

    def _partition_count(self, topic: str) -> int:
        count = self._counts.get(topic)
        if count is None:
            count = self._counts[topic] = self._lookup.partition_count(topic)
        return count


def check_schema(options: SinkOptions, schema: StructType, overwrite: bool) -> None:
    """Raises InvalidValueError when rows of ``schema`` cannot be written."""
    if overwrite:
        raise InvalidValueError(
            "a topic cannot be overwritten: use .mode('append'), in streams .outputMode('update') or 'append'"
        )
    check_columns({field.name: field.dataType.simpleString() for field in schema.fields}, options.topic)


class BatchSink(DataSourceArrowWriter):
    """For ``df.write``."""

    def __init__(self, options: SinkOptions) -> None:
        if options.idempotent:
            raise InvalidValueError("option 'idempotent' needs a stream: a batch write has no batch id")
        self._options = options

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        """One task's rows."""
        return TaskSink(self._options, None, 0).run(iterator)

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Nothing: what a task has sent is there."""

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Nothing: a topic takes nothing back."""


class StreamSink(DataSourceStreamArrowWriter):
    """For ``df.writeStream``."""

    def __init__(self, options: SinkOptions) -> None:
        self._options = options

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        """One task's rows of one micro-batch."""
        if not self._options.idempotent:
            return TaskSink(self._options, None, 0).run(iterator)
        context = TaskContext.get()
        query = context.getLocalProperty(_QUERY_ID) if context is not None else None
        batch = context.getLocalProperty(_BATCH_ID) if context is not None else None
        if context is None or query is None or batch is None:
            raise InvalidValueError("idempotent=true: Spark does not tell the query and batch id of this task")
        name = f"spark.{query}.{context.partitionId()}"
        return TaskSink(self._options, name, int(batch) << _ORDINAL_BITS).run(iterator)

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        """Nothing: what a task has sent is there."""

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        """Nothing: a topic takes nothing back."""
