"""One limit of a rate, by messages, bytes or both, and the line of those who wait for its tokens.

Lives on the event loop. A limit has one timer, and only while something waits; those that wait are woken in the order
of coming. Those who take their tokens while they are woken (subscriptions) are served as long as tokens are there.
Those who take them later (connections: what they send must come first) are served a few at a time, twice as many in
each turn of the loop in which tokens are left.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from enum import Enum
from typing import Final, NamedTuple, Protocol

from magnetar.broker.throttling.token_bucket import TokenBucket

_AT_ONCE_MAX: Final = 256
_TIMER_MAX_S: Final = 3600.0
"""A wait of years is waited for in hours, so that no clock overflows."""


class LimitLevel(Enum):
    """What a limit belongs to."""

    SUBSCRIPTION = "subscription"
    TOPIC = "topic"
    RESOURCE_GROUP = "resource group"
    BROKER = "broker"


class RateAmounts(NamedTuple):
    """How much may pass in each period; 0 or less without limit. A period below one second counts as one."""

    messages: int = 0
    bytes: int = 0
    period_s: int = 1

    @property
    def limited(self) -> bool:
        """Whether there is anything to limit."""
        return self.messages > 0 or self.bytes > 0


class Waiter(Protocol):
    """Who can wait in a line."""

    def wake(self) -> bool:
        """It is your turn; returns whether tokens are taken later instead of now."""
        ...


class RateLimit:
    """Owned by what it limits, or by :class:`~magnetar.broker.throttling.shared_limits.SharedLimits`."""

    def __init__(self, level: LimitLevel, name: str, amounts: RateAmounts) -> None:
        """Needs a running loop. ``name`` says for people where the limit was set."""
        self.level = level
        self.name = name
        self.amounts = amounts
        self._loop = asyncio.get_running_loop()
        now = self._loop.time()
        self._messages = TokenBucket(amounts.messages, amounts.period_s, now) if amounts.messages > 0 else None
        self._bytes = TokenBucket(amounts.bytes, amounts.period_s, now) if amounts.bytes > 0 else None
        self._line: dict[Waiter, None] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._at_once = 1
        """How many of those who take later are served before the loop goes round."""
        self._over = False
        self._pace: Callable[[], RateAmounts] | None = None
        self._pace_s = 0.0
        self._paced_at = now

    # what may pass -----------------------------------------------------------------------------------------------

    def room(self) -> tuple[int, int] | None:
        """How many messages and bytes may pass now; None: nothing. Without a limit of one, there is room for all."""
        messages = size = _EVERYTHING
        if self._over:
            return messages, size
        now = self._loop.time()
        if self._pace is not None and now - self._paced_at >= self._pace_s:
            self._paced_at = now
            self._change(self._pace())
        if self._messages is not None and (messages := self._messages.available(now)) < 1:
            return None
        if self._bytes is not None and (size := self._bytes.available(now)) < 1:
            return None
        return messages, size

    def charge(self, messages: int, size: int) -> bool:
        """So much has passed; returns whether the limit is used up now."""
        now, used_up = self._loop.time(), False
        if self._messages is not None:
            self._messages.available(now)
            self._messages.take(messages)
            used_up = self._messages.available(now) < 1
        if self._bytes is not None:
            self._bytes.available(now)
            self._bytes.take(size)
            used_up |= self._bytes.available(now) < 1
        return used_up and not self._over

    def wait_s(self) -> float:
        """Seconds until it is worth asking again; 0: now."""
        if self._over:
            return 0.0
        now = self._loop.time()
        return max(
            0.0 if self._messages is None else self._messages.wait_s(now),
            0.0 if self._bytes is None else self._bytes.wait_s(now),
        )

    @property
    def by_bytes(self) -> bool:
        """Whether bytes are what is waited for."""
        now = self._loop.time()
        return self._bytes is not None and (
            self._messages is None or self._bytes.wait_s(now) > self._messages.wait_s(now)
        )

    def follow(self, pace: Callable[[], RateAmounts], every_s: float) -> None:
        """Ask ``cadence`` for the rate of now, by the same measures, at most once in so many seconds."""
        self._pace, self._pace_s = pace, every_s

    def _change(self, amounts: RateAmounts) -> None:
        now = self._loop.time()
        self.amounts = amounts
        if self._messages is not None:
            self._messages.change(amounts.messages, amounts.period_s, now)
        if self._bytes is not None:
            self._bytes.change(amounts.bytes, amounts.period_s, now)

    def close(self) -> None:
        """The limit holds no more: everybody in the line may go."""
        self._over = True
        self._disarm()
        line, self._line = self._line, {}
        for waiter in line:
            waiter.wake()

    # the line ----------------------------------------------------------------------------------------------------

    @property
    def waiting(self) -> int:
        """How many stand in the line."""
        return len(self._line)

    def wait(self, waiter: Waiter) -> None:
        """Join the line, at its end; who stands in it keeps the place."""
        if not self._over and waiter not in self._line:
            self._line[waiter] = None
            if self._timer is None:
                self._arm()

    def will_wake(self, waiter: Waiter) -> bool:
        """Whether ``waiter`` stands in the line and the timer runs."""
        return waiter in self._line and self._timer is not None

    def leave(self, waiter: Waiter) -> None:
        """Leave the line."""
        self._line.pop(waiter, None)
        if not self._line:
            self._disarm()

    def _arm(self) -> None:
        self._disarm()
        if self._line:
            self._timer = self._loop.call_at(self._loop.time() + min(self.wait_s(), _TIMER_MAX_S), self._serve)

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _serve(self) -> None:
        self._timer = None
        line, later = self._line, self._at_once
        for _ in range(len(line)):
            if self.room() is None:
                self._at_once = 1
                break
            waiter = next(iter(line))
            del line[waiter]
            if waiter.wake():
                later -= 1
                if not later:
                    self._at_once = min(2 * self._at_once, _AT_ONCE_MAX)
                    break
            if not line:
                self._at_once = 1
                break
        if line and self._timer is None:
            self._arm()

    def __str__(self) -> str:
        """The limit in words, for people."""
        amounts = self.amounts
        parts = [f"{amounts.messages} messages"] if amounts.messages > 0 else []
        parts += [f"{amounts.bytes} bytes"] if amounts.bytes > 0 else []
        period = "a second" if amounts.period_s <= 1 else f"in {amounts.period_s} s"
        return f"{' and '.join(parts)} {period} ({self.name})"


_EVERYTHING: Final = 1 << 62
