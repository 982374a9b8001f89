"""A Spark session that does a little of everything that magnetar's own sessions do, so that Java has its classes."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pyspark import SparkContext
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    DataSourceStreamArrowWriter,
    DataSourceStreamReader,
    InputPartition,
    WriterCommitMessage,
)

from magnetar.model.errors import ServiceNotReadyError
from magnetar.spark.session import BRIEF, JAVA_OPTIONS, end_session, local_session

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped]  # publishes no types
    from pyspark.sql import DataFrame

_JAVA_EXIT: Final = 600.0
"""Seconds: Java writes 190 MB at its end, on whatever machine this is."""
_ROWS: Final = 100


class _Rows(DataSourceReader, DataSourceStreamReader):
    """A hundred rows in each of two partitions, once."""

    def initialOffset(self) -> dict[str, int]:
        return {"at": 0}

    def latestOffset(self, *_: object) -> dict[str, int]:
        return {"at": 1}

    def partitions(self, *_: object) -> list[InputPartition]:
        return [InputPartition(number) for number in range(2)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        yield pa.record_batch(
            {"key": pa.array(["a", "b"] * (_ROWS // 2)), "value": pa.array([b"1"] * _ROWS, pa.binary())}
        )


def _taken(batches: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
    for _ in batches:
        pass
    return WriterCommitMessage()


class _Nowhere(DataSourceArrowWriter):
    """Takes all rows and keeps none."""

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        return _taken(iterator)


class _StreamNowhere(DataSourceStreamArrowWriter):
    """The same of a stream."""

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        return _taken(iterator)


class Rehearsed(DataSource):
    """A source and a sink in Python, whose classes in Java are those of ``format("pulsar")``."""

    @classmethod
    def name(cls) -> str:
        """Return what it is called in the session."""
        return "rehearsed"

    def schema(self) -> str:
        """Return the columns."""
        return "key string, value binary"

    def reader(self, schema: object) -> DataSourceReader:
        """Return the rows of a batch."""
        return _Rows()

    def streamReader(self, schema: object) -> DataSourceStreamReader:
        """Return the rows of a stream."""
        return _Rows()

    def writer(self, schema: object, overwrite: bool) -> DataSourceArrowWriter:
        """Return the sink of a batch."""
        return _Nowhere()

    def streamWriter(self, schema: object, overwrite: bool) -> DataSourceStreamArrowWriter:
        """Return the sink of a stream."""
        return _StreamNowhere()


def _stream(frame: DataFrame, directory: Path, sink: str, **options: Any) -> None:
    writer = frame.writeStream.format(sink).option("checkpointLocation", str(directory / f"{sink}-checkpoint"))
    query = writer.trigger(availableNow=True).start(**options)
    query.awaitTermination()


def rehearse(java_options: str) -> None:
    """Start a session with these options of Java, use it, and wait until Java has ended.

    Raises NotFoundError and ServiceNotReadyError about Java (`local_session`), the latter also if Java does not end
    by itself.
    """
    settings = {JAVA_OPTIONS: f"{BRIEF[JAVA_OPTIONS]} {java_options}"}
    spark = local_session("rehearsal", brief=True, settings=settings)
    try:
        spark.dataSource.register(Rehearsed)
        rows = spark.read.format("rehearsed").load()
        grouped = rows.selectExpr("key", "cast(value as string) text", "timestamp_seconds(1) at").groupBy("key").count()
        grouped.orderBy("count").toPandas()
        rows.selectExpr("from_json('{\"a\":1}', 'a long').a", "sum(length(value)) over (partition by key)").collect()
        rows.write.format("rehearsed").mode("append").save()
        rows.write.format("noop").mode("overwrite").save()
        with tempfile.TemporaryDirectory(prefix="magnetar-rehearsal-") as name:
            directory = Path(name)
            rows.write.parquet(str(directory / "rows"))
            spark.read.parquet(str(directory / "rows")).count()
            stream = spark.readStream.format("rehearsed").load()
            _stream(stream, directory, "rehearsed")
            _stream(stream, directory, "parquet", path=str(directory / "table"))
    finally:
        java = getattr(SparkContext._gateway, "proc", None)
        end_session(spark, patience=_JAVA_EXIT)
    if java is not None and java.returncode:
        raise ServiceNotReadyError(
            f"Java ended with {java.returncode}, so that what it wrote may be a part of an archive; with -9 it was "
            "killed, for want of memory perhaps"
        )
