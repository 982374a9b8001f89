"""What a Spark task does to read: ranges of topic-partitions to Arrow record batches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pyspark.sql.datasource import InputPartition

from magnetar.client.lookup import Lookup
from magnetar.columnar.arrow_decoder import ArrowDecoder, chosen_columns
from magnetar.spark.interpreter import settle
from magnetar.spark.options.source_options import SourceOptions, open_lookup
from magnetar.spark.source.planning.planner import Range, Task
from magnetar.spark.source.planning.pushed_filters import EVERYTHING, Pushed, Window
from magnetar.spark.source.reading.range_entries import range_blocks
from magnetar.spark.source.reading.value_schemas import value_decoder


@dataclass
class ReadTask(InputPartition):
    """The part of a plan that travels to a worker."""

    ranges: Task


def read_task(options: SourceOptions, task: Task, pushed: Pushed = EVERYTHING) -> Iterator[Any]:
    """Yield Arrow record batches of all ranges of one task."""
    with open_lookup(options) as lookup:
        for one in task:
            yield from map(pushed.rows, _read_range(options, lookup, one, pushed.window))
    settle("reader")


def _read_range(options: SourceOptions, lookup: Lookup, one: Range, window: Window) -> Iterator[Any]:
    decoder = ArrowDecoder(one.topic, value_decoder(options, lookup, one.topic), chosen_columns(options.metadata))
    for block in range_blocks(options, lookup, one, window):
        yield from decoder.add_block(block)
    yield from decoder.flush()
