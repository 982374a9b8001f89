"""How values are distributed: counts per bucket, and quantiles over the last minutes, for /metrics.

Both are fed once per group of like events (a group commit, a request), never per message, and take a few hundred bytes
however much they have seen.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence
from math import ceil, log
from typing import Final

_STEP: Final = log(1.02)
"""Quantiles are right within 1 %: neighbouring cells are 2 % apart."""
_LEAST: Final = 1e-3
_CELLS: Final = tuple(range(1200))
"""The numbers of all cells up to 20,000,000: an int of its own for each cell that is counted, made in the middle of a
burst, would keep the memory around it (docs/decisions/062)."""
QUANTILES: Final = (0.5, 0.75, 0.95, 0.99, 0.999, 0.9999, 1.0)
"""The quantiles that Apache Pulsar's summaries show."""


class Buckets:
    """How many values were at most each bound, none counted twice, and how many were above all."""

    __slots__ = ("bounds", "counts", "sum")

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.sum: float = 0.0

    def add(self, value: float, times: int = 1) -> None:
        """Count ``value``, which was seen ``times`` times."""
        self.counts[bisect_left(self.bounds, value)] += times
        self.sum += value * times

    def add_each(self, values: Iterable[int]) -> None:
        """Count all values, in a few steps if they are alike: there is no step per value."""
        ordered = sorted(values)
        if not ordered:
            return
        self.sum += sum(ordered)
        bounds, counts = self.bounds, self.counts
        place, last = bisect_left(bounds, ordered[0]), bisect_left(bounds, ordered[-1])
        done = 0
        while place < last:
            reached = bisect_right(ordered, bounds[place])
            counts[place] += reached - done
            done = reached
            place += 1
        counts[last] += len(ordered) - done

    @property
    def count(self) -> int:
        """How many values there were."""
        return sum(self.counts)

    def cumulative(self) -> list[tuple[float, int]]:
        """Each bound, infinity as the last, with the number of values that were at most it."""
        total, found = 0, []
        for bound, count in zip((*self.bounds, math.inf), self.counts, strict=True):
            total += count
            found.append((bound, total))
        return found

    def take(self) -> tuple[float, ...]:
        """The counts and, last, the sum; they begin again at 0."""
        taken = (*self.counts, self.sum)
        self.counts[:] = [0] * len(self.counts)
        self.sum = 0.0
        return taken


class Quantiles:
    """A summary: number and sum since the start, quantiles of the last one to two periods.

    Values are positive; what is below a thousandth counts as a thousandth. :meth:`turn` ends a period.
    """

    __slots__ = ("_before", "_now", "count", "sum")

    def __init__(self) -> None:
        self.count = 0
        self.sum = 0.0
        self._now: defaultdict[int, int] = defaultdict(int)
        self._before = self._now.copy()

    def add(self, value: float, times: int = 1) -> None:
        """Count ``value``, which was seen ``times`` times."""
        self.count += times
        self.sum += value * times
        cell = ceil(log(value / _LEAST) / _STEP) if value > _LEAST else 0
        self._now[_CELLS[cell] if cell < len(_CELLS) else cell] += times

    def turn(self) -> None:
        """Forget the period before the last."""
        # no dictionary is made: objects that come again and again keep the memory of bursts (docs/decisions/062)
        self._before, self._now = self._now, self._before
        self._now.clear()

    def of(self, quantiles: Sequence[float] = QUANTILES) -> list[tuple[float, float]]:
        """Each quantile with its value, NaN while there is none."""
        cells = dict(self._before)
        for cell, count in self._now.items():
            cells[cell] = cells.get(cell, 0) + count
        ordered = sorted(cells)
        total = sum(cells.values())
        found: list[tuple[float, float]] = []
        for quantile in quantiles:
            wanted, seen, value = quantile * total, 0, math.nan
            for cell in ordered:
                seen += cells[cell]
                value = _LEAST * math.exp((cell - 0.5) * _STEP) if cell else _LEAST
                if seen >= wanted:
                    break
            found.append((quantile, value))
        return found


class Summaries:
    """Quantiles by a word, such as the namespace; bounded, what is one too many counts under ``other``."""

    __slots__ = ("_most", "by_word")

    def __init__(self, most: int = 1000) -> None:
        self.by_word: dict[str, Quantiles] = {}
        self._most = most

    def add(self, word: str, value: float) -> None:
        """Count ``value`` under ``word``."""
        found = self.by_word.get(word)
        if found is None:
            if len(self.by_word) >= self._most:
                word = "other"
            found = self.by_word.setdefault(word, Quantiles())
        found.add(value)

    def turn(self) -> None:
        """End a period."""
        for each in self.by_word.values():
            each.turn()
