"""Disk space kept back for what makes space: a file that takes it, and is given up when the disk is full.

Without it a full disk is a trap. An acknowledgement, a deletion, a trim is a record to be written before anything can
be removed, and so is a checkpoint. While the reserve is given up nothing is published; it is taken again as soon as the
disk has room for it and a quarter more.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from typing import Final

from magnetar.storage.backends.files import FileSystem

log = logging.getLogger(__name__)

NAME: Final = "reserve"
RESERVE_BYTES: Final = 16 << 20
_SHARE: Final = 10
"""It takes at most this part of a small disk."""
_CHECKPOINTS: Final = 4
"""It has room for so many checkpoints: nothing is removed before two have been written."""


class Reserve:
    """One file, there or not; says what it did in the log."""

    def __init__(self, files: FileSystem, size: int = RESERVE_BYTES) -> None:
        self._files = files
        self._size = size
        self.checkpoint_bytes = 0
        """What the last checkpoint took."""

    def take(self) -> bool:
        """Have the reserve; False if there is no room for it."""
        try:
            free, size = self._files.space()[0], self.size()
            found = self._found()
            if found >= size:
                return True
            if free + found < size + size // 4:
                return False
            file = self._files.open(NAME, create=True)
            try:
                file.allocate(size)
            finally:
                file.close()
        except OSError as error:
            log.warning("no space could be reserved for times when the disk is full: %s", error)
            with suppress(OSError):
                self._files.remove(NAME)
            return False
        return True

    def give_up(self) -> bool:
        """Let its space be used; False if there was none to give."""
        try:
            self._files.remove(NAME)
        except OSError:
            return False
        log.warning("the reserve of disk space is used for acknowledging, deleting and trimming")
        return True

    def short(self) -> bool:
        """Whether the disk has less free than the reserve is large."""
        try:
            return self._files.space()[0] < self.size()
        except OSError:
            return False

    def size(self) -> int:
        """Bytes that it should have. Raises OSError."""
        return min(max(self._size, _CHECKPOINTS * self.checkpoint_bytes), self._files.space()[1] // _SHARE)

    def _found(self) -> int:
        if NAME not in self._files.names():
            return 0
        file = self._files.open(NAME)
        try:
            return file.size()
        finally:
            file.close()
