"""``format("magnetar-parquet")``, ``format("magnetar-delta")``, ``format("magnetar-iceberg")``: Spark's data sources.

    from magnetar.lakehouse import register
    register(spark)
    query = rows.writeStream.format("magnetar-delta").option("checkpointLocation", c).start("/lake/flights")

A task writes files and reports them to the driver, which commits them as one transaction. A stream's transaction is
its query's id and the micro-batch: the tasks find both in their local properties and pass the query on, because Spark
gives the committing side neither it nor the positions of the topics (`query_checkpoint` has them). A batch write's
transaction is named by the options ``txnAppId`` and ``txnVersion``; without them it is committed whole, and again if
repeated.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Final

from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)

from magnetar.lakehouse.files.file_store import FileStore
from magnetar.lakehouse.files.file_writer import FileWriter
from magnetar.lakehouse.model.data_file import DataFile
from magnetar.lakehouse.model.layout import layout_of
from magnetar.lakehouse.model.options import LakeOptions, TableKind, lake_options
from magnetar.model.errors import InvalidValueError
from magnetar.spark.data_source import is_here
from magnetar.spark.interpreter import settle
from magnetar.spark.option_guard import FormatChecks, guard

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped]  # publishes no types
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

_QUERY_ID: Final = "sql.streaming.queryId"
_BATCH_ID: Final = "streaming.sql.batchId"


@dataclass
class TaskFiles(WriterCommitMessage):
    """The commit message of one task: the files it wrote."""

    files: list[DataFile]
    query: str | None = None


class LakeSource(DataSource):
    """The data source of one kind of table, for writing only; Spark makes one for every use."""

    kind: ClassVar[TableKind]

    @classmethod
    def name(cls) -> str:
        """Return the name for ``format(...)``."""
        return f"magnetar-{cls.kind.value}"

    def writer(self, schema: StructType, overwrite: bool) -> LakeBatchWriter:
        """Return the writer for ``df.write.mode("append")`` and ``"overwrite"``."""
        return LakeBatchWriter(lake_options(self.kind, self.options), schema, overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> LakeStreamWriter:
        """Return the writer for ``df.writeStream``; ``overwrite`` is the output mode complete."""
        # Spark asks twice per micro-batch, in two processes.
        settle("planner")
        return LakeStreamWriter(lake_options(self.kind, self.options), schema, overwrite)


class ParquetSource(LakeSource):
    kind = TableKind.PARQUET


class DeltaSource(LakeSource):
    kind = TableKind.DELTA


class IcebergSource(LakeSource):
    kind = TableKind.ICEBERG


class LakeBatchWriter(DataSourceArrowWriter):
    """The writer of a batch, for ``df.write``."""

    def __init__(self, options: LakeOptions, schema: StructType, overwrite: bool) -> None:
        self._options = options
        self._schema = schema
        self._overwrite = overwrite
        _checked(options, schema)

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        """Write one task's rows."""
        app, version = self._options.transaction or (None, None)
        return TaskFiles(_write(self._options, iterator, app, version))

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Commit all files of all tasks, or none."""
        from magnetar.lakehouse.commit import change_of_batch, commit

        commit(
            self._options, change_of_batch(self._options, arrow_schema(self._schema), _files(messages), self._overwrite)
        )

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Do nothing: files that are not committed are no part of a table, and vacuum removes them."""


class LakeStreamWriter(DataSourceStreamArrowWriter):
    """The writer of a stream, for ``df.writeStream``."""

    def __init__(self, options: LakeOptions, schema: StructType, overwrite: bool) -> None:
        if options.transaction is not None:
            raise InvalidValueError("option 'txnAppId' has no meaning for a stream, whose checkpoint has an id")
        self._options = options
        self._schema = schema
        self._overwrite = overwrite
        _checked(options, schema)

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        """Write one task's rows of one micro-batch."""
        context = TaskContext.get()
        query = context.getLocalProperty(_QUERY_ID) if context is not None else None
        batch = context.getLocalProperty(_BATCH_ID) if context is not None else None
        if query is None or batch is None:
            raise InvalidValueError(
                "this Spark does not tell a task its query and micro-batch, without which a table cannot tell what it "
                "has; use Spark 4.3"
            )
        return TaskFiles(_write(self._options, iterator, query, int(batch)), query)

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        """Commit all files of the micro-batch, or none; nothing if the table has it."""
        from magnetar.lakehouse.commit import change_of_stream, check_not_set_back, commit

        query = next((one.query for one in messages if isinstance(one, TaskFiles) and one.query is not None), None)
        schema = arrow_schema(self._schema)
        change = change_of_stream(self._options, schema, _files(messages), query, batchId, self._overwrite)
        if change is not None and commit(self._options, change) is None:
            check_not_set_back(self._options, change)

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        """Do nothing: a commit that failed may have happened, so its files stay until vacuum knows."""


def register(spark: SparkSession) -> None:
    """Make the three formats known to a session."""
    for source in (ParquetSource, DeltaSource, IcebergSource):
        if is_here(spark):
            check = partial(lake_options, source.kind)
            guard(source.name(), FormatChecks(write=check, write_stream=check))
        spark.dataSource.register(source)


def arrow_schema(schema: StructType) -> pa.Schema:
    """Return Spark's schema as the Arrow schema that tasks get, in a table's types."""
    from pyspark.sql.pandas.types import to_arrow_schema

    from magnetar.lakehouse.model.table_schema import plain_schema

    return plain_schema(to_arrow_schema(schema, timezone="UTC"))


def _checked(options: LakeOptions, schema: StructType) -> None:
    from magnetar.lakehouse.commit import check_once

    check_once(options, arrow_schema(schema))


def _write(options: LakeOptions, batches: Iterator[Any], app: str | None, version: int | None) -> list[DataFile]:
    context = TaskContext.get()
    task = 0 if context is None else context.partitionId()
    name = f"part-{0 if version is None else version:08}-{task:05}"
    writer = FileWriter(FileStore(options.path, options.storage), layout_of(options, app, version), name)
    files = writer.run(batches)
    settle("lakehouse")
    return files


def _files(messages: Sequence[WriterCommitMessage | None]) -> list[DataFile]:
    return [file for message in messages if isinstance(message, TaskFiles) for file in message.files]
