"""The clock of a broker in a test: it runs like the machine's, and a test moves it forward.

To advance by an hour is to skip from one due timer to the next and to wait after each until everything is at rest, so
that what a timer began has happened before the next one fires. Long advances take larger steps (:func:`late_seconds`):
within one, timers still fire in the order of their times, but up to so much later, and never after the end.
"""

from __future__ import annotations

import asyncio
import datetime
import math
import warnings
from collections.abc import Callable
from typing import Final

from magnetar.client.aio.client_life import open_clients
from magnetar.model.errors import InvalidValueError
from magnetar.runtime.clock import Clock, SystemClock
from magnetar.testing.kit.broker_thread import BrokerThread, WouldBlockError
from magnetar.testing.kit.call_arguments import checked
from magnetar.testing.kit.rest_detector import RestDetector
from magnetar.testing.kit.virtual_loop import Timeline

ADVANCE_MAX: Final = 100 * 366 * 86_400.0
"""Seconds; a century."""
_STEPS: Final = 500
_MOMENT_SECONDS: Final = 0.03


class ForeignClockWarning(UserWarning):
    """Time is moved, and an open client of the broker does not follow: its time-outs and delays stay real."""


def late_seconds(seconds: float) -> float:
    """Return how late a timer may fire while so many seconds are skipped: a 500th of them."""
    return seconds / _STEPS


class VirtualClock:
    """Implements :class:`magnetar.runtime.clock.Clock` for the broker and for clients that share its time."""

    def __init__(self, thread: BrokerThread, timeline: Timeline) -> None:
        self._thread = thread
        self.timeline = timeline
        self._machine = SystemClock()
        self.detector = RestDetector(thread.loop, timeline)
        self._moving = asyncio.Lock()
        self.service_url: Callable[[], str] | None = None
        """Where the clients of the broker are, once it listens."""

    def now_ms(self) -> int:
        """Milliseconds since the Unix epoch."""
        return self._machine.now_ms() + round(self.timeline.skipped * 1000)

    def now(self) -> datetime.datetime:
        """Return the time in UTC."""
        return datetime.datetime.fromtimestamp(self.now_ms() / 1000, datetime.UTC)

    @property
    def skipped_seconds(self) -> float:
        """How far it is ahead of the machine's."""
        return self.timeline.skipped

    def join(self, loop: asyncio.AbstractEventLoop | None = None) -> None:
        """Have an event loop (the running one) share this time from now on, with every timer in it.

        A client that the broker makes has joined already. Raises InvalidValueError for a loop that is not asyncio's
        own, and where none is given and none runs.
        """
        checked("join", loop=loop)
        if loop is None:
            try:
                loop = asyncio.get_running_loop()
            except RuntimeError:
                raise InvalidValueError("join: loop: no event loop runs here; give one") from None
        self.timeline.join(loop)

    def advance(
        self,
        seconds: float | datetime.timedelta = 0,
        *,
        minutes: float = 0,
        hours: float = 0,
        days: float = 0,
    ) -> None:
        """Move time forward, and return when everything that became due has happened.

        What is due up to 30 milliseconds later has happened, too, since clocks count whole ones.
        Raises InvalidValueError, WouldBlockError within an event loop (await :meth:`advance_async` there),
        BrokerClosedError, RestlessError. Warns of clients that do not follow (`ForeignClockWarning`).
        """
        span = _seconds(seconds, minutes, hours, days)
        self._warn(span)
        if _in_a_loop() and not self._thread.inside:
            raise WouldBlockError("within an event loop: await broker.clock.advance_async(…), so that the loop runs on")
        self._thread.call(lambda: self._advance(span))

    async def advance_async(
        self,
        seconds: float | datetime.timedelta = 0,
        *,
        minutes: float = 0,
        hours: float = 0,
        days: float = 0,
    ) -> None:
        """Do as :meth:`advance`, while the event loop of the caller runs on."""
        span = _seconds(seconds, minutes, hours, days)
        self._warn(span)
        await self._thread.await_(lambda: self._advance(span))

    def settle(self) -> None:
        """Wait until the broker and the clients that share its time are at rest. Raises as :meth:`advance`."""
        self.advance(0)

    async def settle_async(self) -> None:
        """Do as :meth:`settle`, while the event loop of the caller runs on."""
        await self.advance_async(0)

    def _warn(self, span: float) -> None:
        if span and self.service_url is not None:
            _warn_of_foreign_clocks(self.service_url(), self, level=3)

    async def _advance(self, seconds: float) -> None:
        async with self._moving:
            timeline = self.timeline
            end = timeline.skipped + seconds
            late = late_seconds(seconds)
            due = await self.detector.rest()
            while timeline.skipped < end:
                left = end - timeline.skipped
                step = left if due is None else min(left, max(due, late))
                timeline.skipped = end if step == left else timeline.skipped + step
                due = await self.detector.rest(lightly=timeline.skipped < end)
            # a timer may find that it is a part of a millisecond early, and then comes back a moment later
            end += _MOMENT_SECONDS if seconds else 0.0
            while due is not None and due <= end - timeline.skipped:
                timeline.skipped += max(due, 0.0)
                due = await self.detector.rest()


def _in_a_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _seconds(seconds: float | datetime.timedelta, minutes: float, hours: float, days: float) -> float:
    checked("advance", seconds=seconds, minutes=minutes, hours=hours, days=days)
    own = seconds.total_seconds() if isinstance(seconds, datetime.timedelta) else seconds
    span = float(own) + minutes * 60.0 + hours * 3600.0 + days * 86_400.0
    if math.isnan(span) or not 0 <= span <= ADVANCE_MAX:
        raise InvalidValueError(f"time moves forward, by up to a hundred years, and not by {span:g} seconds")
    return span


def _warn_of_foreign_clocks(service_url: str, clock: Clock, level: int) -> None:
    """Warn once for each place that moves the time, if a client there has another clock than ``clock``.

    ``level`` is how many calls above this one the place is. Only clients of magnetar in this process are seen.
    """
    strangers = [client for client in open_clients(service_url) if client.clock is not clock]
    if strangers:
        warnings.warn(
            f"{len(strangers)} open client(s) of {service_url} have a clock of their own, which does not move: "
            "negative acknowledgements, acknowledgement time-outs and delays of theirs take their real time. Make them "
            "with broker.client() or broker.aio_client() (fixtures pulsar_client, pulsar_aio_client)",
            ForeignClockWarning,
            stacklevel=level + 1,
        )
