"""Sinks that commit tables: Parquet, Delta, Iceberg; exactly once by transaction id.

May import spark and what is below it, pyarrow, deltalake, pyiceberg and obstore. In reading order:

* ``model``             what a table is, pure: options, partitions, schemas, history, data files
* ``files``             data files, local or in an object store: written, read, described
* ``formats``           what every kind of table can do; Parquet with a commit log of ours, Delta, Iceberg
* ``query_checkpoint``  what a sink can learn from its query's checkpoint
* ``commit``            the driver's side of a sink
* ``sink``              what Spark calls; `register`
* ``merge``             change capture into a Delta table
* ``lake``              a table from outside of Spark: history, topic positions, upkeep
* ``command``           ``magnetar lake``
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from magnetar.lakehouse.lake import Lake, open_lake

__all__ = ["Lake", "open_lake", "register"]


def __getattr__(name: str) -> Any:
    """Import `Lake` and `open_lake` when they are used: a command's help needs neither Arrow nor a table's library."""
    if name in __all__:
        from magnetar.lakehouse import lake

        return getattr(lake, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def register(spark: SparkSession) -> None:
    """Make ``format("magnetar-parquet")``, ``magnetar-delta`` and ``magnetar-iceberg`` known to a session."""
    from magnetar.lakehouse.sink import register as register_sinks

    register_sinks(spark)
