"""How long a message waits before it comes again, by how often it has come already (rules 6.2.4, 6.3.3)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol, runtime_checkable

from magnetar.client.arguments import kinds
from magnetar.model.errors import InvalidValueError

DELAY_MAX_MS: Final = 10 * 365 * 24 * 3_600 * 1_000
"""Ten years: the longest delay that is taken anywhere; a bound against overflow."""

_NUMBER: Final = kinds.number(0, DELAY_MAX_MS, "milliseconds or times")


@runtime_checkable
class RedeliveryBackoff(Protocol):
    """What an application may write by itself."""

    def next(self, redelivery_count: int) -> float:
        """Return the milliseconds to wait; ``redelivery_count`` is 0 after the first delivery."""
        ...


@dataclass(frozen=True, slots=True)
class MultiplierRedeliveryBackoff:
    """``min_delay_ms`` × ``multiplier`` ^ redelivery count, ``max_delay_ms`` at most; Java's defaults.

    ``jitter`` is the part of each delay, 0 to 1, that is taken off at random, so that what failed together does not
    come again together.
    """

    min_delay_ms: float = 10_000
    max_delay_ms: float = 600_000
    multiplier: float = 2.0
    jitter: float = 0.0

    def __post_init__(self) -> None:
        """Raises InvalidValueError."""
        for name in ("min_delay_ms", "max_delay_ms", "multiplier", "jitter"):
            _NUMBER.check(name, getattr(self, name))
        if not 0 <= self.min_delay_ms <= self.max_delay_ms <= DELAY_MAX_MS:
            raise InvalidValueError(
                f"a backoff from {self.min_delay_ms} to {self.max_delay_ms} ms: "
                "give 0 <= min_delay_ms <= max_delay_ms, ten years at most"
            )
        if not 1 < self.multiplier <= 1_000_000:
            raise InvalidValueError(f"the multiplier {self.multiplier} is not above 1 (and up to a million)")
        if not 0 <= self.jitter <= 1:
            raise InvalidValueError(f"the jitter {self.jitter} is not from 0 to 1")

    def next(self, redelivery_count: int) -> float:
        """Return the milliseconds to wait, before the jitter."""
        delay = float(self.min_delay_ms)
        if delay > 0 and redelivery_count > 0:
            try:
                delay = min(delay * self.multiplier**redelivery_count, float(self.max_delay_ms))
            except OverflowError:
                delay = float(self.max_delay_ms)
        return delay


def seconds_of(backoff: RedeliveryBackoff, chance: Callable[[], float]) -> Callable[[int], float]:
    """Return a backoff in seconds, which raises InvalidValueError where an application's gives no delay at all.

    ``chance`` gives numbers from 0 to 1 for the jitter. Raises InvalidValueError about what is no backoff.
    """
    if not isinstance(backoff, RedeliveryBackoff):
        raise InvalidValueError(
            f"{type(backoff).__name__} is no backoff: give a MultiplierRedeliveryBackoff, "
            "or what has next(redelivery_count)"
        )

    jitter = backoff.jitter if isinstance(backoff, MultiplierRedeliveryBackoff) else 0.0

    def seconds(redelivery_count: int) -> float:
        delay: object = backoff.next(redelivery_count)
        if not isinstance(delay, int | float) or not 0 <= delay <= DELAY_MAX_MS:
            raise InvalidValueError(
                f"{type(backoff).__name__} gives {delay!r} for {redelivery_count}; a delay is 0 ms to ten years"
            )
        return delay * (1 - jitter * chance()) / 1_000 if jitter else delay / 1_000

    return seconds
