"""A file that is read again when it has changed.

Who writes a file in place truncates it first, so that a look in between finds it empty or without its end, and nothing
distinguishes that from a file that was made shorter. So a change is reported twice: when it is seen, and when the
next look finds nothing newer, which is when what is missing counts as removed.
"""

from __future__ import annotations

import os
import stat
from typing import NamedTuple


class Reading(NamedTuple):
    """What a look at a file found."""

    text: str
    settled: bool
    """Whether an earlier look found the same; otherwise it may be half written, and what is missing may come."""


class WatchedFile:
    """Reads what fits into ``bytes_max``; its methods block."""

    def __init__(self, path: str, bytes_max: int) -> None:
        self.path = path
        self._bytes_max = bytes_max
        self._seen: tuple[int, ...] | None = None
        self._settled = True

    def changed(self) -> Reading | None:
        """Return the text if it is another than at the last call, or may be, and once more when it has settled.

        The first call's counts as settled: there is nothing that could be missing. Raises OSError, ValueError.
        """
        found = os.stat(self.path)
        if stat.S_ISFIFO(found.st_mode):
            raise ValueError("it is a pipe, and each look would wait for its writer; name a file")
        stamp = found.st_mtime_ns, found.st_size, found.st_ino
        if stamp == self._seen and self._settled:
            return None
        settled = stamp == self._seen or self._seen is None
        with open(self.path, "rb") as file:
            data = file.read(self._bytes_max + 1)
        if len(data) > self._bytes_max:
            raise ValueError(f"more than {self._bytes_max} bytes")
        text = data.decode("utf-8-sig")  # editors of Windows write a byte order mark in front
        # what was written meanwhile has another stamp and is read next time
        self._seen, self._settled = stamp, settled
        return Reading(text, settled)
