"""File descriptors: how many this process may have, and how many of them connections may take.

Storage needs some at moments that cannot be foreseen: a segment that is rolled, segments that are read, a
checkpoint, the metadata store, an object store. They have precedence: connections get what is left
after a reserve and all other open ones. Open descriptors are counted again whenever it could matter.
"""

from __future__ import annotations

import os
import resource
from collections.abc import Callable
from typing import Final

from magnetar.model.errors import NotAllowedError

LIMIT_MAX: Final = 1 << 20
_RESERVE_MAX: Final = 320
"""Enough for all segment files that storage keeps open, twice (page cache and direct), and some more."""
_RESERVE_MIN: Final = 16
_ROOM_MIN: Final = 8
_UNKNOWN: Final = 48
"""The assumed number of open descriptors where the system does not report it."""


def raise_limit() -> int:
    """Raise the limit as far as the system allows; return it."""
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
    """The present limit of descriptors."""
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return LIMIT_MAX if soft == resource.RLIM_INFINITY else soft


def count_open() -> int:
    """The number of open descriptors of this process."""
    try:
        return len(os.listdir("/proc/self/fd")) - 1  # listing them takes one
    except OSError:
        return _UNKNOWN


class Descriptors:
    """The descriptors of this process, for which all acceptors count their connections."""

    def __init__(self, limit: int, count: Callable[[], int] = count_open) -> None:
        self.limit = limit
        self.reserve = max(_RESERVE_MIN, min(limit // 4, _RESERVE_MAX))
        self.connections = 0
        self._count = count
        self._others = count()

    @property
    def room(self) -> int:
        """The largest number of connections of all acceptors together."""
        return max(0, self.limit - self.reserve - self._others)

    def require_room(self) -> None:
        """Raises NotAllowedError if there are too few for a broker."""
        if self.room < _ROOM_MIN:
            raise NotAllowedError(
                f"{self.limit} file descriptors are too few: {self._others} are open and {self.reserve} are kept for "
                f"the disk. Allow at least {self._others + self.reserve + _ROOM_MIN}, better some thousands (ulimit -n)"
            )

    def left(self) -> int:
        """The number of connections that may still be accepted."""
        if self.connections >= self.room * 3 // 4:
            # close to the end it matters what storage has opened meanwhile
            self._others = max(0, self._count() - self.connections)
        return self.room - self.connections
