"""``make demo``: 336,776 real flights through a broker and a Spark job, checked against the data set.

A broker is started on free ports with its data in a directory of its own. The flights are published as JSON, keyed by
tail number, into a topic of four partitions. A Structured Streaming job reads the topic, adds up the delays per origin
and hour of event time, and writes the result to another topic and to Parquet. Both are read back and compared, row by
row, with what Arrow computes from the data set directly; any difference makes the exit code 1.
"""

from __future__ import annotations

import argparse
import contextlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid
import warnings
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table

from examples.demo import flights
from magnetar.model.errors import MagnetarError, ServiceNotReadyError
from magnetar.runtime.clock import steady_seconds
from magnetar.spark.cluster import standalone_cluster
from magnetar.spark.options.sink_options import sink_options
from magnetar.spark.process import await_end
from magnetar.spark.session import end_session, errors_into, local_session
from magnetar.spark.sink.task_sink import TaskSink

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PARTITIONS: Final = 4
_NAMESPACE: Final = "persistent://public/default"
_ROWS: Final = 10_000
_KEYS: Final = ["origin", "hour"]
_BROKER_STOP: Final = 20.0
_POLL: Final = 0.1


class DemoRun(NamedTuple):
    """Where this run works: a broker, two topics of its own, a directory."""

    service_url: str
    flights: str
    delays: str
    directory: Path


class SparkMaster(NamedTuple):
    """Where Spark works: in this process, on a cluster of our own, or on another one."""

    master: str | None = None
    workers: int = 0


class Steps:
    """What is going on, as progress bars with times."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.progress = Progress(
            TextColumn("{task.description:<46}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=console,
        )
        self.seconds: dict[str, float] = {}

    @contextlib.contextmanager
    def step(self, text: str, total: int = 1) -> Iterator[TaskID]:
        """One line; complete when the block ends."""
        task = self.progress.add_task(text, total=total)
        began = steady_seconds()
        yield task
        self.seconds[text] = steady_seconds() - began
        self.progress.update(task, completed=self.progress.tasks[task].total)
        self.progress.stop_task(task)


@contextlib.contextmanager
def running_broker(directory: Path, *settings: str) -> Iterator[str]:
    """A broker in a process of its own, ``settings`` (name=value) added; gives its service URL, ends it by its id."""
    command = [sys.executable, "-m", "magnetar.app.main", "standalone", f"--data={directory / 'broker'}"]
    for setting in (
        "bindAddress=127.0.0.1",
        "brokerServicePort=0",
        "webServicePort=0",
        # A topic that is used for the first time gets four partitions.
        "allowAutoTopicCreationType=partitioned",
        f"defaultNumPartitions={PARTITIONS}",
        *settings,
    ):
        command.append(f"--set={setting}")
    log = directory / "broker.log"
    with log.open("w") as errors, subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True) as broker:
        try:
            assert broker.stdout is not None, "it was asked for"
            ready = next((line for line in broker.stdout if "pulsar://" in line), "")
            if not ready:
                raise ServiceNotReadyError(f"the broker did not start; it said:\n{log.read_text()}")
            yield next(word for word in ready.split() if word.startswith("pulsar://"))
        finally:
            broker.terminate()
            await_end(broker, _BROKER_STOP)


@contextlib.contextmanager
def starting_spark(directory: Path, steps: Steps, place: SparkMaster) -> Iterator[Future[SparkSession]]:
    """A session that a second thread starts; ended in any case."""

    def start() -> SparkSession:
        master = place.master
        if place.workers:
            with steps.step(f"starting a Spark cluster of {place.workers} workers"):
                master = cluster.enter_context(standalone_cluster(directory, place.workers))
        with steps.step("starting Spark"), errors_into(directory / "spark.log"):
            settings = {} if master is None else {"spark.master": master, "spark.executor.memory": "512m"}
            return local_session("magnetar demo", brief=True, settings=settings)

    with contextlib.ExitStack() as cluster, ThreadPoolExecutor(1) as thread:
        session = thread.submit(start)
        try:
            yield session
        finally:
            if session.exception() is None:
                end_session(session.result())


def publish(stage: DemoRun, messages: Any, steps: Steps, task: TaskID) -> int:
    """Send all flights with the sink's own machinery, without Spark; how many the broker has confirmed."""

    def batches() -> Iterator[Any]:
        for batch in messages.to_batches(max_chunksize=_ROWS):
            yield batch
            steps.progress.advance(task, batch.num_rows)

    options = sink_options({"service.url": stage.service_url, "topic": stage.flights})
    return TaskSink(options, None).run(batches()).messages


def delays(spark: SparkSession, stage: DemoRun) -> DataFrame:
    """The streaming aggregation."""
    from pyspark.sql import functions as f

    parsed = (
        spark.readStream.format("pulsar")
        .option("service.url", stage.service_url)
        .option("topic", stage.flights)
        .option("subscription", "delays-per-hour")
        .option("startingOffsets", "earliest")
        .option("value", "string")
        .option("metadata", "__eventTime")
        .load()
        .select(
            f.from_json("value", "origin STRING, dep_delay BIGINT, arr_delay BIGINT").alias("flight"),
            f.date_format(f.date_trunc("hour", "__eventTime"), "yyyy-MM-dd HH:mm").alias("hour"),
        )
    )
    return parsed.groupBy(f.col("flight.origin").alias("origin"), "hour").agg(
        f.count("*").alias("flights"),
        f.count("flight.dep_delay").alias("departed"),
        f.sum("flight.dep_delay").alias("departure_delay"),
        f.count("flight.arr_delay").alias("arrived"),
        f.sum("flight.arr_delay").alias("arrival_delay"),
    )


def stream(spark: SparkSession, stage: DemoRun, steps: Steps, task: TaskID) -> int:
    """Run the job over everything that is there; how many messages Spark says it has read."""

    def write(result: DataFrame, _batch_id: int) -> None:
        result.persist()
        # The whole result each time (output mode complete), so writing it again changes nothing.
        result.write.mode("overwrite").parquet(str(stage.directory / "delays.parquet"))
        (
            result.selectExpr("to_json(struct(*)) AS value", "concat(origin, ' ', hour) AS __key")
            .write.format("pulsar")
            .option("service.url", stage.service_url)
            .option("topic", stage.delays)
            .mode("append")
            .save()
        )
        result.unpersist()

    query = (
        delays(spark, stage)
        .writeStream.outputMode("complete")
        .foreachBatch(write)
        .option("checkpointLocation", str(stage.directory / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    tracker = spark.sparkContext.statusTracker()
    seen: dict[int, tuple[int, int]] = {}
    while query.isActive:
        time.sleep(_POLL)
        for number in tracker.getActiveStageIds():
            info = tracker.getStageInfo(number)
            if info is not None:
                seen[number] = info.numCompletedTasks, info.numTasks
        done, known = (sum(column) for column in zip(*seen.values(), strict=True)) if seen else (0, 1)
        steps.progress.update(task, completed=done, total=known)
    query.awaitTermination()
    return sum(progress.numInputRows for progress in query.recentProgress)


def read_back(spark: SparkSession, stage: DemoRun) -> dict[str, Any]:
    """The result from both places, sorted as the expected one."""
    latest = (
        spark.read.format("pulsar")
        .option("service.url", stage.service_url)
        .option("topic", stage.delays)
        .option("value", "string")
        .option("metadata", "__key,__ledgerId,__entryId,__batchIndex")
        .load()
        # A row that is repeated has its key again: the last one counts.
        .groupBy("__key")
        .agg(_last_value())
        .selectExpr(f"from_json(value, '{flights.RESULT_SCHEMA}') AS row")
        .select("row.*")
    )
    parquet = spark.read.parquet(str(stage.directory / "delays.parquet"))
    order = [(name, "ascending") for name in _KEYS]
    return {
        f"topic {stage.delays}": latest.toArrow().sort_by(order),
        "delays.parquet": parquet.toArrow().sort_by(order),
    }


def _last_value() -> Any:
    from pyspark.sql import functions as f

    return f.max_by("value", f.struct("__ledgerId", "__entryId", "__batchIndex")).alias("value")


def compare(found: Any, expected: Any) -> list[str]:
    """Where two results differ; nothing if they are equal."""
    if found.num_rows != expected.num_rows:
        return [f"{found.num_rows:,} groups instead of {expected.num_rows:,}"]
    different = [
        name
        for name in expected.column_names
        if not found[name].combine_chunks().cast(expected[name].type).equals(expected[name].combine_chunks())
    ]
    return [f"column {name} differs" for name in different]


def show(console: Console, expected: Any, results: dict[str, Any]) -> bool:
    """The totals per origin and the verdict on each result."""
    table = Table(title="New York's departures of 2013, per origin (delays in minutes)")
    totals = flights.totals(expected)
    for name in totals.column_names:
        table.add_column(name.replace("_", " "), justify="left" if name == "origin" else "right")
    for row in totals.to_pylist():
        table.add_row(*(value if isinstance(value, str) else f"{value:,}" for value in row.values()))
    console.print(table)
    good = True
    for name, result in results.items():
        differences = compare(result, expected)
        if not differences and flights.totals(result).to_pylist() != totals.to_pylist():
            differences = ["the totals differ"]
        good = good and not differences
        verdict = "; ".join(differences) or f"{result.num_rows:,} groups, each equal to the data set's own"
        console.print(f"{'[red]DIFFERENT[/red]' if differences else '[green]equal[/green]'}  {name}: {verdict}")
    return good


def run(directory: Path, service_url: str | None, console: Console, place: SparkMaster, rows: int | None) -> bool:
    """The whole demo; whether everything was as expected."""
    steps = Steps(console)
    with contextlib.ExitStack() as stack:
        stack.enter_context(steps.progress)
        # Java takes its seconds while the broker works.
        session = stack.enter_context(starting_spark(directory, steps, place))
        with steps.step("reading the flights"):
            table = flights.load().slice(0, rows)
            expected = flights.expected(table)
            messages = flights.messages(table)
        suffix = ""
        if service_url is None:
            with steps.step("starting the broker"):
                service_url = stack.enter_context(running_broker(directory))
        else:
            # A broker that was there before: topics that nothing else uses.
            suffix = f"-{uuid.uuid4().hex[:8]}"
        stage = DemoRun(service_url, f"{_NAMESPACE}/flights{suffix}", f"{_NAMESPACE}/delays{suffix}", directory)
        text = "publishing"
        with steps.step(text, table.num_rows) as task:
            sent = publish(stage, messages, steps, task)
        published = steps.seconds[text]
        spark = session.result()
        with steps.step("Spark: topic to delays per hour, tasks") as task:
            received = stream(spark, stage, steps, task)
        with steps.step("reading both results back"):
            results = read_back(spark, stage)
        # Before the broker: a query that still runs must not lose it.
        end_session(spark)
    megabytes = messages["value"].nbytes / 1e6
    console.print(
        f"{sent:,} flights published in {published:.1f} s ({sent / published:,.0f}/s, "
        f"{megabytes / published:,.0f} MB/s, every receipt awaited); Spark has read {received:,}"
    )
    if sent != table.num_rows or received != table.num_rows:
        console.print(f"[red]DIFFERENT[/red]  the data set has {table.num_rows:,} flights")
    return show(console, expected, results) and sent == received == table.num_rows


def main() -> int:
    """0 if all results are right."""
    parser = argparse.ArgumentParser(prog="make demo", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--keep", metavar="DIR", type=Path, help="keep topics, Parquet and logs in this new directory")
    parser.add_argument("--broker", metavar="URL", help="use this broker, pulsar://host:port, instead of starting one")
    parser.add_argument("--flights", metavar="N", type=int, help="only the first ones")
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--master", metavar="URL", help="let this Spark work, spark://host:port; it must see our files")
    where.add_argument("--workers", metavar="N", type=int, default=0, help="start a Spark cluster with so many workers")
    arguments = parser.parse_args()
    console = Console()
    warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    keep: Path | None = arguments.keep
    if keep is not None and keep.exists() and any(keep.iterdir()):
        parser.error(f"{keep} is not empty")
    directory = keep.resolve() if keep is not None else Path(tempfile.mkdtemp(prefix="magnetar-demo-"))
    directory.mkdir(parents=True, exist_ok=True)
    good = False
    try:
        place = SparkMaster(arguments.master, arguments.workers)
        good = run(directory, arguments.broker, console, place, arguments.flights)
    except KeyboardInterrupt:
        return 130
    except MagnetarError as error:
        console.print(f"[red]failed[/red]  {error}")
    finally:
        if keep is None and good:
            shutil.rmtree(directory, ignore_errors=True)
        else:
            console.print(f"kept in {directory}: topics (broker), delays.parquet, checkpoint, broker.log, spark.log")
    console.print(
        "Look next: examples/demo/run.py is this job. `make run` starts a broker to stay; "
        'spark.readStream.format("pulsar") reads it.\n`make demo ARGS="--keep DIR"` keeps topics and Parquet, '
        '`ARGS="--broker pulsar://host:6650"` uses your broker, '
        '`ARGS="--workers 2"` a Spark cluster.'
    )
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
