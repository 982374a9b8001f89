"""A Delta table by delta-rs, without a server or a jar: executors write Parquet, the driver commits add actions.

The transaction of a stream is Delta's own ``txn`` action (application = query, version = micro-batch), which readers of
every Delta implementation understand and which delta-rs checks once more while it commits. New columns are a commit of
their own just before, because delta-rs leaves the schema alone when it appends; repeated, it finds them there.
"""

from __future__ import annotations

import json
import math
import posixpath
from typing import Any, Final
from urllib.parse import unquote, urlparse

import pyarrow as pa  # type: ignore[import-untyped]  # publishes no types
from deltalake import CommitProperties, DeltaTable, PostCommitHookProperties, Schema, Transaction
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError
from deltalake.transaction import AddAction, RemoveAction, create_table_with_add_actions

from magnetar.lakehouse.files.file_reader import FileReader
from magnetar.lakehouse.files.file_store import FileStore, local_path
from magnetar.lakehouse.formats.table import FileCompaction, TableChange, too_many_conflicts, tries
from magnetar.lakehouse.model.data_file import DataFile
from magnetar.lakehouse.model.history import Commit, Note, newest
from magnetar.lakehouse.model.lineage import FileCommit, LoggedFile
from magnetar.lakehouse.model.options import LakeOptions
from magnetar.lakehouse.model.partition import PartitionColumn, check, check_unchanged, text_of
from magnetar.lakehouse.model.table_schema import fit, plain_schema
from magnetar.model.errors import InvalidValueError, NotFoundError
from magnetar.runtime.clock import Clock, SystemClock

NOTE: Final = "magnetar"
"""Key of the note in commitInfo."""
_LOG: Final = "_delta_log"
_THOUSAND_YEARS: Final = 8_766_000
"""In hours: more is an error of the library."""


class LakeDelta:
    """A Delta table, see `table.Table`."""

    def __init__(self, options: LakeOptions, clock: Clock | None = None) -> None:
        self._options = options
        self._clock = clock or SystemClock()
        self._uri = local_path(options.path) or options.path
        self._opened: DeltaTable | None = None

    def exists(self) -> bool:
        return self._open() is not None

    def schema(self) -> pa.Schema | None:
        table = self._open()
        return None if table is None else _schema(table)

    def check(self, schema: pa.Schema) -> None:
        """See `table.Table`."""
        self._fit(self._open(), plain_schema(schema))

    def committed(self, app: str) -> int | None:
        table = self._open()
        return None if table is None else table.transaction_version(app)

    def commit(self, change: TableChange) -> int | None:
        """See `table.Table`."""
        if not change.files and not change.overwrite:
            return None
        cause: Exception | None = None
        for _ in tries(self._options):
            try:
                return self._try(change)
            except CommitFailedError as error:
                cause = error
            except DeltaError as error:
                # Two queries made the table at the same time.
                if "already exists" not in str(error):
                    raise
                cause = error
        raise too_many_conflicts(self._uri, self._options.commit_retries + 1, cause)

    def _try(self, change: TableChange) -> int | None:
        note = change.note
        table = self._open()
        if table is not None and note.app is not None and note.batch is not None:
            last = table.transaction_version(note.app)
            if last is not None and last >= note.batch:
                return None
        added = self._fit(table, change.schema)
        actions = [self._action(file, change.schema) for file in change.files]
        names = [field.column for field in self._options.partitioning]
        if table is None:
            create_table_with_add_actions(
                self._uri,
                Schema.from_arrow(change.schema),
                actions,
                mode="error",
                partition_by=names,
                storage_options=self._options.storage or None,
                commit_properties=properties(note),
            )
            return 0
        _add_columns(table, added)
        table.create_write_transaction(
            list[AddAction | RemoveAction](actions),
            "overwrite" if change.overwrite else "append",
            table.schema(),
            partition_by=names,
            commit_properties=properties(note),
            post_commithook_properties=PostCommitHookProperties(create_checkpoint=True),
        )
        table.update_incremental()
        if note.app is None:
            return table.version()
        return next(
            (one.version for one in reversed(self.history(8)) if (one.app, one.batch) == note[:2]), table.version()
        )

    def prepared(self, schema: pa.Schema) -> DeltaTable:
        """Return the table, made if there is none, with the columns of ``schema`` added if that is allowed."""
        table = self._open()
        added = self._fit(table, plain_schema(schema))
        if table is None:
            table = DeltaTable.create(
                self._uri,
                Schema.from_arrow(plain_schema(schema)),
                mode="ignore",
                partition_by=[field.column for field in self._options.partitioning],
                storage_options=self._options.storage or None,
            )
        _add_columns(table, added)
        return table

    def history(self, limit: int | None = None) -> list[Commit]:
        """See `table.Table`; as far as Delta keeps its log (delta.logRetentionDuration, 30 days)."""
        table = self._open()
        if table is None:
            return []
        return [_commit(one) for one in reversed(table.history(limit))]

    def file_log(self) -> list[FileCommit]:
        """See `table.Table`; from the commits that the log still has as files."""
        table = self._open()
        if table is None:
            return []
        schema, store = _schema(table), FileStore(self._options.path, self._options.storage)
        names = (posixpath.basename(path).partition(".") for path, _, _ in store.list(_LOG))
        versions = sorted(int(name) for name, _, rest in names if rest == "json" and name.isdecimal())
        found = [_file_commit(one, store.read(f"{_LOG}/{one:020}.json").decode(), schema) for one in versions]
        listed = {unquote(file.path) for commit in found for file in commit.added}
        actions = pa.table(table.get_add_actions(flatten=True)).select(["path", "size_bytes", "num_records"])
        before = [
            _logged(one["path"], one["size_bytes"], one["num_records"], {}, schema) for one in actions.to_pylist()
        ]
        # delta-rs gives paths as the log has them or decoded, depending on what is in them.
        unknown = tuple(file for file in before if unquote(unquote(file.path)) not in listed)
        return [FileCommit(None, "unknown", None, None, unknown, ()), *found] if unknown else found

    def reader(self) -> FileReader:
        """See `table.Table`."""
        table = self._open()
        if table is None:
            raise NotFoundError(f"{self._uri}: there is no Delta table")
        return FileReader(self._options.path, self._options.storage, _schema(table))

    def read(self, version: int | None = None) -> pa.Table:
        """See `table.Table`."""
        if self._open() is None:
            raise NotFoundError(f"{self._uri}: there is no Delta table")
        if version is not None:
            newest(self.history(), version, None)
        table = DeltaTable(self._uri, version=version, storage_options=self._options.storage or None)
        return table.to_pyarrow_table()

    def compact(self) -> FileCompaction:
        """See `table.Table`."""
        table = self._open()
        if table is None:
            return FileCompaction(None, 0, 0)
        before = table.version()
        found = table.optimize.compact(
            target_size=self._options.target_file_bytes, commit_properties=CommitProperties(custom_metadata={NOTE: {}})
        )
        table.update_incremental()
        removed, added = found["numFilesRemoved"], found["numFilesAdded"]
        return FileCompaction(table.version() if table.version() > before else None, removed, added)

    def vacuum(self, hours: float, *, dry: bool = False) -> list[str]:
        """See `table.Table`; files that no log entry names go too (delta-rs calls that full)."""
        table = self._open()
        if table is None:
            return []
        whole = math.ceil(min(hours, _THOUSAND_YEARS))  # whole hours, and not fewer than what was said
        return table.vacuum(whole, dry_run=dry, enforce_retention_duration=False, full=True)

    def _open(self) -> DeltaTable | None:
        if self._opened is not None:
            self._opened.update_incremental()
            return self._opened
        try:
            self._opened = DeltaTable(self._uri, storage_options=self._options.storage or None)
        except TableNotFoundError:
            return None
        return self._opened

    def _fit(self, table: DeltaTable | None, schema: pa.Schema) -> list[pa.Field]:
        fields = self._options.partitioning
        check(fields, schema, transforms=False)
        where = f"Delta table {self._uri}"
        if table is None:
            return []
        check_unchanged(fields, [PartitionColumn(column) for column in table.metadata().partition_columns], where)
        return fit(_schema(table), schema, add=self._options.add_columns, where=where)

    def _action(self, file: DataFile, schema: pa.Schema) -> AddAction:
        fields = self._options.partitioning
        values = {
            field.column: text_of(value, schema.field(field.column).type, field)
            for field, value in zip(fields, file.partition, strict=True)
        }
        return AddAction(file.path, file.size, values, self._clock.now_ms(), True, json.dumps(file.statistics))


def properties(note: Note, retries: int | None = None) -> CommitProperties:
    """Return commit properties with the note, and its transaction if it has one."""
    transactions = []
    if note.app is not None and note.batch is not None:
        transactions = [Transaction(note.app, note.batch)]
    return CommitProperties(
        custom_metadata={NOTE: note.to_dict()}, max_commit_retries=retries, app_transactions=transactions
    )


def _add_columns(table: DeltaTable, added: list[pa.Field]) -> None:
    if added:
        wanted = list(Schema.from_arrow(pa.schema(added)).fields)
        table.alter.add_columns(wanted, commit_properties=CommitProperties(custom_metadata={NOTE: {}}))
        table.update_incremental()


def _schema(table: DeltaTable) -> pa.Schema:
    return plain_schema(pa.schema(table.schema().to_arrow()))


def _commit(one: dict[str, Any]) -> Commit:
    note = Note.from_dict(one.get(NOTE) or {})
    rows = note.rows if note.app is not None or note.rows else None
    return Commit(
        one["version"],
        one["timestamp"],
        one["operation"].lower(),
        note.app,
        note.batch,
        note.positions,
        note.since,
        rows,
    )


def _file_commit(version: int, text: str, schema: pa.Schema) -> FileCommit:
    """Parse a file of the log, which has one action per line."""
    actions = [json.loads(line) for line in text.splitlines() if line.strip()]
    if any(one.get("add", {}).get("deletionVector") for one in actions):
        raise InvalidValueError(f"version {version} takes single rows away (deletion vectors), which is not followed")
    information: dict[str, Any] = next((one["commitInfo"] for one in actions if "commitInfo" in one), {})
    note = Note.from_dict(information.get(NOTE) or {})
    added = tuple(
        _logged(
            unquote(one["path"]),
            one["size"],
            json.loads(one.get("stats") or "{}").get("numRecords"),
            one.get("partitionValues") or {},
            schema,
        )
        for one in (action["add"] for action in actions if "add" in action)
    )
    removed = tuple(unquote(action["remove"]["path"]) for action in actions if "remove" in action)
    return FileCommit(version, information.get("operation", "unknown").lower(), note.app, note.batch, added, removed)


def _logged(path: str, size: int, rows: int | None, values: dict[str, str | None], schema: pa.Schema) -> LoggedFile:
    partition = tuple((name, _value(text, schema.field(name).type)) for name, text in values.items())
    return LoggedFile(path, () if urlparse(path).scheme else (path,), size, rows, partition)


def _value(text: str | None, kind: pa.DataType) -> pa.Array:
    """Parse a partition value; the inverse of `partition.text_of`."""
    one = pa.array([text or None], pa.string())
    # Without a zone in the text it is UTC.
    return one.cast(pa.timestamp("us")).cast(kind) if pa.types.is_timestamp(kind) else one.cast(kind)
