"""The sink as Spark sees it: who the writing task is, and what is promised.

A stream writes effectively once unless the option ``delivery`` says at-least-once: the task is named by the query's id
(from its checkpoint) and the task's number, its rows are numbered by micro-batch and row. Spark hands neither to a
Python sink, but both are in the task's local properties. A batch write has no such identity; with the options
``txnAppId`` and ``txnVersion`` it has one, if the application can repeat the same rows in the same order.

That holds for rows that come from a stream of ours without a shuffle (`repeatability`); others are refused, or with the
option ``staging`` stored by the tasks and sent by the driver (`staging_area`).

Spark runs a task that fails again, and after a crash of the driver the last micro-batch as a whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final

from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage

from magnetar.columnar.row_router import check_columns
from magnetar.model.errors import InvalidValueError
from magnetar.spark.options.sink_options import SinkOptions
from magnetar.spark.repeatability import is_repeatable
from magnetar.spark.sink.sequence_ids import UnreplayableError
from magnetar.spark.sink.staging_area import StagingArea
from magnetar.spark.sink.task_sink import Numbering, Published, TaskSink
from magnetar.spark.sink.value_writer import check_value_columns

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

_QUERY_ID: Final = "sql.streaming.queryId"
_BATCH_ID: Final = "streaming.sql.batchId"


@dataclass
class SentCommit(WriterCommitMessage):
    """The commit message of a task that has sent its rows."""

    published: Published


def check_schema(options: SinkOptions, schema: StructType, overwrite: bool) -> None:
    """Check that rows of ``schema`` can be written. Raises InvalidValueError."""
    if overwrite:
        raise InvalidValueError(
            "a topic cannot be overwritten: use .mode('append'), in streams .outputMode('update') or 'append'"
        )
    types = {field.name: field.dataType.simpleString() for field in schema.fields}
    if options.schema is not None:
        types = check_value_columns(options, types)
    check_columns(types, options.topic)


@dataclass
class StagedCommit(WriterCommitMessage):
    """The commit message of a task that has stored its rows, to be sent by the driver."""

    query: str
    path: str | None
    """None: it had no rows."""


def repeatable_only(batches: Iterator[Any]) -> Iterator[Any]:
    """Yield the same batches; UnreplayableError if rows did not come straight from a stream of ours."""
    checked = False
    for batch in batches:
        if not checked and batch.num_rows:
            if not is_repeatable():
                raise UnreplayableError(
                    "the rows of this task do not come straight from a stream of format('pulsar'), but through a "
                    "shuffle (groupBy, join, repartition, dropDuplicates) or from another source, so they may come "
                    "otherwise when the micro-batch is repeated, and nothing was sent. Set the option "
                    "staging=<directory>, which stores each micro-batch before it is sent; or "
                    "delivery=at-least-once; or, if there is no shuffle and the source is repeatable, repeatable=true"
                )
            checked = True
        yield batch


class BatchWriter(DataSourceArrowWriter):
    """The writer of ``df.write``."""

    task_sink: ClassVar[type[TaskSink]] = TaskSink

    def __init__(self, options: SinkOptions) -> None:
        if options.staging is not None:
            raise InvalidValueError(
                "option 'staging' has no meaning for a batch write, which is not repeated by itself"
            )
        if options.once and options.app is None:
            raise InvalidValueError(
                "option 'delivery' is effectively-once: a batch write needs 'txnAppId' and 'txnVersion' for that, "
                "which say what is the same write when it is repeated"
            )
        self._options = options

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        """Write one task's rows."""
        numbering = None
        if self._options.app is not None and self._options.once is not False:
            context = TaskContext.get()
            assert context is not None, "Spark calls this in a task"
            application, version = self._options.app
            numbering = Numbering(f"spark.{application}.{context.partitionId()}", version)
        return SentCommit(self.task_sink(self._options, numbering).run(iterator))

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Do nothing: what a task has sent is there."""

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Do nothing: a topic takes nothing back."""


class StreamWriter(DataSourceStreamArrowWriter):
    """The writer of ``df.writeStream``."""

    task_sink: ClassVar[type[TaskSink]] = TaskSink

    def __init__(self, options: SinkOptions) -> None:
        if options.app is not None:
            raise InvalidValueError("option 'txnAppId' has no meaning for a stream, whose checkpoint has an id")
        self._options = options

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        """Write one task's rows of one micro-batch."""
        options = self._options
        if options.once is False:
            return SentCommit(self.task_sink(options, None).run(iterator))
        query, batch, task = self._identity()
        if options.staging is not None:
            return StagedCommit(query, StagingArea(options.staging, query).put(batch, task, iterator))
        if not options.repeatable:
            iterator = repeatable_only(iterator)
        return SentCommit(self.task_sink(options, Numbering(f"spark.{query}.{task}", batch)).run(iterator))

    def _identity(self) -> tuple[str, int, int]:
        """Return query, micro-batch and task."""
        context = TaskContext.get()
        query = context.getLocalProperty(_QUERY_ID) if context is not None else None
        batch = context.getLocalProperty(_BATCH_ID) if context is not None else None
        if context is None or query is None or batch is None:
            raise InvalidValueError(
                "this Spark does not give a task its query and micro-batch, without which rows cannot be numbered; "
                "use Spark 4.3, or the option delivery=at-least-once"
            )
        return query, int(batch), context.partitionId()

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        """Send what tasks have stored (what they have sent is there), under one name, in the order of tasks."""
        staged = [message for message in messages if isinstance(message, StagedCommit)]
        if self._options.staging is None or not staged:
            return
        query = staged[0].query
        stage = StagingArea(self._options.staging, query)
        paths = stage.settle(batchId, [message.path for message in staged if message.path is not None])
        numbering = Numbering(f"spark.{query}.staged", batchId)
        if paths:
            self.task_sink(self._options, numbering).run(stage.read(paths))
        stage.forget_before(batchId)

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        """Do nothing: a topic takes nothing back."""
