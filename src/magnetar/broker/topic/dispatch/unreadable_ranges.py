"""Entries of one subscription's backlog that cannot be read: named once, and what was skipped of them.

A range that is damaged on disk stays in the backlog, and the subscription waits before it, until an operator says
that it is to be skipped (REST), or not at all with ``autoSkipNonRecoverableData``. Messages whose metadata no client
can read are skipped at once. What was skipped stays known, so that an operator who looks at the subscription sees the
gap. Nothing on disk is touched.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

_RANGES_MAX: Final = 1000
"""Ranges that are shown; more are only counted."""


class UnreadableRanges:
    """Ranges are half-open, of ordinals."""

    __slots__ = ("entries_skipped", "skipped", "waiting")

    def __init__(self) -> None:
        self.waiting: tuple[int, int] | None = None
        """What cannot be read and is in the way."""
        self.skipped: list[tuple[int, int]] = []
        self.entries_skipped = 0

    def met(self, start: int, stop: int) -> bool:
        """Reading ended here; whether that is new, and to be named."""
        new = self.waiting != (start, stop)
        self.waiting = (start, stop)
        return new

    def passed(self, entries: int) -> None:
        """What was in the way is skipped; so many of its entries were not acknowledged before."""
        assert self.waiting is not None
        self.entries_skipped += entries
        start, stop = self.waiting
        self.waiting = None
        self._extend(start, stop)

    def add(self, ordinals: Iterable[int]) -> None:
        """These entries, ascending, are skipped one by one."""
        for ordinal in ordinals:
            self.entries_skipped += 1
            self._extend(ordinal, ordinal + 1)

    def _extend(self, start: int, stop: int) -> None:
        if self.skipped and self.skipped[-1][1] == start:
            self.skipped[-1] = (self.skipped[-1][0], stop)
        elif len(self.skipped) < _RANGES_MAX:
            self.skipped.append((start, stop))
