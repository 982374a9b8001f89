"""Slices of a size: arithmetic over runs of entries, against a naive count of each entry."""

from __future__ import annotations

import itertools
import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magnetar.client.bulk.entry_info import EntryInfo
from magnetar.client.read_position import START, ReadPosition
from magnetar.model.errors import InvalidValueError
from magnetar.spark.options.limits import TaskSizes
from magnetar.spark.options.source_options import source_options
from magnetar.spark.source.planning.planner import Range, cut
from magnetar.spark.source.planning.slices import WeightedRun, even_cuts, runs_by_entry, slices

BASE = {"service.url": "pulsar://localhost:6650", "topic": "t"}


@given(st.lists(st.tuples(st.integers(1, 40), st.integers(0, 5)), min_size=1, max_size=6), st.integers(1, 12))
def test_slices_are_as_even_as_entries_allow(shape: list[tuple[int, int]], count: int) -> None:
    runs = [
        WeightedRun(ReadPosition(ledger, 7), entries, weight / 10) for ledger, (entries, weight) in enumerate(shape)
    ]
    positions = even_cuts(runs, count)
    assert positions == sorted(set(positions)) and len(positions) < count
    every = [
        (ReadPosition(run.first.ledger, run.first.entry + n), run.weight) for run in runs for n in range(run.entries)
    ]
    total, largest = sum(weight for _, weight in every), max(run.weight for run in runs)
    borders = [START, *positions, ReadPosition(99, 0)]
    parts = [sum(weight for at, weight in every if one <= at < two) for one, two in itertools.pairwise(borders)]
    # Each border is less than an entry from where it should be.
    assert max(parts) <= total / count + largest + 1e-6
    assert sum(parts) == pytest.approx(total)
    assert all(any(one <= at < two for at, _ in every) for one, two in itertools.pairwise(borders)), "an empty slice"


@given(
    st.dictionaries(st.sampled_from("abc"), st.integers(1, 500), min_size=1),
    st.integers(1, 60),
    st.integers(0, 30),
    st.integers(0, 9),
)
def test_no_task_has_more_unless_there_may_be_no_more_tasks(
    counts: dict[str, int], records: int, least: int, most: int
) -> None:
    sizes = TaskSizes(messages=records)
    runs = {topic: [WeightedRun(ReadPosition(3, 0), count, sizes.weight(1, 100))] for topic, count in counts.items()}
    found = slices(runs, least=least, most=most)
    ranges = {
        topic: cut(Range(topic, ReadPosition(3, 0), ReadPosition(3, count)), found.get(topic, ()))
        for topic, count in counts.items()
    }
    number = sum(map(len, ranges.values()))
    if most:
        assert number <= most + len(counts)
    else:
        assert all((one.entries or 0) <= records for some in ranges.values() for one in some)
        assert number >= min(least, sum(counts.values()))


def test_entries_that_are_known_count_as_what_is_read_of_them() -> None:
    entries = [EntryInfo(1, entry, 10, 1_000, 0) for entry in range(6)]
    whole = runs_by_entry(entries, START, ReadPosition(1, 6), TaskSizes(messages=20))
    assert whole == [WeightedRun(ReadPosition(1, entry), 1, 0.5) for entry in range(6)]
    part = runs_by_entry(entries, ReadPosition(1, 1, 5), ReadPosition(1, 4, 2), TaskSizes(messages=20, size=500))
    assert part == [
        WeightedRun(ReadPosition(1, 1), 1, 1.0),
        WeightedRun(ReadPosition(1, 2), 1, 2.0),
        WeightedRun(ReadPosition(1, 3), 1, 2.0),
        WeightedRun(ReadPosition(1, 4), 1, 0.4),
    ]
    assert slices({"t": whole}) == {"t": [ReadPosition(1, 2), ReadPosition(1, 4)]}
    # The first slice does not begin before where the query is.
    assert slices({"t": part}) == {"t": [ReadPosition(1, 2), ReadPosition(1, 3), ReadPosition(1, 4)]}


def test_a_range_of_unknown_size_is_not_cut(caplog: pytest.LogCaptureFixture) -> None:
    nothing = [WeightedRun(ReadPosition(1, 0), 100, 0.0)]
    assert slices({"t": nothing}) == slices({"t": nothing}, least=5) == slices({}) == {}
    with caplog.at_level(logging.WARNING):
        found = slices({"t": [WeightedRun(ReadPosition(1, 0), 100, 1.0)]}, tasks_max=10)
    assert len(found["t"]) == 9
    assert "100 tasks are wanted, 10 are made" in caplog.text


def test_the_options_per_partition_are_the_sizes_of_tasks() -> None:
    assert source_options(BASE).sizes == TaskSizes()
    found = source_options({**BASE, "maxRecordsPerPartition": "5", "maxbytesperpartition": "700"}).sizes
    assert (found, found.weight(10, 70), found.weight(1, 1400)) == (TaskSizes(5, 700), 2.0, 2.0)
    with pytest.raises(InvalidValueError, match="a number from 1"):
        source_options({**BASE, "maxBytesPerPartition": "0"})
