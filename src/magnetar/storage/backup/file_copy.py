"""One file read in slices, with its checksum, and written elsewhere; nothing of it is held in memory."""

from __future__ import annotations

from typing import Final

from crc32c import crc32c

from magnetar.storage.backends.files import File
from magnetar.storage.backends.journal_backend import ReadBuffer, read_buffer

SLICE_BYTES: Final = 1 << 20
_SYNC_BYTES: Final = 16 << 20
"""So much is written between two syncs: a disk that has gigabytes to write out at once keeps everybody waiting."""


def copy_buffer() -> ReadBuffer:
    """Memory for the slices of any number of copies, one after the other."""
    return read_buffer(SLICE_BYTES + 4096)


class FileCopy:
    """Copies ``length`` bytes of a file, or what there is up to its end; without ``target`` it only adds up."""

    def __init__(self, name: str, source: File, target: File | None, length: int | None, buffer: ReadBuffer) -> None:
        self._name = name
        self._source = source
        self._target = target
        self._length = length
        self._buffer = buffer
        self._unsynced = 0
        self.copied = 0
        self.checksum = 0

    def step(self) -> bool:
        """Copy one slice; whether the copy is whole and durable. Raises OSError."""
        wanted = SLICE_BYTES if self._length is None else min(SLICE_BYTES, self._length - self.copied)
        found = self._read(wanted) if wanted else 0
        if found < wanted and self._length is not None:
            raise OSError(f"{self._name} ends after {self.copied} bytes of {self._length}")
        done = found < wanted if self._length is None else self.copied == self._length
        if self._target is not None and (done or self._unsynced >= _SYNC_BYTES):
            self._target.sync()
            self._unsynced = 0
        return done

    def _read(self, wanted: int) -> int:
        place, at = self._source.read_large(self.copied, wanted, self._buffer)
        with memoryview(place) as whole:
            found = min(wanted, len(whole) - at)
            with whole[at : at + found] as data:
                self.checksum = crc32c(data, self.checksum)
                if self._target is not None and found:
                    self._target.append([data])
        self.copied += found
        self._unsynced += found
        return found

    def run(self) -> None:
        """Copy all of it."""
        while not self.step():
            pass
