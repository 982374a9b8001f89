"""What the application has had for too long without a word (rules of 6.3).

    received --timeout + backoff(n)--> due, at the next tick --> asked for again

The time of an entry begins when its first message is handed to the application, not when it comes into the queue; it
ends with the acknowledgement of the whole entry, or with a negative one, which has a time of its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from magnetar.client.machines.redelivery.due_entries import DueEntries, Place
from magnetar.client.machines.redelivery.redelivery_backoff import DELAY_MAX_MS
from magnetar.model.errors import InvalidValueError

TIMEOUT_MIN_MS: Final = 1_000
"""As the Java client; the C++ client takes 10 s and more (rule 6.3.1)."""


@dataclass(frozen=True, slots=True)
class AckTimeoutLimits:
    """How long an application may have a message; times in seconds."""

    timeout: float
    tick: float = 1.0
    backoff: Callable[[int], float] | None = None
    """Seconds more, by the redelivery count."""

    @staticmethod
    def of_ms(timeout: float | None, tick: float, backoff: Callable[[int], float] | None) -> AckTimeoutLimits | None:
        """Return the limits for milliseconds as applications give them; None or 0 is off. Raises InvalidValueError."""
        if timeout is None or timeout == 0:
            if backoff is not None:
                raise InvalidValueError(
                    "ack_timeout_redelivery_backoff has no effect without unacked_messages_timeout_ms"
                )
            return None
        if not TIMEOUT_MIN_MS <= timeout <= DELAY_MAX_MS:
            raise InvalidValueError(
                f"unacked_messages_timeout_ms {timeout} is below {TIMEOUT_MIN_MS} (0 is off), or above ten years"
            )
        if not 1 <= tick <= DELAY_MAX_MS:
            raise InvalidValueError(f"ack_timeout_tick_ms {tick} is not above 0")
        return AckTimeoutLimits(timeout / 1_000, min(tick, timeout) / 1_000, backoff)


class AckTimeouts:
    """The entries of one consumer that its application has."""

    def __init__(self, limits: AckTimeoutLimits) -> None:
        self._limits = limits
        self._due = DueEntries(waiting_max=1 << 62)  # the broker bounds what is unacknowledged

    def received(self, place: Place, redelivery_count: int, now: float) -> None:
        """Begin an entry's time, unless it runs already."""
        if place in self._due:
            return
        limits = self._limits
        due = now + limits.timeout
        if limits.backoff is not None:
            due += max(limits.backoff(redelivery_count), 0.0)
        self._due.add(place, math.ceil(due / limits.tick) * limits.tick)

    def drop(self, place: Place) -> None:
        """End an entry's time: the application has said something about it."""
        self._due.drop(place)

    def drop_until(self, place: Place) -> None:
        """End the time of an entry and of all before it."""
        self._due.drop_until(place)

    @property
    def next_due(self) -> float:
        """When the first one is due; `due_entries.NEVER` if the application has none."""
        return self._due.next_due

    def take_due(self, now: float) -> list[Place]:
        """Return what is due."""
        return self._due.take_due(now)

    def clear(self) -> None:
        """Forget all: everything comes again."""
        self._due.clear()
