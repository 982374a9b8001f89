"""Entries by the time at which something is due for them: one item for each, however often it is added (rule 6.2.2)."""

from __future__ import annotations

import heapq
from typing import Final

Place = tuple[int, int]
"""Ledger and entry."""

NEVER: Final = float("inf")
_SPARE: Final = 64


class DueEntries:
    """Entries in groups of one time; the callers round times, so that many share a group.

    ``waiting_max``: when more wait, the groups due first are due at once; nothing is forgotten.
    """

    def __init__(self, waiting_max: int = 100_000) -> None:
        self._max = waiting_max
        self._groups: dict[float, dict[Place, None]] = {}
        self._time_of: dict[Place, float] = {}
        self._times: list[float] = []
        """A heap of the groups' times, and of those of groups that are gone."""

    def __len__(self) -> int:
        return len(self._time_of)

    def __contains__(self, place: object) -> bool:
        return place in self._time_of

    def add(self, place: Place, due: float) -> None:
        """Have an entry due then, unless it is due earlier already."""
        known = self._time_of.get(place)
        if known is not None:
            if known <= due:
                return
            self._remove(place, known)
        self._time_of[place] = due
        group = self._groups.get(due)
        if group is None:
            self._groups[due] = {place: None}
            heapq.heappush(self._times, due)
        else:
            group[place] = None

    def drop(self, place: Place) -> None:
        """Forget an entry."""
        due = self._time_of.pop(place, None)
        if due is not None:
            self._remove(place, due)

    def drop_until(self, place: Place) -> None:
        """Forget an entry and all before it."""
        for one in [known for known in self._time_of if known <= place]:
            self.drop(one)

    def _remove(self, place: Place, due: float) -> None:
        group = self._groups[due]
        del group[place]
        if group:
            return
        del self._groups[due]
        if len(self._times) > 2 * len(self._groups) + _SPARE:
            self._times = list(self._groups)
            heapq.heapify(self._times)

    @property
    def next_due(self) -> float:
        """When the first one is due; `NEVER` if none waits."""
        times = self._times
        while times and times[0] not in self._groups:
            heapq.heappop(times)
        if not times:
            return NEVER
        return -NEVER if len(self._time_of) > self._max else times[0]

    def take_due(self, now: float) -> list[Place]:
        """Return and forget what is due, by time."""
        found: list[Place] = []
        while self.next_due <= now:
            group = self._groups.pop(heapq.heappop(self._times))
            for place in group:
                del self._time_of[place]
            found += group
        return found

    def clear(self) -> None:
        """Forget all."""
        self._groups.clear()
        self._time_of.clear()
        self._times.clear()

    def check(self) -> None:
        """Assert what must always hold: each entry is in the group of its time, and each group has its time."""
        assert sum(len(group) for group in self._groups.values()) == len(self._time_of)
        assert all(place in self._groups[due] for place, due in self._time_of.items())
        assert all(group for group in self._groups.values())
        assert self._groups.keys() <= set(self._times)
