"""Wall-clock time, read in one place so that tests and the simulator can replace it."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """The source of times that are stored or shown; durations and timers come from the event loop."""

    def now_ms(self) -> int:
        """Milliseconds since the Unix epoch."""
        ...


class SystemClock:
    """The machine's clock."""

    def now_ms(self) -> int:
        return int(time.time() * 1000)


def steady_seconds() -> float:
    """A clock that never goes back, for blocking code, which has no event loop to ask for the time of a deadline."""
    return time.monotonic()
