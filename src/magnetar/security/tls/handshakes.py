"""Handshakes in progress: how many there may be, how long each may take, and how many steps one turn takes.

Connections that are open and send much that brings nothing, such as changes of keys, take their turns here as well.
A step may hold a signature, which for an RSA key is a millisecond of the event loop, so only a few are taken before the
sockets of others are looked at again. When there are too many handshakes, those that have waited for their client
for long are ended first; if all are young, no connection is accepted until one has ended.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from typing import Final, Protocol

from magnetar.runtime.log import RateLimitedLog

HANDSHAKE_SECONDS: Final = 10.0
"""How long one may take."""
MOST: Final = 1000
STEPS_PER_TURN: Final = 4
PATIENCE_SECONDS: Final = 2.0
"""How long a client may stay silent when there are too many."""


class Handshake(Protocol):
    """One connection that is worked on in steps."""

    def step(self) -> None:
        """Work on the bytes that have come."""
        ...

    def give_up(self, why: str) -> None:
        """End the connection."""
        ...


class Handshakes:
    """The handshakes at all ports of one broker."""

    def __init__(self, most: int = MOST) -> None:
        self.finished = 0
        self.failed = 0
        self.complaints = RateLimitedLog(logging.getLogger("magnetar.security.tls"))
        """What clients did wrong; they cannot fill the disk with it."""
        self._most = most
        self._began: dict[Handshake, float] = {}
        """Those in progress in the order in which they began, with the time of that."""
        self._ready: deque[Handshake] = deque()
        """Those that have bytes to work on."""
        self._due = False
        self.burdened = False
        """Whether a connection that is open took much of this turn for what brought nothing: others wait for theirs."""
        self._full = False
        self._looking: asyncio.TimerHandle | None = None
        self._watching: list[tuple[Callable[[], None], Callable[[], None]]] = []

    def __len__(self) -> int:
        """The number of those in progress."""
        return len(self._began)

    def watch(self, hold: Callable[[], None], go_on: Callable[[], None]) -> None:
        """Call ``hold`` when there are too many and ``go_on`` when there are few enough again."""
        self._watching.append((hold, go_on))

    def began(self, handshake: Handshake) -> None:
        """Count one more."""
        loop = asyncio.get_running_loop()
        self._began[handshake] = loop.time()
        if self._looking is None:
            self._looking = loop.call_later(PATIENCE_SECONDS / 4, self._look)
        if not self._full and len(self._began) >= self._most:
            self._end_the_silent()
            if len(self._began) >= self._most:
                self._full = True
                for hold, _ in self._watching:
                    hold()

    def arrived(self, handshake: Handshake) -> None:
        """Bytes have come for ``handshake``: it gets a step in its turn."""
        self._ready.append(handshake)
        if not self._due:
            self._due = True
            asyncio.get_running_loop().call_soon(self._turn)

    def burden(self) -> None:
        """Take note of such a connection, until this turn is over."""
        if not self.burdened:
            self.burdened = True
            asyncio.get_running_loop().call_soon(self._relieve)

    def ended(self, handshake: Handshake, *, well: bool) -> None:
        """Forget one that is finished or lost."""
        if self._began.pop(handshake, None) is None:
            return
        if well:
            self.finished += 1
        else:
            self.failed += 1
        if self._full and len(self._began) < self._most * 3 // 4:
            self._full = False
            for _, go_on in self._watching:
                go_on()

    def close(self) -> None:
        """End all of them."""
        for handshake in list(self._began):
            handshake.give_up("the broker stops")
        if self._looking is not None:
            self._looking.cancel()
            self._looking = None

    def _turn(self) -> None:
        try:
            for _ in range(min(STEPS_PER_TURN, len(self._ready))):
                self._ready.popleft().step()
        finally:
            # one that fails, which the event loop reports, does not hold up the others
            self._due = bool(self._ready)
            if self._due:
                asyncio.get_running_loop().call_soon(self._turn)

    def _relieve(self) -> None:
        self.burdened = False

    def _look(self) -> None:
        self._looking = None
        now = asyncio.get_running_loop().time()
        waiting = self._ready
        for handshake, began in list(self._began.items()):
            if now - began < HANDSHAKE_SECONDS:
                break
            if handshake not in waiting:
                handshake.give_up(f"no TLS handshake within {HANDSHAKE_SECONDS:g} s")
        if self._full:
            self._end_the_silent()
        if self._began:
            self._looking = asyncio.get_running_loop().call_later(PATIENCE_SECONDS / 4, self._look)

    def _end_the_silent(self) -> None:
        """End those that have kept the broker waiting for long, down to half of what there may be."""
        now = asyncio.get_running_loop().time()
        ready = set(self._ready)
        for handshake, began in list(self._began.items()):
            if now - began < PATIENCE_SECONDS or len(self._began) <= self._most // 2:
                return
            if handshake not in ready:
                handshake.give_up("other handshakes need its place")
