"""Plans tasks from offsets: pure, and a function of its arguments only.

Spark replays a micro-batch with the same offsets after a failure, and a sink that numbers its rows relies on getting
the same tasks then. So nothing here looks at load, time or the broker.

One range per topic-partition that has something new, cut where the caller says: if more tasks are wanted, at the
ledgers that the driver has asked the broker for (`split_by_ledger`). With fewer ranges than ``least``, the largest that
lie within one ledger are halved until there are enough: only there the number of entries is known from the positions
alone. With more ranges than ``most``, they are dealt out to that many tasks, largest first.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from magnetar.client.read_position import START, ReadPosition
from magnetar.spark.offset_json import Cuts


class Range(NamedTuple):
    """Messages ``[start, end)`` of one topic or partition."""

    topic: str
    start: ReadPosition
    end: ReadPosition

    @property
    def entries(self) -> int | None:
        """Return how many entries it has at most; None if it spans ledgers."""
        if self.start.ledger != self.end.ledger:
            return None
        return self.end.entry - self.start.entry + (1 if self.end.batch else 0)


Task = tuple[Range, ...]
"""What one Spark task reads, one range after the other."""


def tasks_of(ranges: list[Range], *, least: int = 0, most: int = 0) -> list[Task]:
    """Return the tasks for ranges, split or put together; 0 is "no limit"."""
    ranges = sorted(one for one in ranges if one.start < one.end)
    while len(ranges) < least:
        index, halves = _largest_split(ranges)
        if not halves:
            break
        ranges[index : index + 1] = halves
    if most and len(ranges) > most:
        return _dealt(ranges, most)
    return [(one,) for one in ranges]


def plan(
    start: Mapping[str, ReadPosition],
    end: Mapping[str, ReadPosition],
    *,
    least: int = 0,
    most: int = 0,
    cuts: Cuts | None = None,
) -> list[Task]:
    """Return the tasks for everything between two offsets; 0 is "no limit".

    A topic ``start`` lacks is read from its start.
    """
    whole = [Range(topic, start.get(topic, START), end[topic]) for topic in sorted(end)]
    ranges = [part for one in whole for part in cut(one, (cuts or {}).get(one.topic, ()))]
    return tasks_of(ranges, least=least, most=most or merged(len(ranges), least))


def cut(one: Range, positions: Sequence[ReadPosition]) -> list[Range]:
    """Cut a range at those positions that lie inside."""
    inside = sorted({position for position in positions if one.start < position < one.end})
    return [Range(one.topic, *pair) for pair in itertools.pairwise([one.start, *inside, one.end])]


def merged(ranges: int, least: int) -> int:
    """Return how many tasks to put ranges into at most: many small ledgers make no more than were asked for."""
    return least if ranges > least > 0 else 0


def _largest_split(ranges: list[Range]) -> tuple[int, list[Range]]:
    """Return which range to halve, and its halves; none if no range is known to have two entries."""
    sizes = [one.entries or 0 for one in ranges]
    if not sizes or max(sizes) < 2:
        return 0, []
    index = sizes.index(max(sizes))
    one = ranges[index]
    middle = ReadPosition(one.start.ledger, one.start.entry + sizes[index] // 2)
    return index, [one._replace(end=middle), one._replace(start=middle)]


def _dealt(ranges: list[Range], most: int) -> list[Task]:
    """Give each range to the task that has least so far; unknown sizes count as the largest known one."""
    known = max((one.entries or 0 for one in ranges), default=0) or 1
    sized = sorted(((one.entries or known, one) for one in ranges), key=lambda pair: (-pair[0], pair[1]))
    estimate: list[tuple[int, int]] = [(0, task) for task in range(most)]
    tasks: list[list[Range]] = [[] for _ in range(most)]
    for size, one in sized:
        load, task = heapq.heappop(estimate)
        tasks[task].append(one)
        heapq.heappush(estimate, (load + size, task))
    return [tuple(sorted(task)) for task in tasks if task]
