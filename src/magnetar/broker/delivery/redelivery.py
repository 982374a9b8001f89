"""Entries that have to go out again, and how often they did.

Both live in memory only: an unload or the last consumer's leave forgets them (SEMANTICS 5.8.3, 5.8.4).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Collection, Iterable, Sequence


class ReplayQueue:
    """Ordinals to send again, ascending (5.5.5), each once.

    A sorted list: bulk adds are one merge, the front leaves by one slice, a single discard is a binary search.
    """

    __slots__ = ("_ordinals",)

    def __init__(self) -> None:
        self._ordinals: list[int] = []

    def __len__(self) -> int:
        return len(self._ordinals)

    def __contains__(self, ordinal: int) -> bool:
        at = bisect_left(self._ordinals, ordinal)
        return at < len(self._ordinals) and self._ordinals[at] == ordinal

    def add(self, ordinal: int) -> None:
        ordinals = self._ordinals
        if not ordinals or ordinal > ordinals[-1]:
            ordinals.append(ordinal)
        elif ordinal not in self:
            insort(ordinals, ordinal)

    def extend(self, ordinals: Iterable[int]) -> None:
        """Add many; those already queued stay once."""
        new = sorted(ordinals)
        if not new:
            return
        if not self._ordinals or new[0] > self._ordinals[-1]:
            self._ordinals += new
        else:
            self._ordinals = sorted(set(self._ordinals).union(new))

    def discard(self, ordinal: int) -> bool:
        """Take one out; whether it was there."""
        at = bisect_left(self._ordinals, ordinal)
        if at < len(self._ordinals) and self._ordinals[at] == ordinal:
            del self._ordinals[at]
            return True
        return False

    def discard_all(self, ordinals: Collection[int]) -> None:
        """Take many out."""
        if len(ordinals) <= 4:
            for ordinal in ordinals:
                self.discard(ordinal)
        else:
            gone = set(ordinals)
            self._ordinals = [ordinal for ordinal in self._ordinals if ordinal not in gone]

    def front(self, entries_max: int) -> list[int]:
        return self._ordinals[:entries_max]

    def within(self, start: int, stop: int) -> Sequence[int]:
        """The queued ordinals from ``start`` to ``stop - 1``."""
        return self._ordinals[bisect_left(self._ordinals, start) : bisect_left(self._ordinals, stop)]

    def remove_range(self, start: int, stop: int) -> None:
        """Take out everything from ``start`` to ``stop - 1``."""
        del self._ordinals[bisect_left(self._ordinals, start) : bisect_left(self._ordinals, stop)]

    def remove_until(self, ordinal: int) -> None:
        """Take out everything up to and including ``ordinal``."""
        del self._ordinals[: bisect_right(self._ordinals, ordinal)]

    def clear(self) -> None:
        self._ordinals.clear()

    def check(self) -> None:
        assert all(a < b for a, b in zip(self._ordinals, self._ordinals[1:], strict=False))


class RedeliveryCounts:
    """How often an explicit request sent each entry again; absent means never.

    The dict is public because the hot path asks only whether it is empty.
    """

    __slots__ = ("counts",)

    def __init__(self) -> None:
        self.counts: dict[int, int] = {}

    def bump(self, ordinals: Iterable[int]) -> None:
        """One more redelivery of each: a nack or an acknowledgement timeout, never a disconnect (5.8.4)."""
        counts = self.counts
        for ordinal in ordinals:
            counts[ordinal] = counts.get(ordinal, 0) + 1

    def forget(self, ordinal: int) -> None:
        self.counts.pop(ordinal, None)

    def clear(self) -> None:
        self.counts.clear()
