"""Data files of an Iceberg table: made from Parquet files that a task has written, and found again.

pyiceberg's `add_files` guesses a file's partition from its statistics, which fails for buckets and for text
that is cut off; here the task has told it. Everything else of a manifest entry comes from the file's footer by
pyiceberg's own code.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

import pyarrow.parquet as pq  # type: ignore[import-untyped]  # publishes no types
from pyiceberg.io import FileIO
from pyiceberg.io.pyarrow import (
    compute_statistics_plan,
    data_file_statistics_from_parquet_metadata,
    parquet_path_to_id_mapping,
)
from pyiceberg.manifest import DataFile as Manifested
from pyiceberg.manifest import DataFileContent, FileFormat
from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.typedef import Record

from magnetar.lakehouse.data_file import DataFile


class Appending(Protocol):
    """A snapshot in the making."""

    def append_data_file(self, data_file: Manifested) -> Any: ...


def add_files(
    snapshot: Appending, io: FileIO, metadata: TableMetadata, location: str, files: Iterable[DataFile]
) -> None:
    """Put ``files`` (paths relative to ``location``) into a snapshot."""
    schema = metadata.schema()
    plan = compute_statistics_plan(schema, metadata.properties)
    columns = parquet_path_to_id_mapping(schema)
    for file in files:
        path = f"{location}/{file.path}"
        with io.new_input(path).open() as stream:
            footer = pq.read_metadata(stream)
        found = data_file_statistics_from_parquet_metadata(footer, plan, columns)
        snapshot.append_data_file(
            Manifested.from_args(
                content=DataFileContent.DATA,
                file_path=path,
                file_format=FileFormat.PARQUET,
                partition=Record(*file.partition),
                file_size_in_bytes=file.size,
                sort_order_id=None,
                spec_id=metadata.default_spec_id,
                equality_ids=None,
                key_metadata=None,
                **found.to_serialized_dict(),
            )
        )


def live_files(table: Table) -> dict[str, tuple[DataFile, Manifested]]:
    """Of the current snapshot, oldest first, by path: ours and pyiceberg's; none of another partitioning."""
    snapshot = table.current_snapshot()
    found: dict[str, tuple[DataFile, Manifested]] = {}
    if snapshot is None:
        return found
    for manifest in sorted(snapshot.manifests(table.io), key=lambda one: one.sequence_number or 0):
        for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=True):
            file = entry.data_file
            if file.content is DataFileContent.DATA and file.spec_id == table.metadata.default_spec_id:
                partition = tuple(file.partition[index] for index in range(len(file.partition)))
                found[file.file_path] = (
                    DataFile(file.file_path, file.file_size_in_bytes, file.record_count, partition),
                    file,
                )
    return found


def referenced(table: Table, besides: set[int]) -> set[str]:
    """Paths of all files of all snapshots but ``besides``."""
    return {
        entry.data_file.file_path
        for snapshot in table.snapshots()
        if snapshot.snapshot_id not in besides
        for manifest in snapshot.manifests(table.io)
        for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=True)
    }
