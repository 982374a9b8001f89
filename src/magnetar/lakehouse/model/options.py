"""Options of the lakehouse sinks, checked once, with errors that say what to write instead; pure.

Spark hands over all keys in lower case. Keys that begin with ``storage.`` go to the object store (names of the
object_store crate, as delta-rs and obstore use them: ``storage.aws_region``), keys that begin with ``catalog.`` to
pyiceberg's catalog (``catalog.uri``, ``catalog.type``); everything else must be in the table, and a key that is not is
an error with the nearest name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, NamedTuple

from magnetar.lakehouse.model.partition import PartitionColumn, parse
from magnetar.model.errors import InvalidValueError
from magnetar.spark.options.option_table import OptionTable, unknown


class TableKind(Enum):
    """The kind of a table; the value is what follows ``magnetar-`` in the name of the format."""

    PARQUET = "parquet"
    DELTA = "delta"
    ICEBERG = "iceberg"


class LakeOption(NamedTuple):
    title: str
    help: str


OPTIONS: Final[dict[str, LakeOption]] = {
    option.title.lower(): option
    for option in (
        LakeOption("path", "directory or URL of the table, what start(...) or save(...) is given"),
        LakeOption("partitionColumns", "columns with commas; for Iceberg also day(ts), bucket(16, key) and the like"),
        LakeOption("schemaEvolution", "none, or add: columns that the table does not have are added to it"),
        LakeOption("targetFileBytes", "a data file is closed when it has reached this size, 134217728"),
        LakeOption("rowGroupRows", "rows in a row group of a file, 262144"),
        LakeOption("compressionLevel", "of zstd, 1"),
        LakeOption("compactEvery", "small files are put together every so many commits; 0, the default, is never"),
        LakeOption("commitRetries", "how often a commit is tried again when another writer was first, 10"),
        LakeOption("txnAppId", "batch writes: who writes; with txnVersion, what is written again is kept once"),
        LakeOption("txnVersion", "batch writes: a number that grows with each write of txnAppId"),
        LakeOption("table", "Iceberg: namespace.name in the catalog; by default lake.<last part of path>"),
    )
}
_PREFIXES: Final = ("storage.", "catalog.")
_SPARK_KEYS: Final = frozenset({"queryname", "checkpointlocation", "outputmode"})


@dataclass(frozen=True, slots=True)
class LakeOptions:
    """The checked options of a sink; pickled and sent to tasks."""

    kind: TableKind
    path: str
    partitioning: tuple[PartitionColumn, ...] = ()
    add_columns: bool = False
    target_file_bytes: int = 128 << 20
    row_group_rows: int = 256 << 10
    compression_level: int = 1
    compact_every: int = 0
    commit_retries: int = 10
    transaction: tuple[str, int] | None = None
    """txnAppId and txnVersion."""
    table: tuple[str, str] | None = None
    checkpoint: str | None = None
    """The streaming query's checkpoint directory, if Spark passes it on."""
    storage: dict[str, str] = field(default_factory=dict)
    catalog: dict[str, str] = field(default_factory=dict)


def lake_options(kind: TableKind, given: Mapping[str, str]) -> LakeOptions:
    """Check the options of a sink. Raises InvalidValueError."""
    table = OptionTable(given, _fault)
    path = table.get("path")
    if path is None:
        raise InvalidValueError("option 'path' is missing: where the table is, what start(...) or save(...) is given")
    columns = table.get("partitionColumns")
    return LakeOptions(
        kind=kind,
        path=path.rstrip("/"),
        partitioning=parse(columns) if columns else (),
        add_columns=table.choice("schemaEvolution", ("none", "add"), "none") == "add",
        target_file_bytes=table.number("targetFileBytes", 128 << 20, 1 << 10),
        row_group_rows=table.number("rowGroupRows", 256 << 10, 1),
        compression_level=table.number("compressionLevel", 1, 1),
        compact_every=table.number("compactEvery", 0, 0),
        commit_retries=table.number("commitRetries", 10, 0),
        transaction=table.application(),
        table=_identifier(table.get("table")),
        checkpoint=table.get("checkpointLocation"),
        storage=table.prefixed("storage."),
        catalog=table.prefixed("catalog."),
    )


def _identifier(text: str | None) -> tuple[str, str] | None:
    if text is None:
        return None
    namespace, dot, name = text.rpartition(".")
    if not dot or not namespace or not name:
        raise InvalidValueError(f"option 'table' is {text!r}; write namespace.name")
    return namespace, name


def _fault(key: str) -> str | None:
    """Return what is wrong with a key; None if nothing is."""
    lower = key.lower()
    if lower in OPTIONS or lower in _SPARK_KEYS or lower.startswith(_PREFIXES):
        return None
    if lower == "partitionby":
        return "option 'partitionBy' is not known; Spark keeps it from Python sinks, so write 'partitionColumns'"
    known = (option.title for option in OPTIONS.values())
    return unknown(key, known, lambda titles: f"known are {titles}, storage.* and catalog.*")
