"""An Iceberg table by pyiceberg, in any catalog that it knows; by default a sqlite file beside the table.

The transaction of a stream stands in two places of the same commit: in the snapshot's summary, where history shows it,
and as table property ``magnetar.txn.<query>``, which survives when snapshots expire and is looked up at once. Columns
that are added are part of that commit too. pyiceberg's own repetition of a commit after a conflict is not used: it
would append again without looking whether a twin of this driver has appended meanwhile. Versions here are Iceberg's
sequence numbers, which count from 1, and not the random ids of snapshots.
"""

from __future__ import annotations

import json
import posixpath
import weakref
from typing import Any, Final

import pyarrow as pa  # type: ignore[import-untyped]  # publishes no types
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.exceptions import (
    CommitFailedException,
    NamespaceAlreadyExistsError,
    NoSuchNamespaceError,
    NoSuchTableError,
    TableAlreadyExistsError,
    ValidationException,
)
from pyiceberg.expressions import AlwaysTrue
from pyiceberg.partitioning import PartitionField
from pyiceberg.table import Table as CatalogTable
from pyiceberg.table import TableProperties
from pyiceberg.table.snapshots import Snapshot
from pyiceberg.transforms import parse_transform

from magnetar.lakehouse.files.file_reader import FileReader
from magnetar.lakehouse.files.file_store import FileStore, local_path, name_of, same_place
from magnetar.lakehouse.files.file_writer import FileWriter
from magnetar.lakehouse.formats.iceberg_files import FileHistory, add_files, file_history, live_files, referenced
from magnetar.lakehouse.formats.table import FileCompaction, TableChange, too_many_conflicts, tries
from magnetar.lakehouse.model.file_bins import bins
from magnetar.lakehouse.model.history import Commit, Note, as_text, newest
from magnetar.lakehouse.model.layout import layout_of
from magnetar.lakehouse.model.lineage import FileCommit, LoggedFile
from magnetar.lakehouse.model.options import LakeOptions
from magnetar.lakehouse.model.partition import PartitionColumn, check, check_unchanged
from magnetar.lakehouse.model.table_schema import aligned, fit, plain_schema
from magnetar.model.errors import InvalidValueError, NotFoundError
from magnetar.runtime.clock import Clock, SystemClock

_TRANSACTION: Final = "magnetar.txn."
_NOTE: Final = "magnetar.note"
_NAMESPACE: Final = "lake"
_CATALOG_FILE: Final = "_catalog.sqlite"


class LakeIceberg:
    """An Iceberg table, see `table.Table`."""

    def __init__(self, options: LakeOptions, clock: Clock | None = None) -> None:
        self._options = options
        self._clock = clock or SystemClock()
        directory = local_path(options.path)
        self._location = options.path if directory is None else f"file://{directory}"
        self._spellings = {self._location}
        """Names under which the log may have the table's directory."""
        self._elsewhere: str | None = None
        """Where the table lies by its catalog, if that is another place than the path that was given."""
        self._identifier = options.table or (_NAMESPACE, name_of(options.path))
        self._opened: Catalog | None = None

    def exists(self) -> bool:
        return self._load() is not None

    def schema(self) -> pa.Schema | None:
        table = self._load()
        return None if table is None else plain_schema(table.schema().as_arrow())

    def check(self, schema: pa.Schema) -> None:
        """See `table.Table`."""
        table = self._load()
        self._fit(table, plain_schema(schema))
        if table is None:
            self._require_no_other_table()  # or the tasks would write files into its directory

    def committed(self, app: str) -> int | None:
        table = self._load()
        return None if table is None else _committed(table, app)

    def commit(self, change: TableChange) -> int | None:
        """See `table.Table`."""
        if not change.files and not change.overwrite:
            return None
        for _ in tries(self._options):
            table = self._load() or self._create(change.schema)
            note = change.note
            if note.app is not None and note.batch is not None:
                last = _committed(table, note.app)
                if last is not None and last >= note.batch:
                    return None
            try:
                return self._try(table, change)
            except (CommitFailedException, ValidationException):
                continue
        raise too_many_conflicts(self._name, self._options.commit_retries + 1)

    def _try(self, table: CatalogTable, change: TableChange) -> int | None:
        note = change.note
        added = self._fit(table, change.schema)
        properties = _summary(note)
        with _once(table).transaction() as transaction:
            if added:
                with transaction.update_schema() as update:
                    update.union_by_name(pa.schema(added))
            settings = {}
            if note.app is not None and note.batch is not None:
                settings[f"{_TRANSACTION}{note.app}"] = str(note.batch)
            if transaction.table_metadata.name_mapping() is None or added:
                mapping = transaction.table_metadata.schema().name_mapping.model_dump_json()
                settings[TableProperties.DEFAULT_NAME_MAPPING] = mapping
            if settings:
                transaction.set_properties(settings)
            if change.overwrite and table.current_snapshot() is not None:
                transaction.delete(AlwaysTrue(), snapshot_properties=properties)
            with transaction.update_snapshot(snapshot_properties=properties).fast_append() as append:
                add_files(append, table.io, transaction.table_metadata, self._location, change.files)
        snapshot = table.current_snapshot()
        return None if snapshot is None else snapshot.sequence_number

    def history(self) -> list[Commit]:
        """See `table.Table`; as far as snapshots have not expired."""
        table = self._load()
        return [] if table is None else [_commit(snapshot) for snapshot in table.snapshots()]

    def file_log(self) -> list[FileCommit]:
        """See `table.Table`; files of snapshots that have expired are of an unknown origin."""
        table = self._load()
        if table is None:
            return []
        known = {snapshot.snapshot_id: _commit(snapshot) for snapshot in table.snapshots()}
        done = file_history(table)
        unknown = FileHistory()
        for snapshot, one in done.items():
            if snapshot not in known:
                unknown.added.update(one.added)
        gone = {path for snapshot, one in done.items() if snapshot not in known for path in one.removed}
        before = tuple(self._logged(*file) for path, file in unknown.added.items() if path not in gone)
        found = [FileCommit(None, "unknown", None, None, before, ())] if before else []
        for snapshot, commit in sorted(known.items(), key=lambda one: one[1].version):
            one = done.get(snapshot, FileHistory())
            added = tuple(self._logged(*file) for file in one.added.values())
            removed = tuple(self._relative(path) for path in one.removed)
            found.append(FileCommit(commit.version, commit.operation, commit.app, commit.batch, added, removed))
        return found

    def _relative(self, path: str) -> str:
        begins = (f"{spelling}/" for spelling in self._spellings)
        return next((path.removeprefix(begin) for begin in begins if path.startswith(begin)), path)

    def _logged(self, path: str, size: int, rows: int) -> LoggedFile:
        relative = self._relative(path)
        return LoggedFile(relative, () if relative == path else (relative,), size, rows)

    def reader(self) -> FileReader:
        """See `table.Table`."""
        table = self._load()
        if table is None:
            raise NotFoundError(f"{self._name}: there is no Iceberg table")
        return FileReader(self._options.path, self._options.storage, plain_schema(table.schema().as_arrow()))

    def read(self, version: int | None = None) -> pa.Table:
        """See `table.Table`."""
        table = self._load()
        if table is None:
            raise NotFoundError(f"{self._name}: there is no Iceberg table")
        if version is None:
            return table.scan().to_arrow()
        newest(self.history(), version, None)
        snapshot = next(one for one in table.snapshots() if one.sequence_number == version)
        return table.scan(snapshot_id=snapshot.snapshot_id).to_arrow()

    def compact(self) -> FileCompaction:
        """See `table.Table`."""
        table = self._load()
        if table is None or table.current_snapshot() is None:
            return FileCompaction(None, 0, 0)
        live = live_files(table)
        ours = [file for file, _ in live.values() if self._relative(file.path) != file.path]
        groups = bins(ours, self._options.target_file_bytes)
        if not groups:
            return FileCompaction(None, 0, 0)
        schema = plain_schema(table.schema().as_arrow())
        fields = tuple(_field(table, one) for one in table.spec().fields)
        layout = layout_of(self._options, None, None)._replace(partitioning=fields)
        store = FileStore(self._options.path, self._options.storage)
        writer = FileWriter(store, layout, f"compacted-{table.last_sequence_number:08}")
        old = [live[file.path][1] for group in groups for file in group]
        new = writer.run(
            batch for one in old for batch in aligned(store.parquet(self._relative(one.file_path)), schema).to_batches()
        )
        for _ in tries(self._options):
            table = self._load()
            assert table is not None
            try:
                with (
                    _once(table).transaction() as transaction,
                    transaction.update_snapshot(snapshot_properties={_NOTE: "{}"}).overwrite() as overwrite,
                ):
                    for one in old:
                        overwrite.delete_data_file(one)
                    add_files(overwrite, table.io, table.metadata, self._location, new)
            except CommitFailedException:
                continue
            except ValidationException:
                break
            snapshot = table.current_snapshot()
            return FileCompaction(None if snapshot is None else snapshot.sequence_number, len(old), len(new))
        for file in new:
            store.delete(file.path)
        return FileCompaction(None, 0, 0)

    def vacuum(self, hours: float, *, dry: bool = False) -> list[str]:
        """See `table.Table`: old snapshots expire, then every data file that no snapshot names goes."""
        table = self._load()
        if table is None:
            return []
        store = FileStore(self._options.path, self._options.storage)
        self._require_own_files(table, store)
        horizon = self._clock.now_ms() - hours * 3_600_000
        current = table.current_snapshot()
        old = [one.snapshot_id for one in table.snapshots() if one.timestamp_ms <= horizon and one != current]
        if old and not dry:
            table.maintenance.expire_snapshots().by_ids(old).commit()
            table = self._load()
            assert table is not None
        # by their names, which are unique: a path that is spelled in some other way must not cost a file
        kept = {posixpath.basename(path) for path in referenced(table, set(old) if dry else set())}
        gone = [
            path
            for path, _, written in store.list("data")
            if posixpath.basename(path) not in kept and written * 1000 <= horizon
        ]
        if not dry:
            for path in gone:
                store.delete(path)
        return gone

    def _require_own_files(self, table: CatalogTable, store: FileStore) -> None:
        """Raise InvalidValueError if the catalog places the table elsewhere and has no file of those that are here.

        They are another table's then, whose path was given by mistake.
        """
        if self._elsewhere is None:
            return
        own = {posixpath.basename(path) for path in referenced(table, set())}
        here = [posixpath.basename(path) for path, _, _ in store.list("data")]
        if here and own.isdisjoint(here):
            raise InvalidValueError(
                f"{self._options.path}: the catalog says that table {self._name} lies at {self._elsewhere}, and it has "
                "none of the files here: give the path that its sinks write to, or the table of this path. Nothing was "
                "removed"
            )

    @property
    def _name(self) -> str:
        return ".".join(self._identifier)

    def _catalog(self) -> Catalog:
        if self._opened is None:
            given = dict(self._options.catalog)
            if not given:
                directory = local_path(self._options.path)
                if directory is None:
                    raise InvalidValueError(
                        f"{self._options.path}: an Iceberg table in an object store needs a catalog; set options "
                        "catalog.type and catalog.uri (and catalog.s3.* for pyiceberg's own access)"
                    )
                parent = directory.rpartition("/")[0]
                FileStore(parent, {})
                given = {"type": "sql", "uri": f"sqlite:///{parent}/{_CATALOG_FILE}", "warehouse": f"file://{parent}"}
            self._opened = load_catalog("magnetar", **given)
            weakref.finalize(self, self._opened.close)  # its connections to a database do not close themselves
        return self._opened

    def _load(self) -> CatalogTable | None:
        try:
            table = self._catalog().load_table(self._identifier)
        except (NoSuchTableError, NoSuchNamespaceError):
            return None
        self._stand_at(table.location())
        return table

    def _stand_at(self, location: str) -> None:
        """Name files as the table does. Raises InvalidValueError if it lies elsewhere, by the catalog beside it."""
        if location == self._location:
            return
        if same_place(location.removeprefix("file://"), self._options.path):
            self._location = location.rstrip("/")
            self._spellings.add(self._location)
        elif self._options.catalog:
            self._elsewhere = location
        else:
            raise InvalidValueError(
                f"{self._options.path}: the catalog beside it says that the table lies at {location}, so this was "
                "moved or copied: use it by that path, or move it back. Nothing was changed"
            )

    def _create(self, schema: pa.Schema) -> CatalogTable:
        fields = self._options.partitioning
        check(fields, schema, transforms=True)
        self._require_no_other_table()
        catalog = self._catalog()
        try:
            catalog.create_namespace(self._identifier[0])
        except NamespaceAlreadyExistsError:
            pass
        try:
            with (
                catalog.create_table_transaction(self._identifier, schema, location=self._location) as transaction,
                transaction.update_spec() as update,
            ):
                for field in fields:
                    update.add_field(field.column, _transform(field), field.name)
        except (TableAlreadyExistsError, CommitFailedException):
            # Two queries made it at the same time.
            pass
        return catalog.load_table(self._identifier)

    def _require_no_other_table(self) -> None:
        """Raise InvalidValueError if there are snapshots of a table that the catalog does not have.

        Both tables would have their files in one directory, and a vacuum of one removes those of the other.
        """
        store = FileStore(self._options.path, self._options.storage)
        names = (posixpath.basename(path) for path, _, _ in store.list("metadata"))
        if any(name.startswith("snap-") for name in names) and self._load() is None:
            raise InvalidValueError(
                f"{self._options.path}: an Iceberg table is there that the catalog does not have: use it by the path, "
                "the table and the catalog that it was made with, or write to another path. Nothing was committed"
            )

    def _fit(self, table: CatalogTable | None, schema: pa.Schema) -> list[pa.Field]:
        fields = self._options.partitioning
        check(fields, schema, transforms=True)
        where = f"Iceberg table {self._name}"
        if table is None:
            return []
        check_unchanged(fields, [_field(table, one) for one in table.spec().fields], where)
        return fit(table.schema().as_arrow(), schema, add=self._options.add_columns, where=where)


def _once(table: CatalogTable) -> CatalogTable:
    """Switch off pyiceberg's own retries of commits, in this process only."""
    table.metadata.properties[TableProperties.COMMIT_NUM_RETRIES] = "0"
    return table


def _transform(field: PartitionColumn) -> Any:
    return parse_transform(f"bucket[{field.buckets}]" if field.transform == "bucket" else field.transform)


def _field(table: CatalogTable, field: PartitionField) -> PartitionColumn:
    column = table.schema().find_column_name(field.source_id) or ""
    name, _, rest = str(field.transform).partition("[")
    return PartitionColumn(column, name, int(rest.rstrip("]")) if rest else 0)


def _committed(table: CatalogTable, app: str) -> int | None:
    found = table.properties.get(f"{_TRANSACTION}{app}")
    return None if found is None else int(found)


def _summary(note: Note) -> dict[str, str]:
    return {_NOTE: as_text(note.to_dict())}


def _commit(snapshot: Snapshot) -> Commit:
    summary = snapshot.summary
    note = Note.from_dict(json.loads((summary.get(_NOTE) if summary is not None else None) or "{}"))
    operation = "unknown" if summary is None else summary.operation.value
    return Commit(
        snapshot.sequence_number or 0,
        snapshot.timestamp_ms,
        operation,
        note.app,
        note.batch,
        note.positions,
        note.since,
        note.rows if note.app is not None or note.rows else None,
    )
