"""Tokens that come back at a steady rate (docs/decisions/036). Pure: the caller says what time it is."""

from __future__ import annotations

from math import floor
from typing import Final

BURST: Final = 0.1
"""How much of a period's tokens a bucket holds."""
_LEAST: Final = 1.5
"""Tokens that a bucket holds at least: who takes one a moment late loses nothing."""
STEP_S: Final = 0.01
"""What comes back in this time is worth a wake-up."""
_NEARLY: Final = 1e-6
"""What sums of fractions may lack of a whole token."""


class TokenBucket:
    """``amount`` tokens come back in each ``period_s`` seconds. The level may be overdrawn by what was taken last."""

    __slots__ = ("_at", "_level", "amount", "capacity", "per_second")

    def __init__(self, amount: float, period_s: float, now: float) -> None:
        """``amount`` is above zero; a period below one second counts as one."""
        self.amount = amount
        period_s = max(period_s, 1.0)
        self.per_second = amount / period_s
        self.capacity = max(amount * BURST, _LEAST)
        self._level = max(amount * BURST, 1.0)
        self._at = now

    def available(self, now: float) -> int:
        """Whole tokens; negative while what was overdrawn is not paid off."""
        if now > self._at:
            self._level = min(self._level + (now - self._at) * self.per_second, self.capacity)
            self._at = now
        return floor(self._level + _NEARLY)

    def take(self, tokens: float) -> None:
        """Take so many, which may be more than there are; the clock is that of the last question."""
        self._level -= tokens

    def wait_s(self, now: float) -> float:
        """Seconds until a wake-up is worth it; 0 if there is a token now."""
        if self.available(now) >= 1:
            return 0.0
        worth = min(max(self.per_second * STEP_S, 1.0), self.capacity)
        return (worth - self._level) / self.per_second

    def change(self, amount: float, period_s: float, now: float) -> None:
        """From now on so many come back; the level stays, as far as the bucket holds it."""
        self.available(now)
        self.amount = amount
        self.per_second = amount / max(period_s, 1.0)
        self.capacity = max(amount * BURST, _LEAST)
        self._level = min(self._level, self.capacity)
