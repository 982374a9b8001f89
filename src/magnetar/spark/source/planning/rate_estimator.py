"""How many messages a micro-batch may have so that it takes about as long as the user wants: ``targetTriggerMs``.

Spark has no adaptive limit for structured streaming, and the source sees little: when it planned a
micro-batch, and when Spark asks for the next one, which it does once the first is done. Idle time is what passes
between that question and the next plan, and is not counted. The rate is the average of what micro-batches showed,
later ones weighing more; the first one is small.

Two things spoil that view. A micro-batch that took all there was says little about how much more it could have taken,
so it counts only if it took too long. And with a trigger that has an interval, Spark asks at the next tick, not when it
is done. That is seen by time that does not follow the number of messages: more of them that took no longer, or fewer
that took as long. Then the limit grows, more with each time, until it does follow.

Pure: times are given. Nothing of this has to be repeatable, since a repeated micro-batch has its end from the
checkpoint (`stream_reader`).
"""

from __future__ import annotations

from typing import Final, NamedTuple

from magnetar.spark.options.limits import ReadLimits

FIRST: Final = 1_000
"""Messages of the first micro-batch."""
_NEWEST: Final = 0.5
"""What the last micro-batch weighs in the average."""
_STEP: Final = 0.1
_STEP_MAX: Final = 1.0
_AS_LONG: Final = 1.05
"""More messages took no longer if they took at most this many times as long."""
_FEWER: Final = 0.25
_STILL: Final = 0.9
"""So many fewer messages took as long if they took at least this part of the time."""


class _Planned(NamedTuple):
    messages: int
    full: bool
    """There was more than the limit let through."""
    at: float


class _Seen(NamedTuple):
    messages: int
    seconds: float


class RateEstimator:
    """Estimates the rate of one query, in one process."""

    def __init__(self, target: float) -> None:
        """Take as ``target`` the seconds that a micro-batch should take."""
        self._target = target
        self._rate: float | None = None
        """Messages per second."""
        self._step = _STEP
        self._planned: _Planned | None = None
        self._before: _Seen | None = None

    @property
    def messages(self) -> int:
        """Return how many messages the next micro-batch may have; never 0."""
        return FIRST if self._rate is None else max(int(self._rate * self._target), 1)

    def within(self, limits: ReadLimits) -> ReadLimits:
        """Return the user's limits with this one."""
        return limits._replace(messages=min(limits.messages or self.messages, self.messages))

    def begin(self, messages: int, now: float) -> None:
        """Note that a micro-batch with that many messages is planned; ``now`` in seconds."""
        self._planned = _Planned(messages, messages >= self.messages, now)

    def finish(self, now: float) -> None:
        """Note that Spark asks for what follows it. Does nothing if that was noted before."""
        planned, self._planned = self._planned, None
        if planned is None or not planned.messages:
            return
        seconds = max(now - planned.at, 1e-3)
        if not planned.full and seconds <= self._target:
            return
        rate = planned.messages / seconds
        self._rate = rate if self._rate is None else self._rate + _NEWEST * (rate - self._rate)
        if planned.full:
            self._rate = max(self._rate, self._grown(_Seen(planned.messages, seconds)) / self._target)

    def _grown(self, seen: _Seen) -> float:
        """Return how many messages it should be if they do not seem to take the time; 0 if they do."""
        before = self._before
        too_long = self._target if before is None else max(self._target, before.seconds * _STILL)
        if before is not None and seen.messages < before.messages and seen.seconds >= too_long:
            if seen.messages > before.messages * _FEWER:
                # Perhaps it is a tick less with fewer still: the larger one stays what is compared with.
                return 0.0
            self._before = seen
            return before.messages * (1 + _STEP)
        self._before = seen
        if before is not None and seen.messages > before.messages and seen.seconds <= before.seconds * _AS_LONG:
            self._step = min(2 * self._step, _STEP_MAX)
        else:
            self._step = _STEP
            if seen.seconds > self._target:
                return 0.0
        return seen.messages * (1 + self._step)
