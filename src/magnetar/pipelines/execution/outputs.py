"""Writes one micro-batch's rows, which are stored in files already, to their sinks; repetitions have no effect.

What is written is named by application (query id and sink) and version (micro-batch). A topic's rows are sent as a
batch write of these (`spark.sink.writers`): read from the same files, they are the same rows in the same order. Tables
keep application and version in their commits (`lakehouse.sink`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from magnetar.lakehouse.formats.kinds import open_table
from magnetar.lakehouse.formats.table import check_repetition
from magnetar.lakehouse.model.history import Note
from magnetar.lakehouse.model.options import TableKind, lake_options
from magnetar.pipelines.declaration.elements import VERIFY_KEY
from magnetar.pipelines.declaration.model import Pipeline, PlainSink, Sink, TableSink, TopicSink
from magnetar.pipelines.declaration.secrets import resolve, resolved_options

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_SHOWN: Final = 20


def application(query: str, output: str) -> str:
    """Return the ``txnAppId`` under which an output is written."""
    return f"{query}/{output}"


def write(pipeline: Pipeline, sink: Sink, rows: DataFrame, query: str, batch: int) -> None:
    """Write ``rows``, which are read from files that do not change, to a sink."""
    app = application(query, sink.name)
    if isinstance(sink, TopicSink):
        options = {name: text for name, text in sink.options.items() if name != VERIFY_KEY}
        to_topic(pipeline, sink.topic, rows, app, batch, options)
    elif isinstance(sink, TableSink):
        _to_table(sink, rows, app, batch)
    else:
        assert isinstance(sink, PlainSink), "there is no other"
        if sink.format == "console":
            rows.show(_SHOWN, truncate=False)


def to_topic(
    pipeline: Pipeline, topic: str, rows: DataFrame, app: str, batch: int, options: dict[str, str] | None = None
) -> None:
    """Write rows to a topic, effectively once."""
    given = resolved_options({**pipeline.broker(), **(options or {})})
    given |= {"topic": topic, "delivery": "effectively-once", "txnAppId": app, "txnVersion": str(batch)}
    rows.write.format("pulsar").options(**given).mode("append").save()


def _to_table(sink: TableSink, rows: DataFrame, app: str, batch: int) -> None:
    """Write rows to a table, exactly once: its commit carries query and micro-batch."""
    options = {name: resolve(text) for name, text in sink.options.items()}
    checked = lake_options(TableKind(sink.format), {**options, "path": sink.path})
    # A write of an older version would be left out, as what the table has.
    check_repetition(open_table(checked), f"sink {sink.name}: {sink.path}", Note(app, batch))
    identity = {"txnAppId": app, "txnVersion": str(batch)}
    rows.write.format(f"magnetar-{sink.format}").options(**options, **identity).mode("append").save(sink.path)
