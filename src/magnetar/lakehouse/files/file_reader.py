"""Reads single data files of a table, as its log names them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

import pyarrow as pa  # type: ignore[import-untyped]  # publishes no types

from magnetar.lakehouse.files.file_store import FileStore
from magnetar.lakehouse.model.lineage import LoggedFile
from magnetar.lakehouse.model.table_schema import aligned
from magnetar.model.errors import NotFoundError

_MOVES: Final = 3
"""How often all places of a file are tried; it may be moved meanwhile, in one direction."""


class FileReader(NamedTuple):
    """Reads data files of one table in the table's schema; it is pickled and sent to tasks."""

    path: str
    """Path of the table."""
    storage: dict[str, str]
    schema: pa.Schema
    """Schema of the table."""

    def read(self, file: LoggedFile) -> pa.Table:
        """Return all rows of a file in the table's schema.

        Raises NotFoundError; other errors are those of a file that is not Parquet.
        """
        store = FileStore(self.path, self.storage)
        for _ in range(_MOVES):
            for place in file.places:
                try:
                    rows = store.parquet(place)
                except FileNotFoundError:
                    continue
                for name, value in file.partition:
                    rows = rows.append_column(name, value.take(pa.array([0] * len(rows), pa.int64())))
                return aligned(rows, self.schema)
        raise NotFoundError(f"{self.path}: file {file.path} is gone")

    def differing(self, files: Iterable[LoggedFile]) -> dict[str, str]:
        """Return, by path, what is wrong with files that are not there or not as long as the log says."""
        store = FileStore(self.path, self.storage)
        sizes = {path: size for path, size, _ in store.list()}
        found = {}
        for file in files:
            there = [sizes[place] for place in file.places if place in sizes]
            if file.places and not there:
                found[file.path] = "is gone"
            elif there and there[0] != file.size:
                found[file.path] = f"has {there[0]:,} bytes, and the table's log says {file.size:,}"
        return found
