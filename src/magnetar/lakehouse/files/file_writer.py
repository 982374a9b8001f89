"""Writes a task's rows to Parquet files: one open per partition, zstd, cut by size; the driver commits them.

Rows are collected until they make a row group, so that a file holds few large ones, which readers prefer. A file's
name holds its transaction, its task and a random part: no attempt overwrites the files of another. Which files are
committed is in the table's log, not in their names.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from typing import Any, Final

import pyarrow as pa  # type: ignore[import-untyped]  # publishes no types
import pyarrow.parquet as pq  # type: ignore[import-untyped]  # publishes no types

from magnetar.lakehouse.files.file_store import FileOutput, FileStore
from magnetar.lakehouse.files.statistics import statistics
from magnetar.lakehouse.model.data_file import DataFile
from magnetar.lakehouse.model.layout import Layout
from magnetar.lakehouse.model.partition import Values, directory, split

_OPEN: Final = 64
"""Partitions that have an open file at a time; the least recently written one is closed for another."""
_GROUP_BYTES: Final = 64 << 20


class FileWriter:
    """Writes the files of one task attempt. Not thread-safe."""

    def __init__(self, store: FileStore, layout: Layout, name: str) -> None:
        self._store = store
        self._layout = layout
        self._name = f"{name}-{uuid.uuid4().hex[:12]}"
        self._open: dict[Values, _Part] = {}
        self._files: list[DataFile] = []
        self._begun = 0

    def run(self, batches: Iterable[pa.RecordBatch]) -> list[DataFile]:
        """Write all rows to files. If this fails, what was written is deleted: no one else knows of it."""
        try:
            for batch in batches:
                self.write(batch)
            return self.close()
        except BaseException:
            self._discard()
            raise

    def write(self, batch: pa.RecordBatch) -> None:
        for values, rows in split(plain(batch), self._layout.partitioning):
            # Taken out and put in again: the first is then always the least recently used one.
            part = self._open.pop(values, None) or _Part()
            self._open[values] = part
            part.add(rows)
            if part.rows >= self._layout.row_group_rows or part.bytes >= _GROUP_BYTES:
                self._flush(values, part)
                if part.output is not None and part.output.tell() >= self._layout.target_file_bytes:
                    self._finish(values)
            if len(self._open) > _OPEN:
                self._finish(next(iter(self._open)))

    def close(self) -> list[DataFile]:
        """Close all files, which are stored when this returns."""
        for values in list(self._open):
            self._finish(values)
        return self._files

    def _flush(self, values: Values, part: _Part) -> None:
        if not part.batches:
            return
        table = pa.Table.from_batches(part.batches)
        if not self._layout.keep_columns and self._layout.partitioning:
            table = table.drop_columns([field.column for field in self._layout.partitioning])
        if part.writer is None:
            place = directory(self._layout.partitioning, values, part.batches[0].schema)
            part.path = f"{self._layout.prefix}{place}{self._name}-{self._begun:05}{self._layout.suffix}"
            self._begun += 1
            part.output = self._store.writer(part.path)
            part.writer = pq.ParquetWriter(
                part.output,
                table.schema,
                compression="zstd",
                compression_level=self._layout.compression_level,
                use_dictionary=_repeating(table),
                metadata_collector=part.metadata,
            )
        part.writer.write_table(table, row_group_size=max(table.num_rows, 1))
        part.file_rows += table.num_rows
        part.empty()

    def _finish(self, values: Values) -> None:
        part = self._open[values]
        self._flush(values, part)
        del self._open[values]
        if part.writer is None or part.output is None:
            return
        schema = part.writer.schema
        part.writer.close()
        part.output.close()
        stats = statistics(part.metadata[0], schema)
        self._files.append(DataFile(part.path, part.output.tell(), part.file_rows, values, stats))

    def _discard(self) -> None:
        for part in self._open.values():
            if part.writer is not None and part.output is not None:
                part.writer.close()
                part.output.close()
                self._store.delete(part.path)
        for file in self._files:
            self._store.delete(file.path)


class _Part:
    """One partition: the rows collected for it, and its open file."""

    def __init__(self) -> None:
        self.batches: list[pa.RecordBatch] = []
        self.rows = 0
        self.bytes = 0
        self.writer: Any = None
        self.output: FileOutput | None = None
        self.path = ""
        self.file_rows = 0
        self.metadata: list[pq.FileMetaData] = []

    def add(self, batch: pa.RecordBatch) -> None:
        self.batches.append(batch)
        self.rows += batch.num_rows
        self.bytes += batch.get_total_buffer_size()

    def empty(self) -> None:
        self.batches = []
        self.rows = self.bytes = 0


def plain(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return a batch without Spark's metadata and with nullable columns: tables here declare no column non-null."""
    fields = [pa.field(field.name, field.type) for field in batch.schema]
    return pa.RecordBatch.from_arrays(batch.columns, schema=pa.schema(fields))


def _repeating(table: pa.Table) -> list[str]:
    """Return the columns for which a dictionary pays: those whose first values repeat. A useless one costs a third."""
    names = []
    for field in table.schema:
        column = table.column(field.name).slice(0, 1000)
        if pa.types.is_nested(field.type):
            continue
        sample = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
        if len(sample.unique()) <= len(sample) // 2:
            names.append(field.name)
    return names
