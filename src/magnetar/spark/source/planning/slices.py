"""Slices ranges so that a task has about no more than a number of messages or bytes.

Options ``maxRecordsPerPartition`` and ``maxBytesPerPartition``; bytes are those of entries as stored. What a range
holds is given as runs of entries, all of which are the same part of a task. With the limits of a micro-batch every
entry has been read ahead and is a run of its own (`runs_by_entry`). Otherwise each ledger is a run: its entries are
counted by their numbers, and their size is that of a few at its beginning (`runs_by_ledger`).

A range is sliced evenly, and at entries only. Slices need not end where ledgers do, so many small ledgers make no more
tasks than one large. All of this is done once, by the driver that plans; the slices then stand in the offset of a
micro-batch, so a driver that plans it again gets the same tasks, whatever the options say by then.
"""

from __future__ import annotations

import itertools
import logging
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from magnetar.client.bulk.entry_info import EntryInfo
from magnetar.client.bulk.entry_scanner import entries_at
from magnetar.client.bulk.ledger_ranges import split_by_ledger
from magnetar.client.bulk.positions import first_position
from magnetar.client.lookup import Lookup
from magnetar.client.read_position import START, ReadPosition
from magnetar.spark.options.limits import TaskSizes

log = logging.getLogger(__name__)

TASKS_MAX: Final = 10_000
"""The tasks that a batch read or micro-batch may have: Spark's driver holds all of them, and a micro-batch's stand in
its offset."""
_SAMPLES: Final = 8
"""Ledgers of a range that are looked into."""
_SAMPLE: Final = 50
"""Messages of each."""


class WeightedRun(NamedTuple):
    """Entries that follow each other in one ledger."""

    first: ReadPosition
    entries: int
    weight: float
    """The part of a task that each entry is."""


def runs_by_entry(
    entries: Iterable[EntryInfo], start: ReadPosition, end: ReadPosition, sizes: TaskSizes
) -> list[WeightedRun]:
    """Return the runs of entries that are known, between two positions."""
    found = []
    for one in entries:
        at = ReadPosition(one.ledger, one.entry)
        if start[:2] <= at[:2] and at < end:
            first = start.batch if at[:2] == start[:2] else 0
            stop = min(one.messages, end.batch) if at[:2] == end[:2] else one.messages
            part = max(stop - first, 0) / max(one.messages, 1)
            found.append(WeightedRun(at, 1, sizes.weight(one.messages * part, one.size * part)))
    return found


def runs_by_ledger(
    lookup: Lookup, topic: str, start: ReadPosition, end: ReadPosition, sizes: TaskSizes
) -> list[WeightedRun]:
    """Estimate the runs of a range, one for each ledger.

    This takes two short sessions per ledger to find them, and one for each of a few that are looked into.
    """
    first = first_position(lookup, topic) if start == START else start
    parts = split_by_ledger(lookup, topic, first, end) if first < end else []
    step = -(-len(parts) // _SAMPLES) or 1
    found, weight = [], 0.0
    for number, (begin, stop) in enumerate(parts):
        if number % step == 0 and (sample := entries_at(lookup, topic, begin, _SAMPLE)):
            count = len(sample)
            weight = sizes.weight(sum(one.messages for one in sample) / count, sum(one.size for one in sample) / count)
        # The last part may be in several ledgers, and it is not known how many entries that is.
        entries = stop.entry - begin.entry + (1 if stop.batch else 0) if begin.ledger == stop.ledger else 1
        found.append(WeightedRun(begin, max(entries, 1), weight))
    return found


def slices(
    runs: Mapping[str, Sequence[WeightedRun]], *, least: int = 0, most: int = 0, tasks_max: int = TASKS_MAX
) -> dict[str, list[ReadPosition]]:
    """Return where to slice the topics' ranges: each into as many tasks as its weight, more if there are fewer than
    ``least``.

    ``most`` (0: no limit) comes before that: no more slices then, unless there are more topics; `planner` deals these.
    """
    weights = {topic: sum(run.entries * run.weight for run in some) for topic, some in runs.items()}
    counts = {topic: max(math.ceil(round(weight, 6)), 1) for topic, weight in weights.items()}
    allowed = min(most or tasks_max, tasks_max)
    if not most and sum(counts.values()) > tasks_max:
        log.warning("%d tasks are wanted, %d are made: raise the limit per task", sum(counts.values()), tasks_max)
    wanted = min(max(sum(counts.values()), least), allowed)
    found = _allotted(weights, counts, wanted)
    return {topic: positions for topic, some in runs.items() if (positions := even_cuts(some, found[topic]))}


def _allotted(weights: Mapping[str, float], counts: Mapping[str, int], wanted: int) -> dict[str, int]:
    """Return about ``wanted`` slices in all, by weight; each topic has at least one."""
    total, have = sum(weights.values()), sum(counts.values())
    if have == wanted or not total:
        return dict(counts)
    round_ = math.floor if have > wanted else math.ceil
    return {topic: max(round_(wanted * weight / total), 1) for topic, weight in weights.items()}


def even_cuts(runs: Sequence[WeightedRun], count: int) -> list[ReadPosition]:
    """Return the ``count - 1`` positions, or fewer, that cut the runs into parts of about equal weight."""
    share = sum(run.entries * run.weight for run in runs) / count
    found: set[ReadPosition] = set()
    before, number = 0.0, 1
    for run, following in itertools.zip_longest(runs, runs[1:]):
        after = before + run.entries * run.weight
        while run.weight and number < count and (target := number * share) < after:
            offset = round((target - before) / run.weight)
            if offset < run.entries:
                found.add(ReadPosition(run.first.ledger, run.first.entry + offset))
            elif following is not None:
                # After the last entry of a ledger is the same as before the first of the next one.
                found.add(following.first)
            number += 1
        before = after
    return sorted(position for position in found if position[:2] > runs[0].first[:2])
