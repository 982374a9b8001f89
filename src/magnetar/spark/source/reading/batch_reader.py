"""What a Spark task does to read: ranges to record batches; and batch reads, planned when the job is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from pyspark.sql.datasource import DataSourceReader, InputPartition

from magnetar.client.bulk.ledger_ranges import split_by_ledger
from magnetar.client.bulk.positions import first_position
from magnetar.client.lookup import Lookup
from magnetar.client.read_position import START
from magnetar.spark.options.limits import TaskSizes
from magnetar.spark.options.offsets import NamedOffset
from magnetar.spark.options.source_options import SourceOptions, TopicOffsets, open_lookup
from magnetar.spark.options.topic_selection import check_known, topic_partitions
from magnetar.spark.source.planning.offset_resolution import resolve_end, resolve_start
from magnetar.spark.source.planning.planner import Range, cut, merged, tasks_of
from magnetar.spark.source.planning.pushed_filters import EVERYTHING, understood
from magnetar.spark.source.planning.range_filter import filtered_range
from magnetar.spark.source.planning.slices import runs_by_ledger, slices
from magnetar.spark.source.reading.read_task import ReadTask, read_task


def _by_ledger(lookup: Lookup, one: Range) -> list[Range]:
    """Return a range as ranges within one ledger, which alone can be split."""
    start = first_position(lookup, one.topic) if one.start == START else one.start
    return [Range(one.topic, *part) for part in split_by_ledger(lookup, one.topic, start, one.end)]


def _sliced(lookup: Lookup, ranges: list[Range], options: SourceOptions) -> list[Range]:
    runs = {one.topic: runs_by_ledger(lookup, *one, options.sizes) for one in ranges if one.start < one.end}
    cuts = slices(
        {topic: some for topic, some in runs.items() if some}, least=options.min_partitions, most=options.max_partitions
    )
    return [part for one in ranges for part in cut(one, cuts.get(one.topic, ()))]


class BatchReader(DataSourceReader):
    """The reader of ``spark.read``: from startingOffsets (earliest) to endingOffsets (latest when the job is
    planned)."""

    def __init__(self, options: SourceOptions, schema: Any) -> None:
        """Take ``schema``, the pa.Schema of the rows."""
        self._options = options
        self._schema = schema
        self._pushed = EVERYTHING

    def partitions(self) -> list[InputPartition]:
        """Plan the tasks; asks the broker where the topics end now."""
        options, pushed = self._options, self._pushed
        starting = options.starting if options.starting is not None else TopicOffsets(NamedOffset.EARLIEST, {})
        ending = options.ending if options.ending is not None else TopicOffsets(NamedOffset.LATEST, {})
        with open_lookup(options) as lookup:
            names = topic_partitions(lookup, options.topics, create=False)
            check_known(starting.exceptions, names, "startingOffsets")
            check_known(ending.exceptions, names, "endingOffsets")
            names = [name for name in names if pushed.keeps_topic(name)]
            strict = options.fail_on_data_loss
            ends = {name: resolve_end(lookup, name, ending.of(name), strict=strict) for name in names}
            starts = {
                name: ends[name]
                if (at := starting.of(name)) is NamedOffset.LATEST
                else resolve_start(lookup, name, at, strict=strict)
                for name in names
            }
            ranges = [filtered_range(lookup, pushed, Range(name, starts[name], ends[name])) for name in names]
            least, most = options.min_partitions, options.max_partitions
            if options.sizes != TaskSizes():
                ranges, least = _sliced(lookup, ranges, options), 0
            elif len(names) < least:
                ranges = [part for one in ranges for part in _by_ledger(lookup, one)]
        tasks = tasks_of(ranges, least=least, most=most or merged(len(ranges), least))
        return [ReadTask(task) for task in tasks] or [ReadTask(())]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Yield one task's record batches."""
        assert isinstance(partition, ReadTask), f"not planned by this reader: {partition}"
        return read_task(self._options, partition.ranges, self._pushed)


class FilteringBatchReader(BatchReader):
    """The reader with the option ``pushDownFilters``.

    A class of its own, since Spark refuses a reader with this method while the setting
    spark.sql.python.filterPushdown.enabled is off. And an option, since Spark 4.3 keeps what was planned with pushed
    filters and gives it to the next query over the same DataFrame too, if that has no filter to push.
    """

    def pushFilters(self, filters: list[Any]) -> Iterable[Any]:
        """Apply what is understood; returns the filters that Spark has to apply."""
        self._pushed, left = understood(filters, self._schema)
        return left
