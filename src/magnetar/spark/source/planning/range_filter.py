"""Ranges of a batch read made smaller by what pushed filters want (`pushed_filters`), with the broker's help for times.

By ledger and entry this is exact. By publish time it trusts that the clocks of producers, and the time that messages
wait in them, differ by no more than `SKEW_MS`: the broker finds a time by halving the log.
"""

from __future__ import annotations

from typing import Final

from magnetar.client.bulk.positions import first_position, position_at_time
from magnetar.client.lookup import Lookup
from magnetar.client.read_position import START, ReadPosition
from magnetar.runtime.clock import SystemClock
from magnetar.spark.source.planning.planner import Range
from magnetar.spark.source.planning.pushed_filters import Pushed, Window

SKEW_MS: Final = 600_000
_FAR: Final = 1 << 62


def filtered_range(lookup: Lookup, pushed: Pushed, one: Range) -> Range:
    """Return the range or less of it; empty if nothing of it can be wanted."""
    if pushed.window == Window() or one.start >= one.end:
        return one
    start, end = window_bounds(pushed.window)
    start, end = max(start, one.start), min(end, one.end)
    now, window = SystemClock().now_ms(), pushed.window
    if start < end and window.first_ms - SKEW_MS > 0:
        start = max(start, position_at_time(lookup, one.topic, window.first_ms - SKEW_MS, now))
    if start < end and 0 < window.last_ms + SKEW_MS + 1 < now:
        end = min(end, position_at_time(lookup, one.topic, window.last_ms + SKEW_MS + 1, now))
    if one.start == START and START < start < end and start <= first_position(lookup, one.topic):
        # What is not there any more was not asked for.
        start = START
    return one._replace(start=start, end=max(start, end))


def window_bounds(window: Window) -> tuple[ReadPosition, ReadPosition]:
    """Return between which positions the entries are; START and far after everything if they can be anywhere."""
    if window.first_ledger > window.last_ledger or window.first_entry > window.last_entry:
        return START, START
    start = (
        ReadPosition(window.first_ledger, window.first_entry) if window.first_ledger or window.first_entry else START
    )
    if window.last_ledger >= _FAR:
        return start, ReadPosition(_FAR, 0)
    if window.last_entry >= _FAR:
        return start, ReadPosition(window.last_ledger + 1, 0)
    return start, ReadPosition(window.last_ledger, window.last_entry + 1)
