"""When acknowledgements are written: at once after a pause, and otherwise with those that follow within milliseconds.

An acknowledgement costs the client a write and the broker a wake-up. The first one after a pause goes at the end of the
turn; those after it go together, a hundred times a second at most. With a time of the application's own they wait that
long for others, as in Java's and C++'s clients.
"""

from __future__ import annotations

from typing import Final

PACE: Final = 0.01
"""Seconds from one writing to the next, at least; a broker makes acknowledgements durable every 20 ms."""
_EARLY: Final = 0.001
"""Timers of an event loop may come a moment early."""


class AckPace:
    """The pace of one consumer on one topic."""

    __slots__ = ("_at_once", "_group_size", "_group_time", "_since", "_written")

    def __init__(self, group_time: float, group_size: int, *, at_once: bool) -> None:
        """``group_time``: seconds that acknowledgements wait for others, 0 for the pace; ``group_size``: as many do not
        wait; ``at_once``: the application awaits each, so that none waits without a time of the application's own."""
        self._group_time = group_time
        self._group_size = group_size
        self._at_once = at_once and not group_time
        self._written = -PACE
        self._since: float | None = None

    def due(self, now: float, count: int) -> float:
        """Return when so many acknowledgements that wait are to be written; up to ``now`` is at once."""
        if self._at_once or count >= self._group_size:
            return now
        if not self._group_time:
            due = self._written + PACE
        else:
            if self._since is None:
                self._since = now
            due = self._since + self._group_time
        return due if due > now + _EARLY else now

    def hurry(self) -> None:
        """Let what waits be due at once."""
        self._written = self._since = -PACE - self._group_time

    def written(self, now: float) -> None:
        """Note that they were written."""
        self._written = now
        self._since = None
