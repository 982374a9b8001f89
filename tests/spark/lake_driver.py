"""A driver of its own with one query per kind of table, which stops where it is to be killed. For `test_lakehouse`.

In mode ``halt`` each query's sink stops in micro-batch 1, some before the commit of the table, some after it, reports
it by a file, and waits to be killed. In mode ``finish`` the queries go on to micro-batch 2 and end; there the first
attempt of a task fails after it has written its files.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from pyspark import TaskContext
from pyspark.sql.datasource import WriterCommitMessage

from magnetar.lakehouse import commit as committing
from magnetar.lakehouse import sink
from magnetar.lakehouse.formats.table import TableChange
from magnetar.lakehouse.model.history import Note
from magnetar.lakehouse.model.options import TableKind, lake_options
from magnetar.spark.session import local_session

ROWS: Final = 1000
"""The rows of a micro-batch."""
BATCHES: Final = 3
HALTED_AT: Final = 1
QUERIES: Final = {
    # Kind of table, and whether the driver dies after its commit.
    "parquet": (TableKind.PARQUET, True),
    "delta": (TableKind.DELTA, False),
    "iceberg": (TableKind.ICEBERG, True),
    "wrong": (TableKind.DELTA, True),
}


class OnPurposeError(Exception):
    """Injected."""


class HaltingSink(sink.LakeStreamWriter):
    """The writer of one query, with everything in it that its workers need."""

    def __init__(self, name: str, halting: bool, directory: str, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._name = name
        self._halting = halting
        self._marker = Path(directory) / f"{name}.halted"

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        done = super().write(iterator)
        context = TaskContext.get()
        last = context is not None and context.getLocalProperty("streaming.sql.batchId") == str(BATCHES - 1)
        if last and context is not None and not context.attemptNumber() and not context.partitionId():
            raise OnPurposeError("after the files were written")
        return done

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        halting = self._halting and batchId == HALTED_AT
        after = QUERIES[self._name][1]
        if halting and not after:
            self._halt()
        if self._name == "wrong":
            commit = committing.commit
            # No transaction: what a sink does that only appends.
            committing.commit = lambda options, change: commit(options, _nameless(change))
            super().commit(messages, batchId)
            committing.commit = commit
        else:
            super().commit(messages, batchId)
        if halting:
            self._halt()

    def _halt(self) -> None:
        self._marker.touch()
        time.sleep(600)


def _nameless(change: TableChange) -> TableChange:
    return change._replace(note=Note())


def source_class(name: str, halting: bool, directory: str) -> type[sink.LakeSource]:
    """``format("<name>")``."""

    chosen = QUERIES[name][0]

    class Source(sink.LakeSource):
        kind = chosen

        @classmethod
        def name(cls) -> str:
            return f"halting-{name}"

        def streamWriter(self, schema: Any, overwrite: bool) -> sink.LakeStreamWriter:
            return HaltingSink(name, halting, directory, lake_options(self.kind, self.options), schema, overwrite)

    return Source


def main() -> None:
    directory, mode = sys.argv[1:]
    settings = {"spark.master": "local[2,4]", "spark.log.level": "OFF", "spark.sql.streaming.pollingDelay": "10ms"}
    spark = local_session("lake", brief=True, memory="768m", settings=settings)
    queries = []
    for name in QUERIES:
        spark.dataSource.register(source_class(name, mode == "halt", directory))
        rows = spark.readStream.format("rate-micro-batch").options(rowsPerBatch=ROWS, numPartitions=2).load()
        # The source has no end: what comes after the last micro-batch that counts brings nothing.
        rows = rows.where(f"value < {BATCHES * ROWS}")
        writer = rows.writeStream.format(f"halting-{name}").option(
            "checkpointLocation", f"{directory}/{name}.checkpoint"
        )
        queries.append(writer.start(f"{directory}/{name}"))
    for query in queries:
        while query.isActive and (query.lastProgress is None or query.lastProgress.batchId < BATCHES - 1):
            time.sleep(0.05)
        if query.exception() is not None:
            sys.stderr.write(f"{query.exception()}\n")
            sys.exit(1)
    for query in queries:
        query.stop()


if __name__ == "__main__":
    main()
