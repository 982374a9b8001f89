"""A declared pipeline at a test broker: a file to read JSON, and helpers to fill, run and read topics."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]  # publishes no types

from magnetar.client.bulk.checkpoint_subscription import CheckpointSubscription
from magnetar.client.bulk.positions import last_position
from magnetar.client.lookup import Lookup
from magnetar.client.read_position import START
from magnetar.pipelines.declaration.model import Pipeline, Trigger
from magnetar.pipelines.declaration.parser import parse, problems_of_functions
from magnetar.pipelines.execution.progress import ProgressView
from magnetar.pipelines.execution.run import Stop, run
from magnetar.pipelines.redrive import RedriveMessage, messages
from magnetar.spark.options.sink_options import sink_options
from magnetar.spark.options.source_options import source_options
from magnetar.spark.options.topic_selection import topic_partitions, topics_by_name
from magnetar.spark.sink.task_sink import Numbering, TaskSink
from tests.spark.conftest import PARTITIONS

NAMESPACE = "persistent://public/default"
ROWS = 90
STEPS = """
def doubled(frame, factor):
    from pyspark.sql import functions as f

    mark = f.when(f.col("n") == 7, "seven is not wanted")
    return frame.withColumn("n2", f.col("n") * factor).withColumn("__deadLetter", mark)
"""


def declared(directory: Path, url: str, name: str, rest: str) -> Pipeline:
    """Write and parse the file of a pipeline that reads JSON with a number n and a key."""
    head = f"""
name: {name}
broker: {{service.url: "{url}"}}
checkpoint: work
dead-letter: {name}-dead
trigger: available-now
sources:
  numbers:
    topic: {name}
    startingOffsets: earliest
    maxMessagesPerTrigger: 60
    value: json
    fields: n BIGINT, at TIMESTAMP
    expect:
      small: {{that: n < 1000, otherwise: dead-letter}}
      not eleven: {{that: n <> 11, otherwise: drop}}
"""
    (directory / f"{name}_steps.py").write_text(STEPS)
    file = directory / f"{name}.yaml"
    file.write_text(head + rest)
    pipeline = parse(file.read_text(), str(file))
    assert not problems_of_functions(pipeline)
    return pipeline


def publish(url: str, topic: str, values: list[str], name: str | None = None, number: int = 0) -> None:
    """Publish values, under a producer name of the caller if one is given."""
    rows = pa.RecordBatch.from_pydict({"value": values, "__key": [f"k{len(value)}" for value in values]})
    options = sink_options({"service.url": url, "topic": f"{NAMESPACE}/{topic}"})
    TaskSink(options, None if name is None else Numbering(name, number)).run(iter([rows]))


def stored(url: str, topic: str) -> Iterator[RedriveMessage]:
    """Yield all messages of a topic."""
    with Lookup(url) as lookup:
        for index in range(PARTITIONS):
            partition = f"{NAMESPACE}/{topic}-partition-{index}"
            options = source_options({"service.url": url, "topic": topic})
            yield from messages(lookup, partition, START, last_position(lookup, partition), options)


def keep(url: str, topic: str) -> None:
    """Make a subscription; without one a topic is deleted when it is idle for a minute."""
    with Lookup(url) as lookup:
        for name in topic_partitions(lookup, topics_by_name([f"{NAMESPACE}/{topic}"]), create=True):
            with CheckpointSubscription(lookup, name, "keep") as subscription:
                subscription.hold(START)


def finish(spark: Any, pipeline: Pipeline) -> ProgressView:
    """Run a pipeline until it has processed what is there."""
    watch = ProgressView(pipeline)
    run(spark, pipeline, watch, Stop(), Trigger.AVAILABLE_NOW)
    return watch


class OnPurposeError(Exception):
    """An injected error."""


def fail(*_: object, **__: object) -> None:
    """Raise the injected error."""
    raise OnPurposeError("here")
