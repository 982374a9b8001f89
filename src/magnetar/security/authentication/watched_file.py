"""A file that is read again when it has changed."""

from __future__ import annotations

import os


class WatchedFile:
    """Reads what fits into ``bytes_max``; its methods block."""

    def __init__(self, path: str, bytes_max: int) -> None:
        self.path = path
        self._bytes_max = bytes_max
        self._seen: tuple[int, ...] | None = None

    def changed(self) -> str | None:
        """Return the text if it is another than at the last call, or may be. Raises OSError, ValueError."""
        found = os.stat(self.path)
        stamp = found.st_mtime_ns, found.st_size, found.st_ino
        if stamp == self._seen:
            return None
        with open(self.path, "rb") as file:
            data = file.read(self._bytes_max + 1)
        if len(data) > self._bytes_max:
            raise ValueError(f"more than {self._bytes_max} bytes")
        text = data.decode()
        # what was written meanwhile has another stamp and is read next time
        self._seen = stamp
        return text
