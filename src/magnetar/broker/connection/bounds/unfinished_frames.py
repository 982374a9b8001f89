"""Frames that do not become whole: one budget for those of all connections together.

A connection has at most one unfinished frame. Small remainders are counted and left alone, smaller ones only when all
together use the budget up. When the large ones
together, at the size they are going to have, are more than the budget, those that began first are read on, as many as
fit, and have some seconds to become whole; the others are not read until there is room. So large messages of many
producers come one after the other, and a client that sends half of one and waits loses its connection.
"""

from __future__ import annotations

import asyncio
from typing import Final, Protocol

from magnetar.broker.connection.bounds.unsent_bytes import LITTLE

_LEAST: Final = LITTLE >> 3
"""Held bytes that are not looked at even then."""
FRAME_SECONDS: Final = 2.0
"""How long a frame may take to become whole while others wait."""


class UnfinishedSender(Protocol):
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
    __slots__ = ("admitted", "held", "off", "size")

    def __init__(self) -> None:
        self.held = 0
        self.size = 0
        self.admitted: float | None = None
        """Since when it is read during a shortage; None: it is held off, or there is no shortage."""
        self.off = False
        """Whether its connection has stopped reading."""


class UnfinishedFrames:
    """The unfinished frames of all connections of one broker."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.bytes = 0
        self._large: dict[UnfinishedSender, _Frame] = {}
        """Large frames, in the order in which they began."""
        self._wanted = 0
        """Bytes that they are going to have."""
        self._short = False
        self._dividing = False
        """Whether the room is divided in this turn of the loop."""
        self._timer: asyncio.TimerHandle | None = None

    def changed(self, sender: UnfinishedSender, before: int, held: int, missing: int) -> None:
        """``sender`` has sent ``held`` bytes of a frame, ``missing`` are still to come."""
        self.bytes += held - before
        frame = self._large.get(sender)
        if frame is not None and held < frame.held:
            # that frame became whole; if the next has begun, it goes to the end
            del self._large[sender]
            self._wanted -= frame.size
            if frame.off:
                sender.carry_on()
            frame = None
        elif frame is None and held <= self._little:
            return
        if frame is not None or held > self._little:
            frame = self._large.setdefault(sender, frame or _Frame())
            self._wanted += held + missing - frame.size
            frame.held, frame.size = held, held + missing
        if self._short or self._wanted > self.most:
            if frame is not None and frame.admitted is None:
                # not before it has its turn: until then, all others would read on, too
                frame.off = True
                sender.hold_off()
            if not self._dividing:
                # once for all that came in this turn: a look at all of them for each would be a square
                self._dividing = True
                asyncio.get_running_loop().call_soon(self._divide)

    @property
    def _little(self) -> int:
        """Bytes that are each connection's own."""
        return LITTLE if self.bytes <= self.most else _LEAST

    def _divide(self) -> None:
        self._dividing = False
        now = asyncio.get_running_loop().time()
        room = self.most
        short = False
        for sender, frame in list(self._large.items()):
            room -= frame.size
            if room >= 0:
                if frame.admitted is None:
                    frame.admitted = now
                if frame.off:
                    frame.off = False
                    sender.carry_on()
            else:
                short = True
                frame.admitted = None
                if not frame.off:
                    frame.off = True
                    sender.hold_off()
        if short and self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(FRAME_SECONDS / 4, self._look)
        if not short:
            # also when the timer of a shortage that is over brought it here
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
