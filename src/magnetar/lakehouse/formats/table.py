"""What every kind of table can do, and what a sink hands it to commit.

A commit is one transaction: all files of a micro-batch or none, with the note that says whose it is. `committed` is the
promise that makes a stream exactly once: a transaction (query, micro-batch) that the table has is never committed
again, whether the same driver, its successor or a forgotten twin tries.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Final, NamedTuple, Protocol

import pyarrow as pa  # type: ignore[import-untyped]  # publishes no types

from magnetar.lakehouse.files.file_reader import FileReader
from magnetar.lakehouse.model.data_file import DataFile
from magnetar.lakehouse.model.history import Commit, Note
from magnetar.lakehouse.model.lineage import FileCommit
from magnetar.lakehouse.model.options import LakeOptions
from magnetar.model.errors import ConflictError, InvalidValueError

_PAUSE: Final = 0.05


class TableChange(NamedTuple):
    files: list[DataFile]
    schema: pa.Schema
    """The query's, with partition columns; as `table_schema.plain_schema` gives it."""
    note: Note
    overwrite: bool = False
    """In place of everything that is there."""


class FileCompaction(NamedTuple):
    version: int | None
    """None: there was nothing to do."""
    removed: int
    added: int
    """Files."""


class TooManyConflictsError(ConflictError):
    """Other writers were first each time."""


def too_many_conflicts(where: str, tries: int, cause: object = None) -> TooManyConflictsError:
    """Says what to do."""
    because = "" if cause is None else f" ({cause})"
    return TooManyConflictsError(
        f"{where}: other writers committed first {tries} times{because}; raise option commitRetries, or let fewer "
        "queries write the table"
    )


def tries(options: LakeOptions) -> Iterator[int]:
    """Numbers of attempts at a commit, with a pause that grows before each but the first."""
    for attempt in range(options.commit_retries + 1):
        time.sleep(min(attempt * _PAUSE, 1.0))
        yield attempt


class Table(Protocol):
    """Opened for use by one thread; says at each call what is true then, not when it was opened."""

    def exists(self) -> bool:
        """Somebody has committed to it."""

    def schema(self) -> pa.Schema | None:
        """None before the first commit."""

    def check(self, schema: pa.Schema) -> None:
        """Raises IncompatibleSchemaError or InvalidValueError when rows of ``schema`` could not be committed."""

    def committed(self, app: str) -> int | None:
        """The last transaction of ``app`` that the table has."""

    def commit(self, change: TableChange) -> int | None:
        """The new version; None if the table has this transaction, or there is nothing to commit."""

    def history(self) -> list[Commit]:
        """Oldest first."""

    def file_log(self) -> list[FileCommit]:
        """What each version did to the files, oldest first. InvalidValueError if single rows were taken away."""

    def reader(self) -> FileReader:
        """For single files of the log, on any machine; NotFoundError if there is no table."""

    def read(self, version: int | None = None) -> pa.Table:
        """All rows, of the last version or of an earlier one."""

    def compact(self) -> FileCompaction:
        """Small files of a partition become one; rows and their number stay. Beside running writers."""

    def vacuum(self, hours: float, *, dry: bool = False) -> list[str]:
        """Delete files that no version younger than ``hours`` has, and those of failed attempts; which they are."""


def check_repetition(table: Table, where: str, note: Note) -> None:
    """For a transaction that the table has, or a later one of its query: InvalidValueError if it is no repetition.

    Spark repeats the last micro-batch only, with the range it had. One with a later one behind it, or with another
    range, is new, however it is numbered: somebody has put an old checkpoint back. Leaving it out would lose rows.
    """
    if note.app is None or note.batch is None:
        return
    last = table.committed(note.app)
    if last is None or last < note.batch:
        return
    if last > note.batch:
        what = f"has micro-batches of this query up to {last}, and this is {note.batch}"
    else:
        known = next((one for one in reversed(table.history()) if (one.app, one.batch) == note[:2]), None)
        if known is None or None in (known.positions, note.positions) or known.positions == note.positions:
            return
        what = f"has micro-batch {last} of this query, and this one of that number ends elsewhere in its topics"
    raise InvalidValueError(
        f"{where} {what}: its checkpoint was set back, or another driver runs the same query. Nothing was written; use "
        "a new checkpoint with startingOffsets from the table (magnetar lake positions), or end the other driver"
    )
