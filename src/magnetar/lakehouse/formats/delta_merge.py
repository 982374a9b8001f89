"""Merges rows into a Delta table by key, as one transaction of delta-rs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pyarrow as pa  # type: ignore[import-untyped]  # publishes no types
import pyarrow.compute as pc  # type: ignore[import-untyped]  # publishes no types
from deltalake.exceptions import CommitFailedError

from magnetar.lakehouse.formats.delta_table import LakeDelta, properties
from magnetar.lakehouse.formats.table import check_repetition, too_many_conflicts, tries
from magnetar.lakehouse.model.history import Note
from magnetar.lakehouse.model.options import LakeOptions
from magnetar.lakehouse.model.table_schema import plain_schema

_DELETED: Final = "__deleted"


def merge(options: LakeOptions, changes: pa.Table, keys: Sequence[str], note: Note) -> int | None:
    """Merge and return the new version; None if the table has this transaction or there is nothing to do.

    ``changes`` has one row per key, and in ``__deleted`` whether the key's row is to be deleted. Raises what
    `check_repetition` does.
    """
    if not changes.num_rows:
        return None
    rows = changes.cast(plain_schema(changes.schema))
    # A condition that is null is not true; without this neither branch of the merge would take the change.
    gone = pc.fill_null(rows.column(_DELETED), False)
    rows = rows.set_column(rows.column_names.index(_DELETED), _DELETED, gone)
    cause: Exception | None = None
    for _ in tries(options):
        table = LakeDelta(options)
        if note.app is not None and note.batch is not None:
            last = table.committed(note.app)
            if last is not None and last >= note.batch:
                check_repetition(table, options.path, note)
                return None
        try:
            return _try(table, rows, keys, note)
        except CommitFailedError as error:
            cause = error
    raise too_many_conflicts(options.path, options.commit_retries + 1, cause)


def _try(table: LakeDelta, rows: pa.Table, keys: Sequence[str], note: Note) -> int:
    columns = [name for name in rows.column_names if name != _DELETED]
    target = table.prepared(rows.select(columns).schema)
    before = target.version()
    values = {_quoted(name): f"s.{_quoted(name)}" for name in columns}
    same = " AND ".join(f"t.{_quoted(key)} = s.{_quoted(key)}" for key in keys)
    merger = target.merge(
        rows,
        same,
        source_alias="s",
        target_alias="t",
        commit_properties=properties(note),
    )
    merger = merger.when_matched_delete(f"s.{_quoted(_DELETED)}")
    merger = merger.when_matched_update(values, f"NOT s.{_quoted(_DELETED)}")
    merger.when_not_matched_insert(values, f"NOT s.{_quoted(_DELETED)}").execute()
    target.update_incremental()
    if target.version() == before:
        # Only removals of rows that are not there. delta-rs then commits nothing, so the transaction is committed here.
        partitions = target.metadata().partition_columns
        target.create_write_transaction(
            [], "append", target.schema(), partition_by=partitions, commit_properties=properties(note)
        )
        target.update_incremental()
    return target.version()


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
