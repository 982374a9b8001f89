"""What a Spark task does to read: ranges to record batches, and which topics and partitions there are."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql.datasource import DataSourceReader, InputPartition

from magnetar.client.gap import DataGap
from magnetar.client.lookup import Lookup
from magnetar.client.place import START, Place
from magnetar.client.reader import RangeReader, first_place, last_place
from magnetar.model.errors import InvalidValueError
from magnetar.model.names import TopicName
from magnetar.spark.decode import ArrowDecoder, chosen_columns
from magnetar.spark.options import SourceOptions, Words
from magnetar.spark.planner import Range, Task, plan

log = logging.getLogger(__name__)


@dataclass
class ReadTask(InputPartition):
    """What travels to a worker."""

    ranges: Task


def open_lookup(options: SourceOptions) -> Lookup:
    """Connections are made by those who use them, in their own process."""
    return Lookup(options.service_url, timeout=options.operation_timeout, token=options.token)


def topic_partitions(lookup: Lookup, topics: tuple[str, ...], *, create: bool) -> list[str]:
    """The internal topics behind ``topics``: partitions, or the topic itself."""
    found: list[str] = []
    for topic in topics:
        count = lookup.partition_count(topic, create=create)
        found += [one.fqn for one in TopicName.parse(topic).partitions(count)] if count else [topic]
    return found


def check_names(words: Words | None, names: list[str], title: str) -> None:
    """JSON offsets must speak of topics that are read."""
    unknown = sorted(words.places.keys() - set(names)) if words is not None else []
    if unknown:
        raise InvalidValueError(f"option {title!r} names {', '.join(unknown)}; read are {', '.join(names)}")


def read_task(options: SourceOptions, task: Task) -> Iterator[Any]:
    """Arrow record batches of all ranges of one task."""
    with open_lookup(options) as lookup:
        for one in task:
            yield from _read_range(options, lookup, one)


def _read_range(options: SourceOptions, lookup: Lookup, one: Range) -> Iterator[Any]:
    decoder = ArrowDecoder(one.topic, options.value, chosen_columns(options.metadata))
    entries = RangeReader(
        lookup,
        one.topic,
        one.start,
        one.end,
        poll_timeout=options.poll_timeout,
        fail_on_data_loss=options.fail_on_data_loss,
        on_gap=_warn,
    )
    for found in entries:
        for ledger, entry, data in found:
            at = (ledger, entry)
            first = one.start.batch if at == one.start[:2] else 0
            stop = one.end.batch if at == one.end[:2] else None
            yield from decoder.add(ledger, entry, data, first, stop)
    yield from decoder.flush()


def _warn(gap: DataGap) -> None:
    log.warning("%s", gap)


class BatchReader(DataSourceReader):
    """For ``spark.read``: from startingOffsets (earliest) to endingOffsets (latest when the job is planned)."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options

    def partitions(self) -> list[InputPartition]:
        """Asks the broker where the topics end now."""
        options = self._options
        with open_lookup(options) as lookup:
            names = topic_partitions(lookup, options.topics, create=False)
            check_names(options.starting, names, "startingOffsets")
            check_names(options.ending, names, "endingOffsets")
            ends = {name: self._end(lookup, name) for name in names}
            starts = {name: self._start(name, ends) for name in names}
            if len(names) < options.min_partitions:
                # Only ranges within one ledger can be split, so the planner has to know where the first one begins.
                starts = {name: first_place(lookup, name) if at == START else at for name, at in starts.items()}
        tasks = plan(starts, ends, least=options.min_partitions, most=options.max_partitions)
        return [ReadTask(task) for task in tasks] or [ReadTask(())]

    def _end(self, lookup: Lookup, name: str) -> Place:
        given = self._options.ending.places.get(name) if self._options.ending is not None else None
        return given if given is not None else last_place(lookup, name)

    def _start(self, name: str, ends: Mapping[str, Place]) -> Place:
        starting = self._options.starting
        if starting is None:
            return START
        return starting.places.get(name, ends[name] if starting.word == "latest" else START)

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """One task's record batches."""
        assert isinstance(partition, ReadTask), f"planned by somebody else: {partition}"
        return read_task(self._options, partition.ranges)
