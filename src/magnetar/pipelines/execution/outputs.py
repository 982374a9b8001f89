"""Writes one micro-batch's rows, which are stored in files already, to their sinks; repetitions have no effect.

What is written is named by application (query id and sink) and version (micro-batch). A topic's rows are sent as a
batch write of these (`spark.sink.writers`): read from the same files, they are the same rows in the same order. Tables
keep application and version in their commits (`lakehouse.sink`).
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from magnetar.lakehouse.files.file_store import local_path
from magnetar.lakehouse.formats.kinds import open_table
from magnetar.lakehouse.formats.table import check_repetition
from magnetar.lakehouse.model.history import Note
from magnetar.lakehouse.model.library_reason import reason_of
from magnetar.lakehouse.model.options import LakeOptions, TableKind, lake_options
from magnetar.model.errors import InvalidValueError
from magnetar.pipelines.declaration.elements import VERIFY_KEY
from magnetar.pipelines.declaration.model import Pipeline, PlainSink, Sink, TableSink, TopicSink
from magnetar.pipelines.declaration.secrets import resolve, resolved_options
from magnetar.pipelines.state.checkpoint import PipelineCheckpoint
from magnetar.pipelines.state.manifest import Manifest, ManifestError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_SHOWN: Final = 20


def application(query: str, output: str) -> str:
    """Return the ``txnAppId`` under which an output is written."""
    return f"{query}/{output}"


def table_options(sink: TableSink) -> LakeOptions:
    """Return the options of a table with references resolved. InvalidValueError if its place is not absolute then."""
    path = resolve(sink.path)
    if local_path(path) is not None and not path.startswith("file:") and not os.path.isabs(path):
        raise InvalidValueError(
            f"{sink.where}: sinks.{sink.name}.path: {sink.path} is {path!r}, a relative path, which would be another "
            "place wherever the pipeline runs; let the reference give an absolute one"
        )
    options = {name: resolve(text) for name, text in sink.options.items()}
    return lake_options(TableKind(sink.format), {**options, "path": path})


def is_missing(path: str) -> bool:
    """Return whether a directory of this machine is not there; opening a table might make it."""
    directory = local_path(path)
    return directory is not None and not Path(directory).is_dir()


def check_places(pipeline: Pipeline, checkpoint: PipelineCheckpoint) -> None:
    """Refuse to go on where a table has nothing of what was written to it. Raises InvalidValueError.

    It was moved, or the file names another place now, perhaps since relative paths began in the directory that a
    command ran in: going on would split the rows into two tables.
    """
    query = checkpoint.query_id()
    for sink in pipeline.sinks:
        if query is None or not isinstance(sink, TableSink) or (last := _last_written(checkpoint, sink)) is None:
            continue
        options = table_options(sink)
        try:
            if is_missing(options.path):
                found = "there is nothing"
            elif open_table(options).committed(application(query, sink.name)) is None:
                found = "nothing is of this pipeline"
            else:
                continue
        except Exception as error:
            # A library may raise anything for a damaged table.
            found = f"the table cannot be read ({reason_of(error)})"
        raise InvalidValueError(
            f"{sink.where}: sinks.{sink.name}.path: micro-batch {last.batch} was written to "
            f"{last.outputs[sink.name].target}, and at {options.path} {found}. Going on would begin a second table: "
            "name the place of the first one, or move it here, or give the pipeline a new checkpoint"
        )


def _last_written(checkpoint: PipelineCheckpoint, sink: TableSink) -> Manifest | None:
    """Return the last manifest with rows for a sink."""
    for batch in reversed(checkpoint.manifest_numbers()):
        # What is wrong with a manifest is for `verify` to say.
        with contextlib.suppress(ManifestError):
            found = checkpoint.manifest(batch)
            if found is not None and (output := found.outputs.get(sink.name)) is not None and output.rows:
                return found
    return None


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
    checked = table_options(sink)
    # A write of an older version would be left out, as what the table has.
    check_repetition(open_table(checked), f"sink {sink.name}: {checked.path}", Note(app, batch))
    identity = {"txnAppId": app, "txnVersion": str(batch)}
    rows.write.format(f"magnetar-{sink.format}").options(**options, **identity).mode("append").save(checked.path)
