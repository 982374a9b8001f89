"""Negative acknowledgements that wait for their time (rules 6.2.1 to 6.2.4): one for each entry, however many of its
messages were refused."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Final

from magnetar.client.machines.redelivery.due_entries import DueEntries, Place

PRECISION: Final = 0.256
"""Seconds: what falls due within so long is asked for together, though never early; Java has 8 bits of milliseconds."""
DELAY_MIN: Final = 0.1
"""Seconds: what is refused together is asked for together (rule 6.2.1)."""


class NegativeAcknowledgements:
    """The entries of one consumer that are to come again."""

    def __init__(self, delay: float, backoff: Callable[[int], float] | None = None) -> None:
        """``delay``: seconds until the broker is asked; ``backoff``: seconds by the redelivery count, instead."""
        self._delay = delay
        self._backoff = backoff
        self._due = DueEntries()

    def delay_of(self, redelivery_count: int) -> float:
        """Return after how many seconds a message comes again that has come so often before."""
        if self._backoff is None:
            return self._delay
        return max(self._backoff(redelivery_count), DELAY_MIN)

    def add(self, places: Iterable[Place], now: float, delay: float) -> None:
        """Ask for these after ``delay`` seconds, and up to `PRECISION` or a third of the delay more; 0 is now.

        An entry that waits already comes at the earlier time of both.
        """
        due = now + delay
        if delay > 0:
            grid = min(PRECISION, delay / 3)
            due = math.ceil(due / grid) * grid
        for place in places:
            self._due.add(place, due)

    def drop(self, place: Place) -> None:
        """Do not ask for this one: it was acknowledged."""
        self._due.drop(place)

    def drop_until(self, place: Place) -> None:
        """Do not ask for this one and those before it: they were acknowledged together."""
        if len(self._due):
            self._due.drop_until(place)

    @property
    def next_due(self) -> float:
        """When the first one is due; `due_entries.NEVER` if none waits."""
        return self._due.next_due

    def take_due(self, now: float) -> list[Place]:
        """Return what is due."""
        return self._due.take_due(now)

    def clear(self) -> None:
        """Forget all: everything comes again."""
        self._due.clear()
