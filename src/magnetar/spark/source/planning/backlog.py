"""What a stream without limits takes of a large backlog, and where its ranges are cut into tasks.

A query that was away for a week should not take the week in one micro-batch. Exact limits want every entry read ahead
(`EntryScanner`), which is too much for a query without limits. So this estimates: entries are counted by their
numbers, ledger by ledger (`split_by_ledger`), and their size is that of a few at the beginning. A query that keeps up
has so few entries before it that nothing is asked at all.

If the estimate is above the allowance, each topic-partition is cut after its share, and all of them are taken up to the
earliest publish time at any of these cuts: partitions advance together here as well, so that a watermark drops nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from magnetar.client.bulk.entry_scanner import entries_at
from magnetar.client.bulk.ledger_ranges import split_by_ledger
from magnetar.client.bulk.positions import first_position, position_at_time
from magnetar.client.lookup import Lookup
from magnetar.client.read_position import START, ReadPosition
from magnetar.runtime.clock import SystemClock

FEW: Final = 256
"""So many entries, at 5 MiB at most each, are no backlog."""
_LEDGERS: Final = 64
"""Looked at per topic-partition and micro-batch."""
_SAMPLE: Final = 50
"""Messages."""

LedgerParts = Sequence[tuple[ReadPosition, ReadPosition]]
"""Consecutive, each in one ledger, but for the last perhaps."""


class BacklogEstimate(NamedTuple):
    """What one topic-partition has that a query has not read yet."""

    parts: LedgerParts
    entry_bytes: int
    """About the size of one entry."""

    @property
    def size(self) -> float:
        """Return about how many bytes it has; infinite if there are more ledgers than were looked at."""
        counts = [entry_count(part) for part in self.parts]
        return sum(float("inf") if count is None else count * self.entry_bytes for count in counts)


def entry_count(part: tuple[ReadPosition, ReadPosition]) -> int | None:
    """Return the number of entries in a part of one ledger; None if it spans several."""
    start, stop = part
    return max(stop.entry - start.entry, 1) if start.ledger == stop.ledger else None


def is_small(start: Mapping[str, ReadPosition], end: Mapping[str, ReadPosition]) -> bool:
    """Return whether nothing has to be asked, because there is little for sure."""
    news = [(start.get(name, START), position) for name, position in end.items() if start.get(name, START) < position]
    counts = [entry_count(part) for part in news]
    return None not in counts and sum(count or 0 for count in counts) <= FEW


def position_after_share(estimate: BacklogEstimate, share: int) -> ReadPosition | None:
    """Return where about ``share`` bytes end; None if there are not so many, or if it is not known where that is."""
    room = max(share // max(estimate.entry_bytes, 1), 1)
    for number, part in enumerate(estimate.parts):
        count = entry_count(part)
        if count is None:
            return part[0] if number else None
        if count > room:
            return ReadPosition(part[0].ledger, part[0].entry + room)
        room -= count
    return None


def backlog_estimates(
    lookup: Lookup, start: Mapping[str, ReadPosition], end: Mapping[str, ReadPosition]
) -> dict[str, BacklogEstimate]:
    """Return the estimate of every topic-partition that has something new."""
    found = {}
    for name, last in end.items():
        first = start.get(name, START)
        if first == START < last:
            first = first_position(lookup, name)
        if first < last:
            sample = entries_at(lookup, name, first, _SAMPLE)
            size = sum(one.size for one in sample) // max(len(sample), 1)
            found[name] = BacklogEstimate(split_by_ledger(lookup, name, first, last, _LEDGERS), size)
    return found


def bounded_end(
    lookup: Lookup,
    found: Mapping[str, BacklogEstimate],
    start: Mapping[str, ReadPosition],
    end: Mapping[str, ReadPosition],
    allowance: int,
) -> dict[str, ReadPosition]:
    """Return where a micro-batch of about ``allowance`` bytes ends; ``end`` if there is no more than that."""
    if sum(estimate.size for estimate in found.values()) <= allowance:
        return dict(end)
    share = allowance // len(found)
    cuts = {
        name: position
        for name, estimate in found.items()
        if (position := position_after_share(estimate, share)) is not None
    }
    times = {
        name: one[0].publish_time for name, position in cuts.items() if (one := entries_at(lookup, name, position))
    }
    if not times:
        return {**end, **cuts}
    horizon, now = min(times.values()), SystemClock().now_ms()
    bound = dict(end)
    for name in found:
        position = cuts.get(name, end[name])
        if times.get(name) != horizon:
            position = min(position, position_at_time(lookup, name, horizon, now))
        bound[name] = max(position, start.get(name, START))
    return bound
