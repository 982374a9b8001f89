"""The driver's side of a sink: the files that tasks wrote become one transaction of the table.

Spark makes the sink anew for every micro-batch and calls it in processes that live as long as the session, so tables
stay open in them, and a schema is compared with the table's before the first rows are written and not at each commit
only.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Final

import pyarrow as pa  # type: ignore[import-untyped]  # publishes no types

from magnetar.lakehouse.formats.kinds import open_table
from magnetar.lakehouse.formats.table import Table, TableChange, check_repetition
from magnetar.lakehouse.model.data_file import DataFile
from magnetar.lakehouse.model.history import Note, Positions
from magnetar.lakehouse.model.options import LakeOptions
from magnetar.lakehouse.query_checkpoint import QueryCheckpoint
from magnetar.model.errors import InvalidValueError

_log: Final = logging.getLogger(__name__)
_tables: Final[dict[str, Table]] = {}
_checked: Final[set[tuple[str, str]]] = set()
_LIMIT: Final = 64
"""Number of tables that are kept open, and of schemas that are remembered."""


def check_once(options: LakeOptions, schema: pa.Schema) -> None:
    """Raises IncompatibleSchemaError or InvalidValueError when rows of ``schema`` will not fit the table."""
    key = _key(options), schema.to_string()
    if key in _checked:
        return
    _opened(options).check(schema)
    if len(_checked) >= _LIMIT:
        _checked.clear()
    _checked.add(key)


def change_of_batch(options: LakeOptions, schema: pa.Schema, files: list[DataFile], overwrite: bool) -> TableChange:
    """Return what a batch write commits."""
    app, version = options.transaction or (None, None)
    return TableChange(files, schema, Note(app, version, rows=_rows(files)), overwrite)


def change_of_stream(
    options: LakeOptions, schema: pa.Schema, files: list[DataFile], query: str | None, batch: int, overwrite: bool
) -> TableChange | None:
    """Return what a micro-batch commits; None if it had no tasks and its query is unknown: there is nothing to
    commit."""
    checkpoint = _checkpoint(options)
    if query is None and checkpoint is not None:
        query = checkpoint.query_id()
    if query is None:
        return None
    positions: Positions | None = None
    since: Positions | None = None
    if checkpoint is not None:
        positions, since = checkpoint.positions(batch), checkpoint.positions(batch - 1)
    return TableChange(files, schema, Note(query, batch, positions, since, _rows(files)), overwrite)


def commit(options: LakeOptions, change: TableChange) -> int | None:
    """Commit, then compact if that is due; return the new version, None if the table had the transaction."""
    table = _opened(options)
    version = table.commit(change)
    number = version if change.note.batch is None else change.note.batch
    if (
        version is not None
        and number is not None
        and options.compact_every
        and not (number + 1) % options.compact_every
    ):
        try:
            table.compact()
        except Exception as error:
            # The rows are committed; small files are no reason to stop a query.
            _log.warning("%s: compaction failed, the next one will try again: %s", options.path, error)
    return version


def check_not_set_back(options: LakeOptions, change: TableChange) -> None:
    """Check a micro-batch that was not committed, see `table.check_repetition`."""
    if change.files:
        check_repetition(_opened(options), options.path, change.note)


def _opened(options: LakeOptions) -> Table:
    key = _key(options)
    table = _tables.get(key)
    if table is None:
        if len(_tables) >= _LIMIT:
            _tables.clear()
        table = _tables[key] = open_table(options)
    return table


def _key(options: LakeOptions) -> str:
    return repr(replace(options, checkpoint=None, transaction=None))


def _checkpoint(options: LakeOptions) -> QueryCheckpoint | None:
    if options.checkpoint is None:
        return None
    try:
        return QueryCheckpoint(options.checkpoint, options.storage)
    except InvalidValueError as error:
        _log.warning("%s: commits will not say how far topics were read: %s", options.path, error)
        return None


def _rows(files: list[DataFile]) -> int:
    return sum(file.rows for file in files)
