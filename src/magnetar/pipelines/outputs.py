"""Sinks: one micro-batch's rows, stored in files already, to where they belong; once, however often it is done.

What is written is named by application (query id and sink) and version (micro-batch). A topic's rows are sent as a
batch write of these (`spark.writer`): read from the same files, they are the same rows in the same order. Parquet gets
a directory per micro-batch. Delta and Iceberg keep application and version in the commit.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from magnetar.model.errors import InvalidValueError
from magnetar.pipelines.model import Pipeline, PlainSink, Sink, TableSink, TopicSink
from magnetar.pipelines.secrets import resolve

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

BATCH_COLUMN: Final = "pipeline_batch"
_SHOWN: Final = 20


def application(query: str, output: str) -> str:
    """Who writes: ``txnAppId``."""
    return f"{query}/{output}"


def write(pipeline: Pipeline, sink: Sink, rows: DataFrame, query: str, batch: int) -> None:
    """``rows`` come from files that are not written again."""
    app = application(query, sink.name)
    if isinstance(sink, TopicSink):
        to_topic(pipeline, sink.topic, rows, app, batch, dict(sink.options))
    elif isinstance(sink, TableSink):
        _to_table(sink, rows, app, batch)
    else:
        assert isinstance(sink, PlainSink), "there is no other"
        if sink.format == "console":
            rows.show(_SHOWN, truncate=False)


def to_topic(
    pipeline: Pipeline, topic: str, rows: DataFrame, app: str, batch: int, options: dict[str, str] | None = None
) -> None:
    """Effectively once."""
    given = {name: resolve(text) for name, text in {**pipeline.broker(), **(options or {})}.items()}
    given |= {"topic": topic, "delivery": "effectively-once", "txnAppId": app, "txnVersion": str(batch)}
    rows.write.format("pulsar").options(**given).mode("append").save()


def _to_table(sink: TableSink, rows: DataFrame, app: str, batch: int) -> None:
    options = {name: resolve(text) for name, text in sink.options.items()}
    if sink.format == "parquet":
        path = f"{sink.path.rstrip('/')}/{BATCH_COLUMN}={batch}"
        rows.write.options(**options).mode("overwrite").parquet(path)
        return
    if sink.format == "delta":
        _to_delta(sink, rows, app, batch, options)
        return
    raise InvalidValueError(f"{sink.where}: sinks.{sink.name}: format {sink.format} is not built here yet; use delta")


def _to_delta(sink: TableSink, rows: DataFrame, app: str, batch: int, options: dict[str, str]) -> None:
    from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake

    if DeltaTable.is_deltatable(sink.path, options):
        done = DeltaTable(sink.path, storage_options=options).transaction_version(app)
        if done is not None and done >= batch:
            return
    arrow: Any = rows.toArrow()
    # The table says which micro-batch a version is, and so does each version for time travel.
    properties = CommitProperties(
        custom_metadata={"pipeline": json.dumps({"application": app, "batch": batch})},
        app_transactions=[Transaction(app, batch)],
    )
    write_deltalake(sink.path, arrow, mode="append", storage_options=options, commit_properties=properties)


def parquet_batches(sink: TableSink) -> dict[int, Path]:
    """Directories of micro-batches that a Parquet sink has."""
    root = Path(sink.path)
    found = {}
    for path in root.glob(f"{BATCH_COLUMN}=*") if root.is_dir() else ():
        number = path.name.partition("=")[2]
        if number.isdecimal():
            found[int(number)] = path
    return found
