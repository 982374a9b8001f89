"""A driver of its own: topic to topic, with a share of its task attempts failing. Started and killed by `rounds`.

Half of those attempts fail on the way, after some rows were sent, the others after everything was stored.

* ``ours`` has no shuffle; ``staged`` has one, whose number of tasks changes with each life, and the option ``staging``.
* ``refused`` has that shuffle and no staging: it must end with an error that names the ways out.

The wrong variants show that the counting works: ``random-names`` gives every attempt a name of its own, as connectors
without deduplication have it; ``no-resume`` begins each attempt at the first row, so that the broker drops or refuses
entries; ``unguarded`` is ``refused`` with the guard and the digest switched off.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
import uuid
from bisect import bisect_right
from collections.abc import Iterator
from typing import Any

from pyspark import TaskContext
from pyspark.sql.datasource import WriterCommitMessage

from magnetar.spark.data_source import PulsarSource
from magnetar.spark.options.sink_options import sink_options
from magnetar.spark.session import local_session
from magnetar.spark.sink.sequence_ids import StoredRows
from magnetar.spark.sink.task_sink import TaskSink
from magnetar.spark.sink.writers import StreamWriter, check_schema

SHARE = "tests.failing"
"""A local property of the session: which share of the attempts fails."""
AFTER = "after"
"""A share in its place: all attempts fail, after everything was stored."""
_ATTEMPTS = 12


class OnPurposeError(Exception):
    """Injected."""


class FlakyStream(StreamWriter):
    """Fails in a share of the attempts, but not in the last one."""

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        context = TaskContext.get()
        assert context is not None
        wish = context.getLocalProperty(SHARE) or "0.25"
        share = 1.0 if wish == AFTER else float(wish)
        chance = random.random() if context.attemptNumber() < _ATTEMPTS - 1 else 1.0
        if chance < share / 2 and wish != AFTER:
            return super().write(_broken_off(iterator))
        done = super().write(iterator)
        if chance < share:
            raise OnPurposeError("after everything was stored")
        return done


def _broken_off(batches: Iterator[Any]) -> Iterator[Any]:
    for batch in batches:
        cut = random.randrange(batch.num_rows + 1)
        yield batch.slice(0, cut)
        raise OnPurposeError("on the way")


class NamelessSink(TaskSink):
    """Wrong on purpose."""

    def __init__(self, options: Any, numbering: Any) -> None:
        super().__init__(options, numbering._replace(name=f"{numbering.name}.{uuid.uuid4().hex}"))


class ForgetfulSink(TaskSink):
    """Wrong on purpose."""

    def known(self, last_sequence_id: int, batch: int, where: str) -> StoredRows:
        return StoredRows(-1, batch, where)


class Credulous(StoredRows):
    """Wrong on purpose: skips rows by their number alone, as if they were the same."""

    def stored_of(self, ids: list[int]) -> int:
        return bisect_right(ids, self.last)

    def compare(self, row: int, digest: int) -> None:
        """It will be right."""

    def finish(self) -> None:
        """It will be right."""


class CredulousSink(TaskSink):
    """Wrong on purpose."""

    def known(self, last_sequence_id: int, batch: int, where: str) -> StoredRows:
        return Credulous(last_sequence_id, batch, where)


SINKS: dict[str, type[TaskSink]] = {
    "ours": TaskSink,
    "staged": TaskSink,
    "refused": TaskSink,
    "random-names": NamelessSink,
    "no-resume": ForgetfulSink,
    "unguarded": CredulousSink,
}
SHUFFLED = ("staged", "refused", "unguarded")


def source_class(variant: str) -> type[PulsarSource]:
    """``format("pulsar")`` with that sink."""

    class Stream(FlakyStream):
        task_sink = SINKS[variant]

    class Source(PulsarSource):
        def streamWriter(self, schema: Any, overwrite: bool) -> StreamWriter:
            options = sink_options(self.options)
            check_schema(options, schema, overwrite)
            return Stream(options)

    return Source


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("url", "source", "target", "checkpoint", "variant"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--adaptive", choices=["true", "false"], default="false")
    parser.add_argument("--finish", action="store_true")
    arguments = parser.parse_args()
    settings = {
        "spark.master": f"local[2,{1 if arguments.variant == 'refused' else _ATTEMPTS}]",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "200",
        "spark.sql.adaptive.enabled": arguments.adaptive,
        "spark.sql.shuffle.partitions": "4",
    }
    spark = local_session("once", brief=True, memory="768m", settings={**settings, "spark.log.level": "OFF"})
    spark.dataSource.register(source_class(arguments.variant))
    frame = (
        spark.readStream.format("pulsar")
        .option("service.url", arguments.url)
        .option("topic", arguments.source)
        .option("subscription", "once")
        .option("startingOffsets", "earliest")
        .option("metadata", "__key")
        # Borders of micro-batches fall inside entries.
        .option("maxMessagesPerTrigger", "7777")
        .load()
    )
    if arguments.variant in SHUFFLED:
        # With adaptive execution one task, without it four.
        frame = frame.repartition("__key")
    writer = (
        frame.writeStream.format("pulsar")
        .option("service.url", arguments.url)
        .option("topic", arguments.target)
        .option("pulsar.producer.batchingMaxMessages", "50")
        .option("checkpointLocation", arguments.checkpoint)
    )
    if arguments.variant == "staged":
        writer = writer.option("staging", f"{arguments.checkpoint}-stage")
    elif arguments.variant == "unguarded":
        writer = writer.option("repeatable", "true")
    query = (writer.trigger(availableNow=True) if arguments.finish else writer).start()
    seen = -1
    while query.isActive:
        progress = query.lastProgress
        if progress is not None and progress.batchId != seen:
            seen = progress.batchId
            _say(f"batch {seen}, {progress.numInputRows} rows")
        time.sleep(0.05)
    query.awaitTermination()


if __name__ == "__main__":
    main()
