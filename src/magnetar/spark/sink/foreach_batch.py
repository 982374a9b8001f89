"""Effectively once after a shuffle: a micro-batch is stored as files first, and sent from the files.

What a shuffle brings into a task, and in which order, may differ when Spark repeats a micro-batch, so its rows cannot
be numbered as they come. Files that are written once and then read give the same rows every time. So for micro-batch n:

1. unless ``directory/<query id>/n`` is complete, write the result there (Parquet), replacing what an earlier
   attempt left. Spark's marker of success says that all was written; in a local directory all is made durable then,
   and a marker of ours says so (`durability`);
2. send the files as a batch write of application "query id" and version n (`writers`);
3. remove ``directory/<query id>/n-1``: Spark never repeats a micro-batch once the next one has begun.

    query = result.writeStream.foreachBatch(staged("/data/stage", {"service.url": ..., "topic": ...})).start()

The directory must be on storage that all executors reach. Queries may share it: with a new checkpoint a query has a new
id, and never takes for its own what another one has left there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from magnetar.model.errors import InvalidValueError
from magnetar.spark.durable_files import make_directory, sync, sync_tree, write_whole
from magnetar.spark.options.sink_options import sink_options

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_QUERY_ID: Final = "sql.streaming.queryId"
_SPARKS: Final = "_SUCCESS"
_OURS: Final = "_DURABLE"
"""Readers of Parquet pass over names that begin so."""
SPLIT: Final = {
    "spark.sql.files.maxPartitionBytes": "128MB",
    "spark.sql.files.openCostInBytes": "4MB",
    "spark.sql.files.minPartitionNum": "1",
    "spark.sql.files.maxPartitionNum": "2147483647",
}
"""Stored files are given to tasks by these alone: not by the number of cores that there happen to be, nor by settings
that a user may change between a crash and the next start."""
WHOLE: Final = {"ignoreMissingFiles": "false", "ignoreCorruptFiles": "false"}
"""Options of reading stored files: one that is gone is an error, whatever the session says of other files."""


def staged(directory: str, options: Mapping[str, str]) -> Callable[[DataFrame, int], None]:
    """Return what to give to ``foreachBatch``; ``options`` are those of the sink, checked now."""
    given = {**options, "delivery": "effectively-once"}
    sink_options(given)

    def send(result: DataFrame, batch_id: int) -> None:
        spark = result.sparkSession
        query = query_of(result)
        own = f"{directory.rstrip('/')}/{query}"
        path = f"{own}/{batch_id}"
        local = _local(spark, path)
        if not _exists(spark, f"{path}/{_SPARKS if local is None else _OURS}"):
            if local is not None:
                make_directory(local.parent)
            result.write.mode("overwrite").parquet(path)
            if local is not None:
                make_durable(local)
        else:
            # Its rows are there, but state and watermark of the query must come along: Spark looks for that, too.
            result.write.format("noop").mode("append").save()
        for key, value in SPLIT.items():
            spark.conf.set(key, value)
        files = spark.read.options(**WHOLE).schema(result.schema).parquet(path)
        identity = {"txnAppId": query, "txnVersion": str(batch_id)}
        files.write.format("pulsar").options(**given, **identity).mode("append").save()
        _remove(spark, f"{own}/{batch_id - 1}")

    return send


def query_of(result: DataFrame) -> str:
    """Return the id of the query whose micro-batch this is."""
    query = result.sparkSession.sparkContext.getLocalProperty(_QUERY_ID)
    if not query:
        raise InvalidValueError("this is for foreachBatch of a streaming query; there is no query here")
    return query


def make_durable(directory: Path) -> None:
    """Make durable what Spark has written, and then the marker that it is."""
    sync_tree(directory)
    sync(directory.parent)
    write_whole(directory / _OURS, "")


def _local(spark: SparkSession, path: str) -> Path | None:
    """Return the directory, if it is a local one and not a store that other machines keep durable."""
    position = spark._jvm.org.apache.hadoop.fs.Path(path)  # type: ignore[union-attr]  # there is a JVM in a driver
    uri = position.getFileSystem(spark._jsc.hadoopConfiguration()).makeQualified(position).toUri()
    return Path(uri.getPath()) if uri.getScheme() == "file" else None


def _exists(spark: SparkSession, path: str) -> bool:
    position = spark._jvm.org.apache.hadoop.fs.Path(path)  # type: ignore[union-attr]  # there is a JVM in a driver
    return bool(position.getFileSystem(spark._jsc.hadoopConfiguration()).exists(position))


def _remove(spark: SparkSession, path: str) -> None:
    position = spark._jvm.org.apache.hadoop.fs.Path(path)  # type: ignore[union-attr]  # the same
    position.getFileSystem(spark._jsc.hadoopConfiguration()).delete(position, True)
