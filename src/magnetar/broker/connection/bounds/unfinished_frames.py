"""Frames that do not become whole: one budget for those of all connections together.

A connection has at most one unfinished frame. Small remainders are counted and left alone. When the large ones
together, at the size they are going to have, are more than the budget, those that began first are read on, as many as
fit, and have some seconds to become whole; the others are not read until there is room. So large messages of many
producers come one after the other, and a client that sends half of one and waits loses its connection.
"""

from __future__ import annotations

import asyncio
from typing import Final, Protocol

from magnetar.broker.connection.bounds.unsent_bytes import LITTLE

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
    __slots__ = ("admitted", "held", "size")

    def __init__(self) -> None:
        self.held = 0
        self.size = 0
        self.admitted: float | None = None
        """Since when it is read during a shortage; None: it is held off, or there is no shortage."""


class UnfinishedFrames:
    """The unfinished frames of all connections of one broker."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.bytes = 0
        self._large: dict[UnfinishedSender, _Frame] = {}
        """Large frames, in the order in which they began."""
        self._short = False
        self._timer: asyncio.TimerHandle | None = None

    def changed(self, sender: UnfinishedSender, before: int, held: int, missing: int) -> None:
        """``sender`` has sent ``held`` bytes of a frame, ``missing`` are still to come."""
        self.bytes += held - before
        if held > LITTLE:
            frame = self._large.get(sender)
            if frame is None:
                frame = self._large[sender] = _Frame()
            elif held < frame.held:
                # that frame became whole and the next has begun: it goes to the end
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
