"""Data files of an Iceberg table: entries for Parquet files that tasks wrote, and what manifests list.

pyiceberg's `add_files` guesses a file's partition from its statistics, which fails for buckets and for text
that is cut off; here the task reports it. Everything else of a manifest entry comes from the file's footer by
pyiceberg's own code.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Protocol

import pyarrow.parquet as pq  # type: ignore[import-untyped]  # publishes no types
from pyiceberg.io import FileIO
from pyiceberg.io.pyarrow import (
    compute_statistics_plan,
    data_file_statistics_from_parquet_metadata,
    parquet_path_to_id_mapping,
)
from pyiceberg.manifest import DataFile as IcebergDataFile
from pyiceberg.manifest import DataFileContent, FileFormat, ManifestEntryStatus
from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.typedef import Record

from magnetar.lakehouse.model.data_file import DataFile
from magnetar.model.errors import InvalidValueError


class Appending(Protocol):
    """A snapshot in the making."""

    def append_data_file(self, data_file: IcebergDataFile) -> Any: ...


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
            IcebergDataFile.from_args(
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


def live_files(table: Table) -> dict[str, tuple[DataFile, IcebergDataFile]]:
    """Return the files of the current snapshot by path, oldest first, in our form and pyiceberg's.

    Files of another partitioning are left out.
    """
    snapshot = table.current_snapshot()
    found: dict[str, tuple[DataFile, IcebergDataFile]] = {}
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
    """Return the paths of all files of all snapshots except ``besides``."""
    return {
        entry.data_file.file_path
        for snapshot in table.snapshots()
        if snapshot.snapshot_id not in besides
        for manifest in snapshot.manifests(table.io)
        for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=True)
    }


@dataclass
class FileHistory:
    """What one snapshot did to the files."""

    added: dict[str, tuple[str, int, int]] = field(default_factory=dict)
    """Path, bytes and rows of each file, by path."""
    removed: set[str] = field(default_factory=set)


def file_history(table: Table) -> dict[int, FileHistory]:
    """Return what each snapshot did to the files, expired ones too as far as the remaining manifests show it.

    InvalidValueError for a table with files of deletions.
    """
    found: dict[int, FileHistory] = {}
    manifests = {one.manifest_path: one for snapshot in table.snapshots() for one in snapshot.manifests(table.io)}
    for manifest in manifests.values():
        for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=False):
            file = entry.data_file
            one = found.setdefault(entry.snapshot_id or 0, FileHistory())
            if file.content is not DataFileContent.DATA:
                raise InvalidValueError(
                    f"{file.file_path} takes single rows away (merge on read), which is not followed here"
                )
            if entry.status is ManifestEntryStatus.DELETED:
                one.removed.add(file.file_path)
            else:
                one.added[file.file_path] = (file.file_path, file.file_size_in_bytes, file.record_count)
    return found
