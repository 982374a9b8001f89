"""Negative acknowledgements that wait for their time (rules 6.2.1 to 6.2.3): one for each entry, however many of its
messages were refused."""

from __future__ import annotations

from collections.abc import Iterable

Place = tuple[int, int]
NEVER = float("inf")


class NegativeAcknowledgements:
    """The entries of one consumer that are to come again."""

    def __init__(self, delay: float) -> None:
        """``delay``: seconds until the broker is asked."""
        self.delay = delay
        self._due: dict[Place, float] = {}

    def add(self, places: Iterable[Place], now: float) -> None:
        """Ask for these after the delay; the first time counts."""
        for place in places:
            self._due.setdefault(place, now + self.delay)

    def drop(self, place: Place) -> None:
        """Do not ask for this one: it was acknowledged."""
        self._due.pop(place, None)

    @property
    def next_due(self) -> float:
        """When the first one is due; `NEVER` if none waits."""
        return next(iter(self._due.values()), NEVER)

    def take_due(self, now: float) -> list[Place]:
        """Return what is due. The delay is the same for all, so they are due in the order they came."""
        found: list[Place] = []
        for place, due in self._due.items():
            if due > now:
                break
            found.append(place)
        for place in found:
            del self._due[place]
        return found

    def clear(self) -> None:
        """Forget all: everything comes again."""
        self._due.clear()
