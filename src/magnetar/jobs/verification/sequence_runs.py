"""Sequence ids of producers, condensed to runs: what an audit keeps of millions of messages. Pure.

A producer's sequence ids grow from message to message (rules of 3.1), so a range of a topic is, for each producer,
one *run*: first id, last id, how many, from where to where. A new run begins where an id does not grow; with ``dense``
also where one is left out. A clean topic of any size gives a handful of runs, and everything that is wrong shows
between runs:

* an id that does not grow begins a run after one that ends higher: out of order, or a repetition;
* two runs whose ids overlap may hold an id twice: only those ranges are read again, message by message;
* with ``dense``, between the end of one run and the start of the next some ids are missing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from magnetar.client.read_position import ReadPosition

if TYPE_CHECKING:
    from numpy.typing import NDArray


class SequenceRun(NamedTuple):
    """Consecutive messages of one producer in one topic or partition, ids strictly growing."""

    topic: str
    producer: str
    first: int
    """Sequence id of its first message."""
    last: int
    messages: int
    start: ReadPosition
    end: ReadPosition
    """Place of its last message."""


class RunBreak(NamedTuple):
    """Two neighbouring runs of a producer whose ids do not continue as they should."""

    before: SequenceRun
    after: SequenceRun


class IdOverlap(NamedTuple):
    """A range of ids, ``first`` to ``last``, that may be there more than once."""

    topic: str
    producer: str
    first: int
    last: int


class RunBuilder:
    """Builds the runs of one unit from its record batches, given in order."""

    COLUMNS = ("__ledgerId", "__entryId", "__batchIndex", "__producerName", "__sequenceId")

    def __init__(self, topic: str, *, dense: bool) -> None:
        self._topic = topic
        self._dense = dense
        self._open: dict[str, SequenceRun] = {}

    def add(self, batch: Any) -> Iterator[SequenceRun]:
        """Yield the runs that ended in this batch."""
        if not batch.num_rows:
            return
        coded = batch.column("__producerName").dictionary_encode()
        names = coded.dictionary.to_pylist()
        codes = coded.indices.to_numpy()
        ids = batch.column("__sequenceId").to_numpy()
        order = np.argsort(codes, kind="stable") if len(names) > 1 else np.arange(len(codes))
        starts = _starts(codes[order], ids[order], self._dense)
        ends = np.append(starts[1:], len(order)) - 1
        places = [batch.column(name).to_numpy() for name in self.COLUMNS[:3]]
        for at, to in zip(starts.tolist(), ends.tolist(), strict=True):
            first, last = order[at], order[to]
            found = SequenceRun(
                self._topic,
                names[codes[first]],
                int(ids[first]),
                int(ids[last]),
                to - at + 1,
                ReadPosition(*(int(column[first]) for column in places)),
                ReadPosition(*(int(column[last]) for column in places)),
            )
            yield from self._join(found)

    def _join(self, found: SequenceRun) -> Iterator[SequenceRun]:
        before = self._open.get(found.producer)
        if before is not None and goes_on(before, found, dense=self._dense):
            found = joined(before, found)
        elif before is not None:
            yield before
        self._open[found.producer] = found

    def finish(self) -> Iterator[SequenceRun]:
        """Yield the runs that are still open."""
        yield from self._open.values()
        self._open.clear()


def _starts(codes: NDArray[Any], ids: NDArray[Any], dense: bool) -> NDArray[Any]:
    """Return where runs begin among messages that are sorted by producer."""
    step = np.diff(ids)
    new = (np.diff(codes) != 0) | ((step != 1) if dense else (step <= 0))
    return np.concatenate(([0], np.flatnonzero(new) + 1))


def goes_on(before: SequenceRun, after: SequenceRun, *, dense: bool) -> bool:
    """Return whether the second run continues the first one."""
    return after.first == before.last + 1 if dense else after.first > before.last


def joined(before: SequenceRun, after: SequenceRun) -> SequenceRun:
    """Join two runs to one."""
    return before._replace(last=after.last, messages=before.messages + after.messages, end=after.end)


def merged(runs: Iterable[SequenceRun], *, dense: bool) -> list[SequenceRun]:
    """Sort the runs of all units by topic, producer and place, and join those that continue each other."""
    out: list[SequenceRun] = []
    for run in sorted(runs, key=lambda one: (one.topic, one.producer, one.start)):
        last = out[-1] if out else None
        if last is not None and last[:2] == run[:2] and goes_on(last, run, dense=dense):
            out[-1] = joined(last, run)
        else:
            out.append(run)
    return out


def breaks(runs: list[SequenceRun]) -> Iterator[RunBreak]:
    """Yield the breaks between neighbours of `merged` runs."""
    for before, after in pairwise(runs):
        if before[:2] == after[:2]:
            yield RunBreak(before, after)


def overlaps(runs: Iterable[SequenceRun]) -> list[IdOverlap]:
    """Return the ranges of ids that lie in more than one run; ranges that touch are joined."""
    out: list[IdOverlap] = []
    reach: SequenceRun | None = None
    for run in sorted(runs, key=lambda one: (one.topic, one.producer, one.first)):
        if reach is None or reach[:2] != run[:2]:
            reach = run
            continue
        if run.first <= reach.last:
            found = IdOverlap(run.topic, run.producer, run.first, min(run.last, reach.last))
            last = out[-1] if out else None
            if last is not None and last[:2] == found[:2] and found.first <= last.last + 1:
                out[-1] = last._replace(last=max(last.last, found.last))
            else:
                out.append(found)
        if run.last > reach.last:
            reach = run
    return out


def coarse(found: Sequence[IdOverlap], most: int = 64) -> list[IdOverlap]:
    """Join the nearest overlaps until each producer has at most ``most`` in each topic."""
    out: list[IdOverlap] = []
    for _, group in groupby(found, key=lambda one: one[:2]):
        listed = list(group)
        gaps = sorted(range(1, len(listed)), key=lambda at: listed[at].first - listed[at - 1].last, reverse=True)
        cuts = sorted([0, *gaps[: most - 1], len(listed)])
        out += [listed[at]._replace(last=listed[to - 1].last) for at, to in pairwise(cuts)]
    return out
