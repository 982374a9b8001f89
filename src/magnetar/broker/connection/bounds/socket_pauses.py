"""Whether the socket of one client is read, and the reasons why not."""

from __future__ import annotations

import asyncio
from typing import Final

PUBLISHES: Final = 1
"""Its messages wait for the disk."""
RATE: Final = 2
"""It publishes faster than it may."""
WORK: Final = 4
"""Its commands wait."""
MEMORY: Final = 8
"""Frames of others are to become whole first."""


class PausableSocket:
    """The base of a session: it is read unless there is a reason not to."""

    __slots__ = ("__weakref__", "_not_reading", "closed", "transport")

    def __init__(self, transport: asyncio.Transport) -> None:
        self.transport = transport
        self.closed = False
        self._not_reading = 0

    def stop_reading(self, reason: int) -> None:
        """Stop reading the socket, for a reason that :meth:`read_again` takes back."""
        if not self._not_reading and not self.closed:
            self.transport.pause_reading()
        self._not_reading |= reason

    def read_again(self, reason: int) -> None:
        """Read the socket again, unless there is another reason not to."""
        if self._not_reading & reason:
            self._not_reading &= ~reason
            if not self._not_reading and not self.closed:
                self.transport.resume_reading()

    @property
    def reading(self) -> bool:
        """Whether the socket is read."""
        return not self._not_reading

    @property
    def reading_paused(self) -> bool:
        """Whether it is not read because its messages wait for the disk."""
        return self._not_reading & PUBLISHES != 0

    def pause_reading(self) -> None:
        """Stop reading: its messages wait for the disk (rule 3.3.10)."""
        self.stop_reading(PUBLISHES)

    def resume_reading(self) -> None:
        """Read again: its messages do not wait for the disk any more."""
        self.read_again(PUBLISHES)
