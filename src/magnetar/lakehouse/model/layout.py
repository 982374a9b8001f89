"""The layout of a transaction's files: where they are written, and in which form."""

from __future__ import annotations

import hashlib
import uuid
from typing import Final, NamedTuple

from magnetar.lakehouse.model.options import LakeOptions, TableKind
from magnetar.lakehouse.model.partition import PartitionColumn

STAGING: Final = "_staging"
STAGED_SUFFIX: Final = ".staged"
SUFFIX: Final = ".zstd.parquet"


class Layout(NamedTuple):
    """How a task writes files; plain data, pickled and sent to tasks (`file_writer`)."""

    partitioning: tuple[PartitionColumn, ...]
    keep_columns: bool
    """Partition columns stand in the files too (Iceberg), and not only in their paths (Hive)."""
    target_file_bytes: int
    row_group_rows: int
    compression_level: int
    prefix: str
    """Directory of new files, relative to the table, with a ``/`` at its end unless empty."""
    suffix: str


def layout_of(options: LakeOptions, app: str | None, version: int | None) -> Layout:
    """Return the layout for the files of a transaction, or of a write without a name.

    In Delta and Iceberg tables a file is written to where it stays, and is nothing unless the log names it. A directory
    of Parquet is read by its file names, so there files wait in a directory of their transaction.
    """
    prefix = ""
    if options.kind is TableKind.ICEBERG:
        prefix = "data/"
    elif options.kind is TableKind.PARQUET:
        owner = uuid.uuid4().hex if app is None else hashlib.sha256(app.encode()).hexdigest()
        prefix = f"{STAGING}/{owner[:16]}{'' if version is None else f'-{version}'}/"
    return Layout(
        options.partitioning,
        options.kind is TableKind.ICEBERG,
        options.target_file_bytes,
        options.row_group_rows,
        options.compression_level,
        prefix,
        STAGED_SUFFIX if options.kind is TableKind.PARQUET else SUFFIX,
    )
