"""How often entries went out again.

The counts live in memory only: an unload or the last consumer's leave forgets them (rules 5.8.3, 5.8.4).
"""

from __future__ import annotations

from collections.abc import Iterable


class RedeliveryCounts:
    """How often an explicit request sent each entry again; absent means never.

    The dict is public because the hot path asks only whether it is empty.
    """

    __slots__ = ("counts",)

    def __init__(self) -> None:
        self.counts: dict[int, int] = {}

    def bump(self, ordinals: Iterable[int]) -> None:
        """One more redelivery of each: a nack or an acknowledgement timeout, never a disconnect (rule 5.8.4)."""
        counts = self.counts
        for ordinal in ordinals:
            counts[ordinal] = counts.get(ordinal, 0) + 1

    def forget(self, ordinal: int) -> None:
        self.counts.pop(ordinal, None)

    def clear(self) -> None:
        self.counts.clear()
