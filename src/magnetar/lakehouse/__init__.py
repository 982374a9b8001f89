"""Sinks that commit tables: Parquet, Delta, Iceberg; exactly once by transaction id.

In reading order:

* ``model``             what a table is, pure: options, partitions, schemas, history, data files
* ``files``             data files, local or in an object store: written, read, described
* ``formats``           what every kind of table can do; Parquet with a commit log of ours, Delta, Iceberg
* ``query_checkpoint``  what a sink can learn from its query's checkpoint
* ``commit``            the driver's side of a sink
* ``sink``              what Spark calls; `register`
* ``merge``             change capture into a Delta table
* ``lake``              a table from outside of Spark: history, topic positions, upkeep
* ``abandonable_work``  work on a table that a signal can end at once
* ``command``           ``magnetar lake``
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from magnetar.lakehouse.formats.table import FileCompaction
    from magnetar.lakehouse.lake import Lake, TableVerification, open_lake
    from magnetar.lakehouse.model.history import Commit

__all__ = ["Commit", "FileCompaction", "Lake", "TableVerification", "open_lake", "register"]
_EXPORTS: Final = {
    "Commit": "magnetar.lakehouse.model.history",
    "FileCompaction": "magnetar.lakehouse.formats.table",
    "Lake": "magnetar.lakehouse.lake",
    "TableVerification": "magnetar.lakehouse.lake",
    "open_lake": "magnetar.lakehouse.lake",
}
"""Where programs' names come from: a command's help needs neither Arrow nor a table's library."""


def __getattr__(name: str) -> Any:
    """Import a public name when it is used."""
    if name in _EXPORTS:
        return getattr(importlib.import_module(_EXPORTS[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def register(spark: SparkSession) -> None:
    """Make ``format("magnetar-parquet")``, ``magnetar-delta`` and ``magnetar-iceberg`` known to a session."""
    from magnetar.lakehouse.sink import register as register_sinks

    register_sinks(spark)
