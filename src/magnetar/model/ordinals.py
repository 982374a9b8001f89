"""Sets of ordinals that are read in order: entries to send again, entries that a transaction has acknowledged. Pure."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Collection, Iterable, Sequence
from typing import Final

_ONE_BY_ONE_MAX: Final = 500
"""Of a list of any length: each one moves half of it, which takes a thousandth of looking at each of its members."""


class SortedOrdinals:
    """Ordinals in ascending order, each once.

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
        """Add one; the cheapest case is one above all others."""
        ordinals = self._ordinals
        if not ordinals or ordinal > ordinals[-1]:
            ordinals.append(ordinal)
        elif ordinal not in self:
            insort(ordinals, ordinal)

    def extend(self, ordinals: Iterable[int]) -> None:
        """Add many, each named once; those that are members already stay once."""
        new = sorted(ordinals)
        if not new:
            return
        if not self._ordinals or new[0] > self._ordinals[-1]:
            self._ordinals += new
        elif self._few(len(new)):
            for ordinal in new:
                self.add(ordinal)
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
        if self._few(len(ordinals)):
            for ordinal in ordinals:
                self.discard(ordinal)
        else:
            gone = set(ordinals)
            self._ordinals = [ordinal for ordinal in self._ordinals if ordinal not in gone]

    def _few(self, count: int) -> bool:
        """Whether to move so many one by one takes less than making the list anew."""
        return count <= max(4, min(len(self._ordinals) >> 4, _ONE_BY_ONE_MAX))

    def front(self, entries_max: int) -> list[int]:
        """The lowest members, at most so many."""
        return self._ordinals[:entries_max]

    def next_missing(self, ordinal: int) -> int:
        """The smallest one from ``ordinal`` on that is no member."""
        ordinals = self._ordinals
        at = bisect_left(ordinals, ordinal)
        # in a row each member is as far beyond its place as the first one, after a gap it is farther
        beyond = bisect_right(range(len(ordinals)), ordinal - at, at, key=lambda i: ordinals[i] - i)
        return ordinal + beyond - at

    def within(self, start: int, stop: int) -> Sequence[int]:
        """The members from ``start`` to ``stop - 1``."""
        return self._ordinals[bisect_left(self._ordinals, start) : bisect_left(self._ordinals, stop)]

    def remove_range(self, start: int, stop: int) -> None:
        """Take out everything from ``start`` to ``stop - 1``."""
        del self._ordinals[bisect_left(self._ordinals, start) : bisect_left(self._ordinals, stop)]

    def remove_until(self, ordinal: int) -> None:
        """Take out everything up to and including ``ordinal``."""
        del self._ordinals[: bisect_right(self._ordinals, ordinal)]

    def clear(self) -> None:
        """Take out everything."""
        self._ordinals.clear()

    def check(self) -> None:
        """Assert the order; for tests."""
        assert all(a < b for a, b in zip(self._ordinals, self._ordinals[1:], strict=False))
