"""Passes: what is done for each subscription of a topic, without keeping the event loop from others for long.

Work is counted, not timed, in units of about a microsecond: each subscription costs some, and each entry that it was
given one more. All topics of a broker share the units of one turn of the event loop. A pass that does not end within
them goes on in the next turn, and several take turns with each other.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Collection, Iterator
from typing import Any, Final, Generic, TypeVar

log = logging.getLogger(__name__)

TURN: Final = 2_000
"""Units of all passes in one turn of the event loop."""
EACH: Final = 24
"""Units of each step, besides those that it says it took."""

T = TypeVar("T")


class _Pass(Generic[T]):
    """One that has not ended yet."""

    __slots__ = ("_left", "_step", "done")

    def __init__(self, things: Collection[T], step: Callable[[T], int], done: Callable[[], None]) -> None:
        self._left: Iterator[T] = iter(things)
        self._step = step
        self.done = done

    def go_on(self, units: int) -> int:
        """Take steps until ``units`` are used up or nothing is left, which leaves some; the units that are left."""
        step = self._step
        for thing in self._left:
            units -= EACH
            try:
                units -= step(thing)
            except Exception:
                log.exception("one of many subscriptions failed; the others go on")
            if units <= 0:
                break
        return units


class Passes:
    """Those of one broker."""

    def __init__(self, units: int = TURN) -> None:
        """``units`` of all passes in one turn of the event loop."""
        self._turn = units
        self._left = units
        self._waiting: deque[_Pass[Any]] = deque()
        self._due = False

    def __len__(self) -> int:
        """The number of passes that wait for the next turn."""
        return len(self._waiting)

    def start(self, things: Collection[T], step: Callable[[T], int], done: Callable[[], None]) -> None:
        """Call ``step`` with each of ``things``, then ``done``: before this returns, or in later turns of the loop.

        ``step`` returns how many units it took beyond those of every step. What it raises is logged.
        """
        one = _Pass(things, step, done)
        if self._left > 0 and not self._waiting:
            self._left = one.go_on(self._left)
            if self._left > 0:
                _end(one)
                return
        self._waiting.append(one)
        self._next_turn()

    def _next_turn(self) -> None:
        if not self._due:
            self._due = True
            asyncio.get_running_loop().call_soon(self._begin_turn)

    def _begin_turn(self) -> None:
        self._due = False
        self._left = self._turn
        waiting = self._waiting
        while waiting and self._left > 0:
            one = waiting.popleft()
            self._left = one.go_on(self._left)
            if self._left > 0:
                _end(one)
            else:
                waiting.append(one)
        if waiting:
            self._next_turn()


def _end(one: _Pass[Any]) -> None:
    try:
        one.done()
    except Exception:
        log.exception("what waited for many subscriptions failed; others go on")
