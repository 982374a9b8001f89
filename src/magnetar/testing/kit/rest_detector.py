"""Waits until loops are at rest: nothing is ready, nothing is in a thread, and nothing comes from a socket.

A loop is at rest if a whole turn of it, with a look at its sockets, had nothing to do. What one does may give another
one work, over a socket of this machine; so all of them are asked in turn until two rounds in a row found them so.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from typing import Final, NamedTuple

from magnetar.runtime.clock import steady_seconds
from magnetar.testing.kit.virtual_loop import Timeline, VirtualLoop, next_timer, nothing_ready

PATIENCE_SECONDS: Final = 20.0
"""Real seconds in which loops come to rest, or are said not to."""
_TURNS: Final = 2
_CLEAN_ROUNDS: Final = 2


class RestlessError(Exception):
    """Something never stops working, so that time cannot be moved; the text says what."""


class Look(NamedTuple):
    """What was found of one loop, or of all."""

    at_rest: bool
    next_timer: float | None
    """Seconds until its first timer."""


class RestDetector:
    """Runs in ``home``, the loop of the broker. ``traffic`` counts what has gone through its sockets."""

    def __init__(self, home: VirtualLoop, timeline: Timeline) -> None:
        self._home = home
        self._timeline = timeline
        self.traffic: Callable[[], int] = int
        self._quiet: int | None = None
        """The traffic at which all guests were at rest."""
        self._guests_due = 0.0
        """The time of home at which the first of them has a timer."""

    async def rest(self, *, lightly: bool = False) -> float | None:
        """Return once all are at rest: the seconds until the next timer of any, None without one.

        ``lightly``: leave out guests that nothing has reached since they were at rest. Raises RestlessError.
        """
        clean, until, before = 0, steady_seconds() + PATIENCE_SECONDS, self.traffic()
        while True:
            looks = await self._guests(lightly)
            looks.append(await self._own())
            at_rest = all(look.at_rest for look in looks)
            if not at_rest:
                self._quiet = None
            clean = clean + 1 if at_rest else 0
            # what was said may still be on its way, and then there is an answer to come
            if clean >= (_CLEAN_ROUNDS if self.traffic() != before and self._timeline.guests else 1):
                return min((look.next_timer for look in looks if look.next_timer is not None), default=None)
            if steady_seconds() > until:
                raise RestlessError(self._restless(looks))

    async def _guests(self, lightly: bool) -> list[Look]:
        home = self._home
        if lightly and self._quiet == self.traffic() and home.time() < self._guests_due:
            return [Look(True, self._guests_due - home.time())]
        quiet = self.traffic()
        looks = [await self._guest(loop) for loop in self._timeline.guests]
        self._quiet = quiet if all(look.at_rest for look in looks) else None
        self._guests_due = home.time() + min((look.next_timer or math.inf for look in looks), default=math.inf)
        return looks

    def _restless(self, looks: list[Look]) -> str:
        busy = [
            f"the event loop {loop!r}"
            for loop, look in zip(self._timeline.guests, looks, strict=False)
            if not look.at_rest
        ] + (["the broker's loop"] if not looks[-1].at_rest else [])
        threads = f" ({self._home.in_threads} jobs in threads)" if self._home.in_threads else ""
        return (
            f"{' and '.join(busy) or 'something'} did not come to rest in {PATIENCE_SECONDS:g} s{threads}: "
            "let loops that repeat wait for something between two rounds"
        )

    async def _own(self) -> Look:
        home = self._home
        for _ in range(_TURNS):
            await asyncio.sleep(0)
        return Look(nothing_ready(home) and not home.in_threads, next_timer(home))

    async def _guest(self, loop: asyncio.AbstractEventLoop) -> Look:
        home = self._home
        answer: asyncio.Future[Look] = home.create_future()

        def report(look: Look) -> None:
            if not answer.done():
                answer.set_result(look)

        def ask(turns: int) -> None:
            if turns:
                loop.call_soon(ask, turns - 1)
            else:
                home.call_soon_threadsafe(report, Look(nothing_ready(loop), next_timer(loop)))

        try:
            if not loop.is_running():
                raise RuntimeError("it does nothing")
            loop.call_soon_threadsafe(ask, _TURNS)
        except RuntimeError:  # it is closed or stands still: nothing can happen in it
            if loop.is_closed():
                self._timeline.guests = [one for one in self._timeline.guests if one is not loop]
            return Look(True, None)
        watch = home.call_later(PATIENCE_SECONDS, report, Look(False, None))
        try:
            return await answer
        finally:
            watch.cancel()
