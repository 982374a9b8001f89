"""What the directory takes against what is promised of it, for metrics and for a warning (docs/disk.md, Space)."""

from __future__ import annotations

import logging
import math
from typing import Final, NamedTuple, Protocol

from magnetar.storage.log.journal import Journal
from magnetar.storage.space.occupancy import Occupancy

log = logging.getLogger(__name__)

SEGMENTS: Final = 5
"""So many segments may be there beside twice what lives."""
_LOOK_SECONDS: Final = 5.0
_LASTS_SECONDS: Final = 30.0
"""What is let go at once is above the bound for a while: that is nothing to warn of."""
_WARNING_SECONDS: Final = 60.0
_MEGABYTE: Final = 1_000_000


class SpaceUse(NamedTuple):
    """Bytes of segments and their indexes at one moment."""

    size: int = 0
    living: int = 0
    bound: int = 0
    """What is promised: not more than this."""

    @property
    def over(self) -> int:
        """Bytes beyond what is promised."""
        return max(self.size - self.bound, 0)


class SpaceUseHome(Protocol):
    """The store, as this sees it."""

    journal: Journal
    occupancy: Occupancy


class SpaceUseLog:
    """Counts now and then, and warns once a minute with figures while more is there than is promised."""

    def __init__(self, home: SpaceUseHome, segment_bytes: int) -> None:
        self._home = home
        self._segment_bytes = segment_bytes
        self.now = SpaceUse()
        """What was counted last."""
        self._counted_at = self._warned_at = -math.inf
        self._over_since = math.inf
        self._written = self._moved = 0

    def count(self, now: float, newest_covered: int, *, promised: bool) -> None:
        """Count, unless that was done a moment ago; ``promised``: whether anything is moved at all."""
        seconds = now - self._counted_at
        if seconds < _LOOK_SECONDS:
            return
        journal, occupancy = self._home.journal, self._home.occupancy
        sealed = max(journal.segment - 1 - newest_covered, 0)
        size = sum(occupancy.sizes.values()) + journal.open_bytes + sealed * self._segment_bytes
        living = sum([occupancy.living(number) for number in occupancy.numbers()])
        self.now = SpaceUse(size, living, 2 * living + SEGMENTS * self._segment_bytes)
        moved, written = journal.moved_bytes - self._moved, journal.bytes_written - self._written
        self._counted_at, self._moved, self._written = now, journal.moved_bytes, journal.bytes_written
        self._over_since = min(self._over_since, now) if self.now.over and promised else math.inf
        if now >= max(self._over_since + _LASTS_SECONDS, self._warned_at + _WARNING_SECONDS):
            self._warned_at = now
            log.warning(
                "segments take %d MB, %d MB more than twice what lives (%d MB) and %d segments: in the last %.0f s "
                "%.1f MB/s were moved to make room and %.1f MB/s were written by clients; this machine or its disk is "
                "too busy to move as much as it takes, or spaceReclaimBytesPerSecond is too low",
                self.now.size / _MEGABYTE, self.now.over / _MEGABYTE, living / _MEGABYTE, SEGMENTS, seconds,
                moved / seconds / _MEGABYTE, (written - moved) / seconds / _MEGABYTE,
            )  # fmt: skip
