"""A micro-batch as a sink makes it: files of tasks, then a change for the driver to commit."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]  # publishes no types

from magnetar.lakehouse.files.file_store import FileStore
from magnetar.lakehouse.files.file_writer import FileWriter
from magnetar.lakehouse.formats.table import TableChange
from magnetar.lakehouse.model.history import Note
from magnetar.lakehouse.model.layout import layout_of
from magnetar.lakehouse.model.options import LakeOptions, TableKind, lake_options
from magnetar.lakehouse.model.table_schema import plain_schema

QUERY = "query-1"


def options_of(kind: TableKind, directory: Path, **given: str) -> LakeOptions:
    """Return the options of table ``t`` in ``directory``."""
    return lake_options(kind, {"path": str(directory / "t"), **given})


def batch_of(ids: Sequence[int], **more: Any) -> pa.RecordBatch:
    """Rows with an id, a country (two, and none) and a time (an hour apart); ``more`` are further columns."""
    columns = {
        "id": pa.array(ids, pa.int64()),
        "country": pa.array([("NL", "a/b %", None)[i % 3] for i in ids], pa.string()),
        "at": pa.array(
            [dt.datetime(2013, 1, 1, tzinfo=dt.UTC) + dt.timedelta(hours=i) for i in ids], pa.timestamp("us", "UTC")
        ),
        **more,
    }
    return pa.RecordBatch.from_pydict(columns)


def change_of(
    options: LakeOptions,
    batch: pa.RecordBatch,
    number: int | None,
    *,
    query: str | None = QUERY,
    positions: dict[str, str] | None = None,
    overwrite: bool = False,
) -> TableChange:
    """What two tasks have written, half of the rows each."""
    half = batch.num_rows // 2
    files = []
    for task, rows in enumerate((batch.slice(0, half), batch.slice(half))):
        writer = FileWriter(
            FileStore(options.path, {}), layout_of(options, query, number), f"part-{number or 0:08}-{task:05}"
        )
        files += writer.run([rows] if rows.num_rows else [])
    note = Note(query, number, positions, None, batch.num_rows)
    return TableChange(files, plain_schema(batch.schema), note, overwrite)


def ids_of(table: pa.Table) -> list[int]:
    """Sorted."""
    return sorted(table.column("id").to_pylist())
