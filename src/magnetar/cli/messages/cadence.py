"""Rates: so many a second, by an absolute schedule, so that a late wake-up is made up for."""

from __future__ import annotations

import asyncio
import math
from typing import Final

from magnetar.model.errors import InvalidValueError

_STORED: Final = 1.0
"""Seconds of turns that are made up for at most; a longer pause is gone."""

_ROUNDING: Final = 1e-6
"""Of a turn: a wake-up at the very moment of a turn must not find that it has not come."""


def check_rate(rate: float) -> None:
    """Raise InvalidValueError about what is no rate."""
    if not math.isfinite(rate) or rate < 0:
        raise InvalidValueError(f"--rate: a number from 0 on is expected, and not {rate}")


class Cadence:
    """Turns at a rate; 0 is as fast as possible."""

    def __init__(self, rate: float, now: float) -> None:
        self.rate = rate
        self._start = now
        self._taken = 0

    def due(self, now: float) -> int:
        """Return how many turns have come and were not taken."""
        behind = (now - self._start) - self._taken / self.rate
        if behind > _STORED:
            self._start += behind - _STORED
        return int((now - self._start) * self.rate + _ROUNDING) + 1 - self._taken

    def take(self, count: int = 1) -> None:
        """Take turns."""
        self._taken += count

    def intended(self) -> float:
        """Return when the next turn was to come."""
        return self._start + self._taken / self.rate

    async def turn(self) -> None:
        """Wait for the next turn, and take it."""
        if self.rate <= 0:
            return
        loop = asyncio.get_running_loop()
        if self.due(loop.time()) < 1:
            await asyncio.sleep(max(self.intended() - loop.time(), 0.0))
        self.take()
