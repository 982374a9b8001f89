"""The disk as a seam: five verbs on a file, six on a directory. The only module of storage that uses ``os``.

All calls block; the journal makes them from its own thread, start-up makes them directly. The simulator's twin
(:mod:`magnetar.testing.faultfiles`) forgets what was not synced, tears writes and fills up.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Sequence
from typing import Final, Protocol

_IOV_MAX: Final = 1024
_AHEAD_MIN: Final = 256 << 10
_AHEAD_MAX: Final = 32 << 20
"""What is allocated ahead: as much as there is already, within these."""

Chunk = bytes | bytearray | memoryview


class File(Protocol):
    """One open file. One thread at a time writes; reads may come from any thread."""

    def append(self, chunks: Sequence[Chunk]) -> None:
        """Write all chunks, in order, at the end. Raises OSError; then how much was written is unknown."""
        ...

    def sync(self) -> None:
        """Return only when everything appended is durable (fdatasync). Raises OSError."""
        ...

    def read(self, offset: int, size: int) -> bytes:
        """Up to ``size`` bytes from ``offset``; fewer only at the end of the file."""
        ...

    def truncate(self, size: int) -> None:
        """Cut the file to ``size`` bytes; durable after :meth:`sync`."""
        ...

    def size(self) -> int:
        """Length in bytes."""
        ...

    def close(self) -> None:
        """Release the file. Never raises for a file that is closed already."""
        ...


class FileSystem(Protocol):
    """One data directory; names are relative to it and contain no separator."""

    def open(self, name: str, *, create: bool = False, ahead: bool = False) -> File:
        """Open for reading and appending. Raises FileNotFoundError unless ``create``.

        ``ahead`` allows to allocate space before it is needed, which makes syncs cheaper: the file may then be longer
        than what was appended, zeros behind it, until it is truncated.
        """
        ...

    def names(self) -> list[str]:
        """The files in the directory, sorted."""
        ...

    def rename(self, old: str, new: str) -> None:
        """Atomically give ``old`` the name ``new``, replacing what stands there; durable after :meth:`sync`."""
        ...

    def remove(self, name: str) -> None:
        """Delete a file; durable after :meth:`sync`."""
        ...

    def sync(self) -> None:
        """Make creations, renames and removals in the directory durable."""
        ...

    def lock(self) -> None:
        """Take the directory for this process. Raises BlockingIOError if another process has it."""
        ...

    def unlock(self) -> None:
        """Give the directory back."""
        ...


class OsFile:
    """A file of the operating system."""

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def fileno(self) -> int:
        """The descriptor."""
        return self._fd

    def append(self, chunks: Sequence[Chunk]) -> None:
        for start in range(0, len(chunks), _IOV_MAX):
            self._write(chunks[start : start + _IOV_MAX])

    def _write(self, part: Sequence[Chunk]) -> None:
        wanted = sum(map(len, part))
        written = os.writev(self._fd, part)
        if written < wanted:
            data = memoryview(b"".join(part))
            while written < wanted:
                written += os.write(self._fd, data[written:])

    def sync(self) -> None:
        os.fdatasync(self._fd)

    def read(self, offset: int, size: int) -> bytes:
        return os.pread(self._fd, size, offset)

    def truncate(self, size: int) -> None:
        os.ftruncate(self._fd, size)

    def size(self) -> int:
        return os.fstat(self._fd).st_size

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


class AheadFile(OsFile):
    """A file whose space is allocated before it is needed; it has one writer, this object."""

    def __init__(self, fd: int) -> None:
        super().__init__(fd)
        self._end = self._allocated = self.size()
        self._possible = True

    def _write(self, part: Sequence[Chunk]) -> None:
        wanted = sum(map(len, part))
        if self._possible and self._end + wanted > self._allocated:
            self._allocate(wanted)
        written = os.pwritev(self._fd, part, self._end)
        if written < wanted:
            data = memoryview(b"".join(part))
            while written < wanted:
                written += os.pwrite(self._fd, data[written:], self._end + written)
        self._end += written

    def _allocate(self, wanted: int) -> None:
        target = self._end + wanted + min(max(self._end, _AHEAD_MIN), _AHEAD_MAX)
        try:
            os.posix_fallocate(self._fd, self._allocated, target - self._allocated)
        except OSError:
            # not possible here, or not enough space: the write itself will tell
            self._possible = False
        else:
            self._allocated = target

    def truncate(self, size: int) -> None:
        super().truncate(size)
        self._allocated = size
        self._end = min(self._end, size)


class OsFileSystem:
    """A directory of the operating system, created if missing."""

    def __init__(self, path: str) -> None:
        os.makedirs(path, exist_ok=True)
        self.path = path
        self._lock_fd = -1

    def open(self, name: str, *, create: bool = False, ahead: bool = False) -> File:
        flags = os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT if create else 0) | (0 if ahead else os.O_APPEND)
        fd = os.open(os.path.join(self.path, name), flags, 0o640)
        return AheadFile(fd) if ahead else OsFile(fd)

    def names(self) -> list[str]:
        return sorted(entry.name for entry in os.scandir(self.path) if entry.is_file())

    def rename(self, old: str, new: str) -> None:
        os.replace(os.path.join(self.path, old), os.path.join(self.path, new))

    def remove(self, name: str) -> None:
        os.remove(os.path.join(self.path, name))

    def sync(self) -> None:
        fd = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    def lock(self) -> None:
        # flock dies with its process, so a stale file or a re-used pid can never keep a directory locked
        fd = os.open(os.path.join(self.path, "LOCK"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o640)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(fd)
            raise
        self._lock_fd = fd

    def unlock(self) -> None:
        if self._lock_fd >= 0:
            os.close(self._lock_fd)
            self._lock_fd = -1
