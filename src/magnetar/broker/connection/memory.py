"""Memory that clients make us hold: frames that do not become whole, and answers that are not taken.

Both have a budget for all connections together. A connection alone has at most one frame of each.

**Unfinished frames.** Small remainders are counted and left alone. When the large ones together, at the size they are
going to have, are more than the budget, those that began first are read on, as many as fit, and have some seconds to
become whole; the others are not read until there is room. So large messages of many producers come one after the other,
and whoever sends half of one and waits loses its connection.

**What is not taken.** The sockets' buffers are counted again whenever an eighth of the budget was written, so the sum
is never wrong by more. Above the budget a connection gets more only if it holds little itself; above twice the budget
those that hold most are closed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Final, Protocol

LITTLE: Final = 128 << 10
"""Bytes that one connection may always hold."""
ONE_MAX: Final = 32 << 20
"""Bytes that one connection may leave untaken; only what nobody asks for, changes of topic lists, gets that far."""
FRAME_SECONDS: Final = 2.0
"""How long a frame may take that others wait for."""
_RECOUNT_SECONDS: Final = 0.1


class Sender(Protocol):
    """A connection with an unfinished frame."""

    def hold_off(self) -> None:
        """Do not read on."""
        ...

    def carry_on(self) -> None:
        """Read on."""
        ...

    def too_slow(self, held: int) -> None:
        """Close: others wait for the memory of ``held`` bytes."""
        ...


class _Frame:
    __slots__ = ("admitted", "held", "size")

    def __init__(self) -> None:
        self.held = 0
        self.size = 0
        self.admitted: float | None = None
        """Since when it is read while there is a shortage; None: it is held off, or there is none."""


class UnfinishedFrames:
    """One per broker."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.bytes = 0
        self._large: dict[Sender, _Frame] = {}
        """In the order they began."""
        self._short = False
        self._timer: asyncio.TimerHandle | None = None

    def changed(self, sender: Sender, before: int, held: int, missing: int) -> None:
        """``sender`` holds ``held`` bytes now, ``missing`` are to come."""
        self.bytes += held - before
        if held > LITTLE:
            frame = self._large.get(sender)
            if frame is None:
                frame = self._large[sender] = _Frame()
            elif held < frame.held:
                # that one became whole, and the next has begun: it goes to the end
                del self._large[sender]
                frame = self._large[sender] = _Frame()
            frame.held, frame.size = held, held + missing
        elif before > LITTLE and self._large.pop(sender, None) is None:
            return
        if self._short or sum(frame.size for frame in self._large.values()) > self.most:
            self._divide()

    def _divide(self) -> None:
        now = asyncio.get_running_loop().time()
        room = self.most
        short = False
        for sender, frame in list(self._large.items()):
            room -= frame.size
            if room >= 0:
                if frame.admitted is None:
                    frame.admitted = now
                    sender.carry_on()
            else:
                short = True
                frame.admitted = None
                sender.hold_off()
        if short and self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(FRAME_SECONDS / 4, self._look)
        if self._short and not short:
            for frame in self._large.values():
                frame.admitted = None
        self._short = short

    def _look(self) -> None:
        self._timer = None
        now = asyncio.get_running_loop().time()
        for sender, frame in list(self._large.items()):
            if frame.admitted is not None and now - frame.admitted >= FRAME_SECONDS:
                sender.too_slow(frame.held)
        self._divide()


class Taker(Protocol):
    """A connection that is being written to."""

    @property
    def unsent(self) -> int:
        """Bytes that its socket has not taken."""
        ...

    def writable_again(self) -> None:
        """It may have more."""
        ...

    def takes_too_much(self, unsent: int) -> None:
        """Close: it holds more than there is for all."""
        ...


class Unsent:
    """One per broker; ``takers`` gives those that are connected."""

    def __init__(self, most: int, takers: Callable[[], Iterable[Taker]]) -> None:
        self.most = most
        self.short = False
        self._takers = takers
        self._counted = 0
        self._since = 0
        self._step = most // 8
        self._denied: dict[Taker, None] = {}
        self._timer: asyncio.TimerHandle | None = None

    @property
    def bytes(self) -> int:
        """At most so many are held; exact after a count."""
        return self._counted + self._since

    def written(self, size: int) -> None:
        """So much was handed to a socket."""
        self._since += size
        if self._since >= self._step:
            self.count()

    def denied(self, taker: Taker) -> None:
        """It was told that it may not have more for now."""
        self._denied[taker] = None

    def forget(self, taker: Taker) -> None:
        """It is not connected any more."""
        self._denied.pop(taker, None)

    def count(self) -> None:
        """Look how much there is."""
        held = {taker: taker.unsent for taker in self._takers()}
        self._since = 0
        self._counted = sum(held.values())
        if self._counted > 2 * self.most:
            for taker in sorted(held, key=held.__getitem__, reverse=True):
                if self._counted <= self.most:
                    break
                self._counted -= held[taker]
                taker.takes_too_much(held[taker])
        self.short = self._counted > self.most - self._step
        if self.short:
            if self._timer is None:
                self._timer = asyncio.get_running_loop().call_later(_RECOUNT_SECONDS, self._again)
        elif self._denied:
            denied, self._denied = self._denied, {}
            for taker in denied:
                taker.writable_again()

    def _again(self) -> None:
        self._timer = None
        self.count()
