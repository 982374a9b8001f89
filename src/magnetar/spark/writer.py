"""The sink as Spark sees it: who the writing task is, and what is promised.

A stream writes effectively once unless the option ``delivery`` says at-least-once: the task is named by the query's id
(from its checkpoint) and the task's number, its rows are numbered by micro-batch and row. Spark hands neither to a
Python sink, but both are in the task's local properties. A batch write has no such identity; with the options
``txnAppId`` and ``txnVersion`` it has one, for whoever can repeat the same rows in the same order.

Spark runs a task that fails again, and after a crash of the driver the last micro-batch as a whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final

from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage

from magnetar.model.errors import InvalidValueError
from magnetar.spark.encode import check_columns
from magnetar.spark.options import SinkOptions
from magnetar.spark.publish import Numbering, Published, TaskSink

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

_QUERY_ID: Final = "sql.streaming.queryId"
_BATCH_ID: Final = "streaming.sql.batchId"


@dataclass
class Written(WriterCommitMessage):
    """What one task did."""

    published: Published


def check_schema(options: SinkOptions, schema: StructType, overwrite: bool) -> None:
    """Raises InvalidValueError when rows of ``schema`` cannot be written."""
    if overwrite:
        raise InvalidValueError(
            "a topic cannot be overwritten: use .mode('append'), in streams .outputMode('update') or 'append'"
        )
    check_columns({field.name: field.dataType.simpleString() for field in schema.fields}, options.topic)


class BatchSink(DataSourceArrowWriter):
    """For ``df.write``."""

    task_sink: ClassVar[type[TaskSink]] = TaskSink

    def __init__(self, options: SinkOptions) -> None:
        if options.once and options.app is None:
            raise InvalidValueError(
                "option 'delivery' is effectively-once: a batch write needs 'txnAppId' and 'txnVersion' for that, "
                "which say what is the same write when it is repeated"
            )
        self._options = options

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        """One task's rows."""
        numbering = None
        if self._options.app is not None and self._options.once is not False:
            context = TaskContext.get()
            assert context is not None, "Spark calls this in a task"
            application, version = self._options.app
            numbering = Numbering(f"spark.{application}.{context.partitionId()}", version)
        return Written(self.task_sink(self._options, numbering).run(iterator))

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Nothing: what a task has sent is there."""

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Nothing: a topic takes nothing back."""


class StreamSink(DataSourceStreamArrowWriter):
    """For ``df.writeStream``."""

    task_sink: ClassVar[type[TaskSink]] = TaskSink

    def __init__(self, options: SinkOptions) -> None:
        if options.app is not None:
            raise InvalidValueError("option 'txnAppId' has no meaning for a stream, whose checkpoint has an id")
        self._options = options

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        """One task's rows of one micro-batch."""
        return Written(self.task_sink(self._options, self._numbering()).run(iterator))

    def _numbering(self) -> Numbering | None:
        if self._options.once is False:
            return None
        context = TaskContext.get()
        query = context.getLocalProperty(_QUERY_ID) if context is not None else None
        batch = context.getLocalProperty(_BATCH_ID) if context is not None else None
        if context is None or query is None or batch is None:
            raise InvalidValueError(
                "this Spark does not tell a task its query and micro-batch, without which rows cannot be numbered; "
                "use Spark 4.3, or the option delivery=at-least-once"
            )
        return Numbering(f"spark.{query}.{context.partitionId()}", int(batch))

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        """Nothing: what a task has sent is there."""

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        """Nothing: a topic takes nothing back."""
