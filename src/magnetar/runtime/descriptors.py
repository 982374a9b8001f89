"""File descriptors: how many this process may have, and how many of them connections may take.

Storage needs some that nobody can foresee to the second: a segment that is rolled, segments that are read, a
checkpoint, the metadata store, an object store. They come first: connections get what is left when a reserve and all
that is open otherwise are taken off. What is open is counted again whenever it could matter.
"""

from __future__ import annotations

import os
import resource
from collections.abc import Callable
from typing import Final

from magnetar.model.errors import NotAllowedError

LIMIT_MAX: Final = 1 << 20
_RESERVE_MAX: Final = 320
"""All segment files that storage keeps open, twice (page cache and direct), and some."""
_RESERVE_MIN: Final = 16
_ROOM_MIN: Final = 8
_UNKNOWN: Final = 48
"""Open descriptors where the system does not tell."""


def raise_limit() -> int:
    """Ask for as many descriptors as the system lets us have; how many that is."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = LIMIT_MAX if hard == resource.RLIM_INFINITY else min(hard, LIMIT_MAX)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return limit_now()
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    except (OSError, ValueError):
        return soft
    return wanted


def limit_now() -> int:
    """How many there may be."""
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return LIMIT_MAX if soft == resource.RLIM_INFINITY else soft


def count_open() -> int:
    """Descriptors of this process that are open."""
    try:
        return len(os.listdir("/proc/self/fd")) - 1  # listing them takes one
    except OSError:
        return _UNKNOWN


class Descriptors:
    """One per process; all doors count their connections here."""

    def __init__(self, limit: int, count: Callable[[], int] = count_open) -> None:
        self.limit = limit
        self.reserve = max(_RESERVE_MIN, min(limit // 4, _RESERVE_MAX))
        self.connections = 0
        self._count = count
        self._others = count()

    @property
    def room(self) -> int:
        """Connections that there may be, all doors together."""
        return max(0, self.limit - self.reserve - self._others)

    def require_room(self) -> None:
        """Raises NotAllowedError if no broker can work with so few."""
        if self.room < _ROOM_MIN:
            raise NotAllowedError(
                f"{self.limit} file descriptors are too few: {self._others} are open and {self.reserve} are kept for "
                f"the disk. Allow at least {self._others + self.reserve + _ROOM_MIN}, better some thousands (ulimit -n)"
            )

    def left(self) -> int:
        """Connections that may still come."""
        if self.connections >= self.room * 3 // 4:
            # close to the end it matters what storage has opened meanwhile
            self._others = max(0, self._count() - self.connections)
        return self.room - self.connections
