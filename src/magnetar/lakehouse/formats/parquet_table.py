"""A directory of Parquet files with a commit log of our own (`parquet_log` has the format).

Readers here see exactly the committed files. Readers of the plain directory (Spark, Arrow, DuckDB) see whole, committed
files only; while a commit puts its files into place they may see a part of it, and while compaction exchanges files
rows may be missing for a moment, and never be double.
"""

from __future__ import annotations

import json
import posixpath
from collections.abc import Callable
from typing import Any, Final

import pyarrow as pa  # type: ignore[import-untyped]  # publishes no types

from magnetar.lakehouse.files.file_reader import FileReader
from magnetar.lakehouse.files.file_store import FileStore
from magnetar.lakehouse.files.file_writer import FileWriter
from magnetar.lakehouse.formats import parquet_log as log
from magnetar.lakehouse.formats.parquet_log import TableFile, TableState
from magnetar.lakehouse.formats.table import FileCompaction, TableChange, too_many_conflicts, tries
from magnetar.lakehouse.model.data_file import DataFile
from magnetar.lakehouse.model.file_bins import bins
from magnetar.lakehouse.model.history import Commit, Note, newest
from magnetar.lakehouse.model.layout import STAGING, layout_of
from magnetar.lakehouse.model.lineage import FileCommit, LoggedFile
from magnetar.lakehouse.model.options import LakeOptions
from magnetar.lakehouse.model.partition import PartitionColumn, check, check_unchanged
from magnetar.lakehouse.model.table_schema import fit, plain_schema, widened
from magnetar.model.errors import NotFoundError
from magnetar.runtime.clock import Clock, SystemClock

_CHECKPOINT_EVERY: Final = 32


class ParquetTable:
    """A directory of Parquet files, see `table.Table`. Holds the state of the log up to where it has read it."""

    def __init__(self, options: LakeOptions, clock: Clock | None = None) -> None:
        self._options = options
        self._clock = clock or SystemClock()
        self._store = FileStore(options.path, options.storage)
        self._state = TableState()
        self._settled = False

    def exists(self) -> bool:
        return self._refresh().version >= 0

    def schema(self) -> pa.Schema | None:
        return self._refresh().schema

    def check(self, schema: pa.Schema) -> None:
        """See `table.Table`."""
        self._fit(self._refresh(), plain_schema(schema))

    def committed(self, app: str) -> int | None:
        return self._refresh().transactions.get(app)

    def commit(self, change: TableChange) -> int | None:
        """See `table.Table`."""
        if not self._settled:
            self.settle()

        def build(state: TableState) -> dict[str, Any] | None:
            note = change.note
            if note.batch is not None and state.transactions.get(note.app or "", -1) >= note.batch:
                return None
            schema, changed = self._fit(state, change.schema)
            first = state.schema is None
            return log.encode_commit(
                self._clock.now_ms(),
                "overwrite" if change.overwrite else "append",
                note,
                schema=schema if changed or first else None,
                partitioning=[field.column for field in self._options.partitioning] if first else None,
                add=[_entry(file) for file in change.files],
                remove=list(state.files) if change.overwrite else None,
            )

        if not change.files and not change.overwrite:
            return None
        version = self._append(build)
        if version is None:
            # A crash between that commit and now may have left its files in the staging directory.
            self.settle()
        self._clean(change.files)
        return version

    def history(self) -> list[Commit]:
        return [log.summary(version, self._manifest(version)) for version in self._versions()]

    def file_log(self) -> list[FileCommit]:
        """See `table.Table`; this log is kept forever."""
        state, found = TableState(), []
        for version in self._versions():
            commit = self._manifest(version)
            state.apply(version, commit)
            added = tuple(_logged(log.table_file(one), state) for one in commit["add"])
            one = log.summary(version, commit)
            found.append(FileCommit(version, one.operation, one.app, one.batch, added, tuple(commit["remove"])))
        return found

    def reader(self) -> FileReader:
        """See `table.Table`."""
        return self._reader(self._refresh())

    def read(self, version: int | None = None) -> pa.Table:
        """See `table.Table`."""
        state = self._at(version)
        schema = self._reader(state).schema
        parts = [self._rows(entry, state) for entry in state.files.values()]
        return pa.concat_tables(parts) if parts else schema.empty_table()

    def paths(self, version: int | None = None) -> list[DataFile]:
        """Return the files of a version, in the order of their commits."""
        return [entry.file for entry in self._at(version).files.values()]

    def compact(self) -> FileCompaction:
        """See `table.Table`."""
        self.settle()
        state = self._state
        groups = bins([entry.file for entry in state.files.values()], self._options.target_file_bytes)
        if not groups or state.schema is None:
            return FileCompaction(None, 0, 0)
        fields = tuple(PartitionColumn(name) for name in state.partitioning)
        layout = layout_of(self._options, None, None)._replace(partitioning=fields)
        writer = FileWriter(self._store, layout, f"compacted-{state.version:08}")
        removed = []
        batches = []
        for group in groups:
            removed += [file.path for file in group]
            batches += group
        files = writer.run(
            batch for file in batches for batch in self._rows(state.files[file.path], state).to_batches()
        )

        def build(now: TableState) -> dict[str, Any] | None:
            if any(path not in now.files for path in removed):
                # Another writer compacted or replaced them: what was written here is then an orphan, and nothing is
                # wrong.
                return None
            note = Note(rows=sum(file.rows for file in files))
            return log.encode_commit(
                self._clock.now_ms(), "compact", note, add=[_entry(file) for file in files], remove=removed
            )

        version = self._append(build)
        self._clean(files)
        return FileCompaction(version, *((len(removed), len(files)) if version is not None else (0, 0)))

    def vacuum(self, hours: float, *, dry: bool = False) -> list[str]:
        """See `table.Table`."""
        self.settle()
        horizon = self._clock.now_ms() - hours * 3_600_000
        live = {entry.staged for entry in self._state.files.values()}
        gone = [
            path for path, _, written in self._store.list(STAGING) if path not in live and written * 1000 <= horizon
        ]
        retired = [path for path, removed in self._state.retired.items() if removed <= horizon]
        found = gone + [f"{log.RETIRED}/{path}" for path in retired]
        if dry:
            return found
        for path in found:
            self._store.delete(path)
        self._store.prune(STAGING)
        self._store.prune(log.RETIRED)
        if retired:
            self._append(lambda _: log.encode_commit(self._clock.now_ms(), "vacuum", Note(), forget=retired))
        return found

    def settle(self) -> None:
        """Move every committed file into its place, and every removed one out of it; safe at any time.

        Old files go before new ones come, so that plain readers never see a row twice.
        """
        state = self._refresh()
        present = {path for path, _, _ in self._store.list() if not path.startswith("_")}
        for path in state.retired:
            if path in present:
                self._move(path, f"{log.RETIRED}/{path}")
        staged = {entry.staged: path for path, entry in state.files.items() if path not in present}
        if staged:
            for path, _, _ in list(self._store.list(STAGING)):
                if path in staged:
                    self._move(path, staged[path])
        self._settled = True

    def _append(self, build: Callable[[TableState], dict[str, Any] | None]) -> int | None:
        """Commit what ``build`` makes of the newest state and return the version; None if it makes nothing of it."""
        for _ in tries(self._options):
            state = self._refresh()
            commit = build(state)
            if commit is None:
                return None
            version = state.version + 1
            if self._store.create(log.commit_path(version), json.dumps(commit).encode()):
                state.apply(version, commit)
                self._place(commit)
                self._checkpoint(state)
                return version
        raise too_many_conflicts(self._options.path, self._options.commit_retries + 1)

    def _place(self, commit: dict[str, Any]) -> None:
        for path in commit["remove"]:
            self._move(path, f"{log.RETIRED}/{path}")
        for one in commit["add"]:
            self._move(one["staged"], one["path"])

    def _move(self, source: str, target: str) -> None:
        try:
            self._store.move(source, target)
        except FileNotFoundError:
            # Another process settles too, and has done it.
            pass

    def _clean(self, files: list[DataFile]) -> None:
        """Delete what attempts of these transactions have left; committed files have moved away."""
        live = {entry.staged for entry in self._state.files.values()}
        for directory in {"/".join(file.path.split("/")[:2]) for file in files}:
            for path, _, _ in list(self._store.list(directory)):
                if path not in live:
                    self._store.delete(path)
            self._store.prune(directory)

    def _checkpoint(self, state: TableState) -> None:
        if (state.version + 1) % _CHECKPOINT_EVERY:
            return
        self._store.create(log.checkpoint_path(state.version), state.to_json())
        self._store.delete(log.checkpoint_path(state.version - 2 * _CHECKPOINT_EVERY))

    def _fit(self, state: TableState, schema: pa.Schema) -> tuple[pa.Schema, bool]:
        """Return the table's schema with what ``schema`` adds, and whether it adds anything."""
        fields = self._options.partitioning
        check(fields, schema, transforms=False)
        where = f"table {self._options.path}"
        if state.schema is None:
            return schema, True
        check_unchanged(fields, [PartitionColumn(column) for column in state.partitioning], where)
        added = fit(state.schema, schema, add=self._options.add_columns, where=where)
        return widened(state.schema, added), bool(added)

    def _refresh(self) -> TableState:
        """Read what was committed since."""
        self._state = self._replayed(self._state, None)
        return self._state

    def _at(self, version: int | None) -> TableState:
        if version is None:
            return self._refresh()
        newest(self.history(), version, None)
        return self._replayed(TableState(), version)

    def _replayed(self, state: TableState, until: int | None) -> TableState:
        after = None if state.version < 0 else log.commit_path(state.version)
        found = sorted(
            found
            for path, _, _ in self._store.list(log.DIRECTORY, after)
            if (found := log.version_of(path)) is not None
        )
        found = [one for one in found if until is None or one[0] <= until]
        checkpoints = [version for version, whole in found if whole and version > state.version]
        if checkpoints and len(found) > _CHECKPOINT_EVERY:
            try:
                path = log.checkpoint_path(checkpoints[-1])
                state = TableState.from_json(self._store.read(path), path)
            except FileNotFoundError:
                # Replaced by a later one at this moment; the commits are all there.
                pass
        for version, whole in found:
            if not whole and version > state.version:
                state.apply(version, self._manifest(version))
        return state

    def _versions(self) -> list[int]:
        found = (log.version_of(path) for path, _, _ in self._store.list(log.DIRECTORY))
        return sorted(one[0] for one in found if one is not None and not one[1])

    def _manifest(self, version: int) -> dict[str, Any]:
        path = log.commit_path(version)
        return log.decoded(self._store.read(path), path)

    def _rows(self, entry: TableFile, state: TableState) -> pa.Table:
        """Read one file in the table's schema."""
        try:
            return self._reader(state).read(_logged(entry, state))
        except NotFoundError as error:
            raise NotFoundError(f"{error}; vacuum has removed what this version needs, read a later one") from None

    def _reader(self, state: TableState) -> FileReader:
        if state.schema is None:
            raise NotFoundError(f"{self._options.path}: there is no table; nothing was committed there")
        return FileReader(self._options.path, self._options.storage, state.schema)


def _entry(file: DataFile) -> TableFile:
    return TableFile(
        DataFile(log.final_path(file.path), file.size, file.rows, file.partition),
        posixpath.normpath(file.path),
    )


def _logged(entry: TableFile, state: TableState) -> LoggedFile:
    path = entry.file.path
    places = (path, entry.staged, f"{log.RETIRED}/{path}")
    return LoggedFile(path, places, entry.file.size, entry.file.rows, _in_path(entry.file, state))


def _in_path(file: DataFile, state: TableState) -> tuple[tuple[str, pa.Array], ...]:
    """Return the columns that are in the path only, each with its one value."""
    assert state.schema is not None, "a file has a schema"
    found = []
    for name, value in zip(state.partitioning, file.partition, strict=True):
        kind = state.schema.field(name).type
        base = pa.int32() if pa.types.is_date32(kind) else pa.int64() if pa.types.is_timestamp(kind) else None
        if base is None:
            one = pa.array([value if value is None or not pa.types.is_decimal(kind) else str(value)])
        else:
            one = pa.array([value], base)
        found.append((name, one.cast(kind)))
    return tuple(found)
