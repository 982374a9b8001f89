"""How long group commits take, counted after their receipts are out: no receipt waits for statistics."""

from __future__ import annotations

from magnetar.runtime.distributions import Quantiles
from magnetar.storage.log.write_group import CALLBACK_FAILED, WriteGroup, WriteTimes, log


class WriteLatency:
    """What the groups of one journal took, for all of its entries together and for each extent's owner."""

    __slots__ = ("entries", "summary")

    def __init__(self) -> None:
        self.entries = 0
        """Entries that were made durable."""
        self.summary = Quantiles()
        """Milliseconds from the oldest entry of a group to the group's receipts, counted for each of its entries."""

    def count(self, group: WriteGroup) -> None:
        """Count a group that ended; its extents' owners are given how long it took."""
        times = self.add(group)
        try:
            for _, extent in group.extents:
                extent.owner.on_counted(extent, times)
        except Exception:
            log.exception(CALLBACK_FAILED)

    def add(self, group: WriteGroup) -> WriteTimes:
        """Count a group for all of its entries together; the caller gives what is returned to the extents' owners."""
        times, entries = group.measured()
        self.entries += entries
        self.summary.add(times.waited_ms, entries)
        return times
