"""The interface of every kind of table, and what a sink passes to it to commit.

A commit is one transaction: all files of a micro-batch or none, with a note of its origin. `committed` is the
promise that makes a stream exactly once: a transaction (query, micro-batch) that the table has is never committed
again, whether by the same driver, its successor or a forgotten twin.
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
    """What one transaction changes."""

    files: list[DataFile]
    schema: pa.Schema
    """The query's schema, with partition columns, as `table_schema.plain_schema` gives it."""
    note: Note
    overwrite: bool = False
    """The files replace everything that is there."""


class FileCompaction(NamedTuple):
    """The result of merging small files."""

    version: int | None
    """The new version; None if there was nothing to do."""
    removed: int
    added: int
    """Numbers of files."""


class TooManyConflictsError(ConflictError):
    """Other writers committed first at every attempt."""


def too_many_conflicts(where: str, tries: int, cause: object = None) -> TooManyConflictsError:
    """Return the error with what to do about it."""
    because = "" if cause is None else f" ({cause})"
    return TooManyConflictsError(
        f"{where}: other writers committed first {tries} times{because}; raise option commitRetries, or let fewer "
        "queries write the table"
    )


def tries(options: LakeOptions) -> Iterator[int]:
    """Yield the numbers of attempts at a commit, with a growing pause before each but the first."""
    for attempt in range(options.commit_retries + 1):
        time.sleep(min(attempt * _PAUSE, 1.0))
        yield attempt


class Table(Protocol):
    """A table of any kind, opened for one thread. Every call reflects the table at that time, not when it was
    opened."""

    def exists(self) -> bool:
        """Return whether there is a commit."""

    def schema(self) -> pa.Schema | None:
        """Return the schema; None before the first commit."""

    def check(self, schema: pa.Schema) -> None:
        """Raise IncompatibleSchemaError or InvalidValueError if rows of ``schema`` could not be committed."""

    def committed(self, app: str) -> int | None:
        """Return the last transaction of ``app`` that the table has."""

    def commit(self, change: TableChange) -> int | None:
        """Commit and return the new version; None if the table has this transaction, or there is nothing to commit."""

    def history(self) -> list[Commit]:
        """Return all commits, oldest first."""

    def file_log(self) -> list[FileCommit]:
        """Return what each version did to the files, oldest first. InvalidValueError if single rows were deleted in
        place."""

    def reader(self) -> FileReader:
        """Return a reader for single files of the log, usable on any machine; NotFoundError if there is no table."""

    def read(self, version: int | None = None) -> pa.Table:
        """Return all rows, of the last version or of an earlier one."""

    def compact(self) -> FileCompaction:
        """Merge small files of a partition into one; rows stay the same. Safe beside running writers."""

    def vacuum(self, hours: float, *, dry: bool = False) -> list[str]:
        """Delete files that no version younger than ``hours`` has, and those of failed attempts; return their paths."""


def check_repetition(table: Table, where: str, note: Note) -> None:
    """Check a transaction that the table has, or has a later one of: InvalidValueError if it is no repetition.

    Spark repeats the last micro-batch only, with the range it had. One that is followed by a later one, or has another
    range, is new, whatever its number: an old checkpoint was restored. Leaving it out would lose rows.
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
