"""How many bytes of messages have met no fate yet, of all producers of one client, and how many may (rule 6.10.6).

A message is let in while there is room, so that the limit is exceeded by one message at most. Where threads send, they
ask before they hand a message over; the loop does not ask again, and takes what was let in.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

_NO_LIMIT: Final = 1 << 59


class PendingBytes:
    """The memory of one client's pending messages."""

    __slots__ = ("_start", "crossed", "crossing", "floor", "free", "limit", "waiting")

    def __init__(self, limit: int = 0, *, threads: bool = False) -> None:
        """``limit``: bytes; 0 is none. ``threads``: they ask, and the loop finds room always."""
        self.limit = limit or _NO_LIMIT
        self._start = _NO_LIMIT if threads else self.limit
        self.floor = self._start - self.limit
        """What is free, without what threads have handed over, when no further message is let in."""
        self.free = self._start
        """What the loop has left; 0 or less: it lets no message in."""
        self.crossing = 0
        """Bytes that threads have handed over; only threads count them."""
        self.crossed = 0
        """Bytes of those that the loop has taken; only the loop counts them."""
        self.waiting: set[Callable[[], object]] = set()
        """What is called once when there is room, by those who found none."""

    @property
    def used(self) -> int:
        """Bytes of the messages in the producers' queues."""
        return self._start - self.free

    @property
    def full(self) -> bool:
        """Whether no further message is let in."""
        return self.free + self.crossed - self.crossing <= self.floor

    def release(self, size: int) -> None:
        """Note that so many bytes have met their fate."""
        self.free += size
        if self.waiting:
            self.wake()

    def wake(self) -> None:
        """Let those look again who found no room, if there is some."""
        if not self.full:
            for _ in range(len(self.waiting)):
                self.waiting.pop()()
