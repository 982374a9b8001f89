"""Sinks that commit tables: Parquet, Delta, Iceberg; exactly once by transaction id.

May import spark and what is below it, pyarrow, deltalake, pyiceberg and obstore. In reading order:

* `options`        what can be set, checked once
* `partition`      rows to partitions
* `schema`         does a query's schema fit a table's
* `history`        commits, and from versions to topic positions and back
* `data_file`, `layout`, `statistics`  what a task says of a file, and how files are to be
* `lineage`, `file_reader`  which files hold which micro-batches, and single files, for those who verify
* `store`          the one way to files, local or in an object store
* `file_writer`    what a task does with its rows
* `checkpoint`     what a sink can learn from its query's checkpoint
* `table`          what every kind of table can do
* `packing`        which small files are put together
* `parquet_log`, `parquet_table`     a directory of Parquet with a commit log of ours
* `delta_table`, `iceberg_table`, `iceberg_files`  by delta-rs and pyiceberg
* `kinds`          from options to a table
* `committing`     the driver's side of a sink
* `sink`           what Spark is told; `register`
* `merge`, `delta_merge`  change capture into a Delta table
* `lake`, `command` a table from outside of Spark: history, topic positions, upkeep
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from magnetar.lakehouse.lake import Lake, open_lake

__all__ = ["Lake", "open_lake", "register"]


def __getattr__(name: str) -> Any:
    """`Lake` and `open_lake`, when they are asked for: a command's help needs neither Arrow nor a table's library."""
    if name in __all__:
        from magnetar.lakehouse import lake

        return getattr(lake, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def register(spark: SparkSession) -> None:
    """Make ``format("magnetar-parquet")``, ``magnetar-delta`` and ``magnetar-iceberg`` known to a session."""
    from magnetar.lakehouse.sink import register as register_sinks

    register_sinks(spark)
