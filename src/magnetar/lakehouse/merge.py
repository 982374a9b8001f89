"""Change capture: a topic of changes becomes a Delta table of the current rows, each micro-batch exactly once.

    changes = spark.readStream.format("pulsar").option("metadata", POSITION + ",__key")...load()
    rows = changes.select(col("__key").cast("string").alias("id"), from_json("value", ...).alias("v"), *POSITION...)
    rows.writeStream.foreachBatch(merged("/lake/customers", ["id"], deleted="v IS NULL")).start()

For each key the last change counts, by position in the topic (all changes of a key are in one partition, and
micro-batches come in order). It replaces the row of that key, or adds it, or removes it where ``deleted`` is true. The
merge is one transaction of delta-rs that names the query and the micro-batch, so a repeated micro-batch changes
nothing. The query is the id in its checkpoint: with a new checkpoint nothing counts as merged; one that was set back is
refused. Columns that begin with ``__`` are not stored. The last changes of a micro-batch go through the driver: bound
its size with maxMessagesPerTrigger.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from magnetar.lakehouse.model.history import Note
from magnetar.lakehouse.model.options import LakeOptions, TableKind, lake_options
from magnetar.lakehouse.query_checkpoint import QueryCheckpoint
from magnetar.model.errors import InvalidValueError

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped]  # publishes no types
    from pyspark.sql import DataFrame

POSITION: Final = ("__ledgerId", "__entryId", "__batchIndex")
"""Metadata columns of the source with a message's position in its partition."""
_QUERY_ID: Final = "sql.streaming.queryId"
_LAST: Final = "__last"


def merged(
    path: str,
    keys: Sequence[str],
    *,
    deleted: str = "false",
    order: Sequence[str] = POSITION,
    options: Mapping[str, str] | None = None,
    checkpoint: str | None = None,
) -> Callable[[DataFrame, int], None]:
    """Return a function for ``foreachBatch`` that merges each micro-batch into a Delta table.

    ``keys`` identify a row; ``deleted`` is an SQL condition over the frame's columns; ``order`` are columns by which
    the last change of a key is the one with the greatest values; ``options`` are those of ``format("magnetar-delta")``;
    with ``checkpoint`` (the query's) commits record how far the topics were read.
    """
    checked = lake_options(TableKind.DELTA, {**(options or {}), "path": path})
    if not keys:
        raise InvalidValueError("merged(...) needs the columns that identify a row: keys=[...]")

    def merge(changes: DataFrame, batch_id: int) -> None:
        query = changes.sparkSession.sparkContext.getLocalProperty(_QUERY_ID)
        if not query:
            raise InvalidValueError("merged(...) is for foreachBatch of a streaming query; there is no query here")
        _check(changes.columns, keys, order)
        merge_once(checked, last_changes(changes, keys, deleted, order).toArrow(), keys, query, batch_id, checkpoint)

    return merge


def last_changes(changes: DataFrame, keys: Sequence[str], deleted: str, order: Sequence[str]) -> DataFrame:
    """Return one row per key, its last change: the columns to store and ``__deleted``."""
    from pyspark.sql import functions as F

    stored = [name for name in changes.columns if not name.startswith("__")]
    row = F.struct(*[_quoted(name) for name in stored], F.expr(deleted).alias("__deleted"))
    last = F.max_by(row, F.struct(*[_quoted(name) for name in order])).alias(_LAST)
    grouped = changes.groupBy(*[F.col(_quoted(name)).alias(f"__key{index}") for index, name in enumerate(keys)])
    return grouped.agg(last).select(f"{_LAST}.*")


def merge_once(
    options: LakeOptions, changes: pa.Table, keys: Sequence[str], query: str, batch: int, checkpoint: str | None = None
) -> int | None:
    """Merge rows with a column ``__deleted`` as transaction (query, batch); return the version, None if it was
    there."""
    from magnetar.lakehouse.formats.delta_merge import merge

    for key in keys:
        if changes.column(key).null_count:
            raise InvalidValueError(
                f"micro-batch {batch}: {changes.column(key).null_count} changes have no {key!r}, which identifies a "
                "row; filter them out before, or choose another key"
            )
    positions = since = None
    if checkpoint is not None:
        directory = QueryCheckpoint(checkpoint, options.storage)
        positions, since = directory.positions(batch), directory.positions(batch - 1)
    return merge(options, changes, keys, Note(query, batch, positions, since, changes.num_rows))


def _check(columns: Sequence[str], keys: Sequence[str], order: Sequence[str]) -> None:
    for name in keys:
        if name not in columns or name.startswith("__"):
            raise InvalidValueError(
                f"key {name!r} is no column that is stored; they are "
                f"{', '.join(column for column in columns if not column.startswith('__'))}"
            )
    missing = [name for name in order if name not in columns]
    if missing:
        raise InvalidValueError(
            f"which change of a key is the last cannot be known without {', '.join(missing)}: ask the source for them "
            "(option metadata) and select them too, or name other columns with order=[...]"
        )


def _quoted(name: str) -> Any:
    return "`" + name.replace("`", "``") + "`"
