"""A table, used without Spark: its history, its topic positions, its rows, and its upkeep.

lake = open_lake("/lake/flights")
lake.history()[-1].version
spark.read.format("pulsar").options(startingOffsets=lake.offsets(3), endingOffsets=lake.offsets(7), ...)
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from magnetar.client.read_position import ReadPosition
from magnetar.lakehouse.files.file_store import FileStore, local_path
from magnetar.lakehouse.formats.kinds import open_table
from magnetar.lakehouse.formats.table import FileCompaction, Table
from magnetar.lakehouse.model.history import Commit, Positions, as_text, newest, positions_at, version_holding
from magnetar.lakehouse.model.lineage import live_files
from magnetar.lakehouse.model.options import TableKind, lake_options
from magnetar.model.errors import InvalidValueError, NotFoundError

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped]  # publishes no types

WEEK: Final = 168.0
"""How long files of earlier versions and of attempts under way are kept unless said otherwise, hours."""
_SIGNS: Final = {TableKind.PARQUET: "_magnetar_log", TableKind.DELTA: "_delta_log", TableKind.ICEBERG: "metadata"}


class TableVerification(NamedTuple):
    """What `Lake.verify` found."""

    files: int
    """Files that the newest version names."""
    rows: int
    """Rows that were read."""
    wrong: dict[str, str]
    """What is wrong, by path."""
    elsewhere: list[str]
    """Files that are not below the table, and were not read."""


class Lake:
    """One table. Every call reads what is committed by then. Not thread-safe."""

    def __init__(self, path: str, kind: TableKind, table: Table) -> None:
        self.path = path
        self.kind = kind
        self.table = table

    def history(self) -> list[Commit]:
        """Return all commits, oldest first; NotFoundError if there is no such table."""
        self._require()
        return self.table.history()

    def read(self, version: int | None = None, at: str | None = None) -> pa.Table:
        """Return all rows as an Arrow table: of the last version, of another, or of that at a time (ms or ISO 8601)."""
        if version is None and at is None:
            return self.table.read()
        return self.table.read(newest(self.history(), version, at))

    def positions(self, version: int | None = None, at: str | None = None, query: str | None = None) -> Positions:
        """Return how far the topics were read: by topic-partition, the place of the first message that is not in the
        table.

        Raises InvalidValueError if no stream of topics has committed by then, or several that read the same one.
        """
        commits = self.history()
        return positions_at(commits, newest(commits, version, at), query)

    def offsets(self, version: int | None = None, at: str | None = None, query: str | None = None) -> str:
        """Return `positions` as the JSON that the options startingOffsets and endingOffsets of format("pulsar")
        take."""
        return as_text(self.positions(version, at, query))

    def version_holding(self, topic: str, place: str, query: str | None = None) -> int | None:
        """Return the first version with the message at ``place`` (``ledger:entry[:batch]``) of a topic-partition, or
        None."""
        return version_holding(self.history(), topic, ReadPosition.parse(place), query)

    def verify(self) -> TableVerification:
        """Read every file that the newest version names, and check that it is there with its length and its rows.

        The content of rows is not compared with anything; `magnetar pipeline verify` does that for its tables.
        """
        self._require()
        reader, files = self.table.reader(), live_files(self.table.file_log())
        wrong, rows = reader.differing(files), 0
        elsewhere = [file.path for file in files if not file.places]
        for file in files:
            if file.path in wrong or not file.places:
                continue
            try:
                count = len(reader.read(file))
            except Exception as error:
                # Any damage at all; the other files are read nevertheless.
                wrong[file.path] = f"cannot be read: {str(error).partition(chr(10))[0]}"
                continue
            rows += count
            if file.rows not in (None, count):
                wrong[file.path] = f"has {count:,} rows, and the table's log says {file.rows:,}"
        return TableVerification(len(files), rows, wrong, elsewhere)

    def compact(self) -> FileCompaction:
        """Merge small files into large ones; streams may run meanwhile. NotFoundError if there is no such table."""
        self._require()
        return self.table.compact()

    def vacuum(self, hours: float = WEEK, *, dry: bool = False) -> list[str]:
        """Remove files that no version of the last ``hours`` needs; ``hours`` must cover the longest micro-batch."""
        if not hours >= 0:
            raise InvalidValueError(f"files of {hours} hours cannot be kept; give a number from 0 on")
        self._require()
        return self.table.vacuum(hours, dry=dry)

    def _require(self) -> None:
        if not self.table.exists():
            raise NotFoundError(f"{self.path}: there is no {self.kind.value} table")


def open_lake(path: str, kind: str | None = None, options: Mapping[str, str] | None = None) -> Lake:
    """Open a table by its path and its sink's options; ``kind`` (parquet, delta, iceberg) is detected if not given."""
    given = {key.lower(): value for key, value in (options or {}).items()}
    chosen = _found(path, given) if kind is None else _named(kind)
    if chosen is not TableKind.ICEBERG or not any(key.startswith("catalog.") for key in given):
        # a catalog of its own may say where an Iceberg table lies
        _require_directory(path)
    checked = lake_options(chosen, {**given, "path": path})
    return Lake(checked.path, chosen, open_table(checked))


def _require_directory(path: str) -> None:
    """Raise NotFoundError for a directory that is not there, before one is made; OSError if nobody may look."""
    directory = local_path(path)
    if directory is None:
        return
    try:
        there = stat.S_ISDIR(os.stat(directory).st_mode)
    except (FileNotFoundError, NotADirectoryError):
        there = False
    if not there:
        raise NotFoundError(f"{path}: there is no such directory")


def _named(kind: str) -> TableKind:
    try:
        return TableKind(kind.lower())
    except ValueError:
        raise InvalidValueError(f"{kind!r} is no kind of table; it can be parquet, delta or iceberg") from None


def _found(path: str, given: Mapping[str, str]) -> TableKind:
    if given.get("table"):
        return TableKind.ICEBERG
    _require_directory(path)
    storage = {key.removeprefix("storage."): value for key, value in given.items() if key.startswith("storage.")}
    store = FileStore(path, storage)
    for kind, sign in _SIGNS.items():
        if next(store.list(sign), None) is not None:
            return kind
    raise NotFoundError(f"{path}: there is no table of magnetar, Delta or Iceberg")
