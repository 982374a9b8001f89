"""The disk as a seam: a few verbs on a file and on a directory. With :mod:`magnetar.storage.backends.directory` the
only module of storage that uses ``os``.

All calls block; the journal makes them from its own thread, start-up makes them directly. The simulator's twin
(:mod:`magnetar.testing.faultfiles`) forgets what was not synced, tears writes and fills up.
"""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Final, Protocol

from magnetar.storage.backends.directory import (
    PRIVATE_DIRECTORY,
    PRIVATE_FILE,
    close_to_others,
    lock_directory,
    make_directory,
    sync_directory,
    why_no_file,
)
from magnetar.storage.backends.journal_backend import Chunk, ReadBuffer, is_full

_IOV_MAX: Final = 1024
_O_DIRECT: Final = getattr(os, "O_DIRECT", 0)
_PAGE: Final = 4096
_DIRECT_READ_MIN: Final = 128 << 10
"""Smaller reads profit more from the page cache."""


_OURS: Final = ("segment-", "checkpoint-", "quarantine-", "metadata-", "LOCK", "newest", "reserve")
"""How names of the broker's files begin; what an operator put beside them is left alone."""


@contextmanager
def suppress_full() -> Iterator[None]:
    """Go on without what a full disk has no room for."""
    try:
        yield
    except OSError as error:
        if not is_full(error):
            raise


class File(Protocol):
    """One open file. One thread at a time writes; reads may come from any thread."""

    def append(self, chunks: Sequence[Chunk]) -> None:
        """Write all chunks, in order, at the end. Raises OSError; then how much was written is unknown."""
        ...

    def write(self, at: int, chunks: Sequence[Chunk]) -> None:
        """Write all chunks, in order, from byte ``at`` on, over what is there. Raises OSError, like :meth:`append`."""
        ...

    def sync(self) -> None:
        """Return only when everything appended is durable (fdatasync). Raises OSError."""
        ...

    def read(self, offset: int, size: int) -> bytes:
        """Up to ``size`` bytes from ``offset``; fewer only at the end of the file."""
        ...

    def read_large(self, offset: int, size: int, buffer: ReadBuffer) -> tuple[bytes | ReadBuffer, int]:
        """Read like :meth:`read`, past the page cache and into ``buffer`` if that is possible.

        Returns where the bytes are, and at which index they begin; ``buffer`` holds them until the next read into it.
        """
        ...

    def truncate(self, size: int) -> None:
        """Cut the file to ``size`` bytes; durable after :meth:`sync`."""
        ...

    def allocate(self, size: int) -> None:
        """Have so many bytes of the disk, whatever they hold. Raises OSError if they are not there."""
        ...

    def size(self) -> int:
        """Length in bytes."""
        ...

    def names_and_size(self) -> tuple[int, int]:
        """How many names lead to the file, and its length in bytes, in one question."""
        ...

    def close(self) -> None:
        """Release the file. Never raises for a file that is closed already."""
        ...


class FileSystem(Protocol):
    """One data directory; names are relative to it and contain no separator."""

    def make(self) -> None:
        """Have the directory itself, and every name on the way to it, survive a power cut. Raises OSError."""
        ...

    def open(self, name: str, *, create: bool = False) -> File:
        """Open for reading and appending, on a read-only file system for reading.

        Raises FileNotFoundError unless ``create``.
        """
        ...

    def names(self) -> list[str]:
        """The files in the directory, sorted."""
        ...

    def misplaced(self) -> dict[str, str]:
        """Names in the directory at which something else stands; and in words what it is, and what to do."""
        ...

    def space(self) -> tuple[int, int]:
        """Bytes of the disk that this process may still use, and all that there are."""
        ...

    def in_place(self) -> bool:
        """Whether the directory that was locked is still where it was."""
        ...

    def holds(self, name: str, file: File) -> bool:
        """Whether ``name`` still leads to that open file: neither it nor the directory was removed or replaced."""
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

    @property
    def locked(self) -> bool:
        """Whether this process has taken the directory, through this object."""
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
        self._direct = -1

    def fileno(self) -> int:
        """The descriptor."""
        return self._fd

    def direct(self) -> int:
        """A descriptor that passes the page cache by; the plain one where the file system has no such thing."""
        if self._direct < 0:
            try:
                self._direct = os.open(f"/proc/self/fd/{self._fd}", os.O_RDWR | os.O_CLOEXEC | _O_DIRECT)
            except OSError:
                self._direct = self._fd
        return self._direct

    def append(self, chunks: Sequence[Chunk]) -> None:
        self.write(self.size(), chunks)

    def write(self, at: int, chunks: Sequence[Chunk]) -> None:
        for start in range(0, len(chunks), _IOV_MAX):
            at += self._write(chunks[start : start + _IOV_MAX], at)

    def _write(self, part: Sequence[Chunk], at: int) -> int:
        wanted = sum(map(len, part))
        written = os.pwritev(self._fd, part, at)
        if written < wanted:
            data = memoryview(b"".join(part))
            while written < wanted:
                written += os.pwrite(self._fd, data[written:], at + written)
        return written

    def sync(self) -> None:
        os.fdatasync(self._fd)

    def read(self, offset: int, size: int) -> bytes:
        data = os.pread(self._fd, size, offset)
        while len(data) < size and (more := os.pread(self._fd, size - len(data), offset + len(data))):
            data += more  # Linux reads at most 2 GB at once, and some file systems less than there is
        return data

    def read_large(self, offset: int, size: int, buffer: ReadBuffer) -> tuple[bytes | ReadBuffer, int]:
        skip = offset % _PAGE
        wanted = -(-(skip + size) // _PAGE) * _PAGE
        if wanted > len(buffer) or size < _DIRECT_READ_MIN or self.direct() == self._fd:
            return self.read(offset, size), 0
        with memoryview(buffer)[:wanted] as space:
            try:
                got = os.preadv(self._direct, [space], offset - skip)
            except OSError:
                got = 0
        if got < skip + size:
            return self.read(offset, size), 0  # the end of the file, or a file system that refuses
        return buffer, skip

    def truncate(self, size: int) -> None:
        os.ftruncate(self._fd, size)

    def allocate(self, size: int) -> None:
        os.posix_fallocate(self._fd, 0, size)

    def size(self) -> int:
        return os.fstat(self._fd).st_size

    def names_and_size(self) -> tuple[int, int]:
        found = os.fstat(self._fd)
        return found.st_nlink, found.st_size

    def close(self) -> None:
        if self._direct not in (-1, self._fd):
            os.close(self._direct)
        if self._fd >= 0:
            os.close(self._fd)
        self._fd = self._direct = -1


def _same(one: os.stat_result, other: os.stat_result) -> bool:
    return (one.st_ino, one.st_dev) == (other.st_ino, other.st_dev)


def _is_file(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_file()
    except OSError:
        return False  # a symbolic link that leads to itself


class OsFileSystem:
    """A directory of the operating system, created if missing; only its owner can read it unless ``shared``.

    ``only_read``: nothing is changed, not even a lock file made, so it may lie on a read-only file system.
    """

    def __init__(self, path: str, *, shared: bool = False, only_read: bool = False) -> None:
        self.path = path
        self._only_read = only_read
        # O_NONBLOCK: a named pipe that stands for a file is not waited for
        self._access = os.O_CLOEXEC | os.O_NONBLOCK | (os.O_RDONLY if only_read else os.O_RDWR)
        self._shared = shared
        self._file_mode = 0o640 if shared else PRIVATE_FILE
        self._locks: list[int] = []
        if shared:
            os.makedirs(path, exist_ok=True)
        elif not only_read and not os.path.isdir(path):
            self.make()

    def make(self) -> None:
        make_directory(self.path, 0o777 if self._shared else PRIVATE_DIRECTORY)
        if not self._shared:
            close_to_others(self.path, [name for name in self.names() if name.startswith(_OURS)])

    def open(self, name: str, *, create: bool = False) -> File:
        # no O_APPEND: it would make the sync process's pwrite ignore its offset; appends ask for the end instead
        path = os.path.join(self.path, name)
        try:
            return OsFile(os.open(path, self._access | (os.O_CREAT if create else 0), self._file_mode))
        except OSError as error:
            if create or error.errno != errno.EROFS:
                raise
            # the file system turned read-only under the broker: what is on it can be read still
            return OsFile(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK))

    def names(self) -> list[str]:
        return sorted(entry.name for entry in os.scandir(self.path) if _is_file(entry))

    def misplaced(self) -> dict[str, str]:
        others = sorted(entry.name for entry in os.scandir(self.path) if not _is_file(entry))
        found = {name: why_no_file(os.path.join(self.path, name)) for name in others}
        return {name: words for name, words in found.items() if words is not None}

    def space(self) -> tuple[int, int]:
        found = os.statvfs(self.path)
        return found.f_bavail * found.f_frsize, found.f_blocks * found.f_frsize

    def in_place(self) -> bool:
        try:
            return not self._locks or _same(os.stat(self.path), os.fstat(self._locks[0]))
        except OSError:
            return False

    def holds(self, name: str, file: File) -> bool:
        assert isinstance(file, OsFile)
        try:
            found = os.stat(os.path.join(self.path, name))
        except OSError:
            return False
        return _same(found, os.fstat(file.fileno())) and self.in_place()

    def rename(self, old: str, new: str) -> None:
        os.replace(os.path.join(self.path, old), os.path.join(self.path, new))

    def remove(self, name: str) -> None:
        os.remove(os.path.join(self.path, name))

    def sync(self) -> None:
        sync_directory(self.path)

    @property
    def locked(self) -> bool:
        return bool(self._locks)

    def lock(self) -> None:
        # flock dies with its process, so a stale file or a re-used pid can never keep a directory locked. The directory
        # itself is locked too: deleting the file LOCK lets no one in. The file is for versions that know only it
        held: list[int] = []
        try:
            held.append(lock_directory(self.path))
            flags = self._access | (0 if self._only_read else os.O_CREAT)
            with suppress_full(), suppress(*[FileNotFoundError] * self._only_read):
                held.append(os.open(os.path.join(self.path, "LOCK"), flags, self._file_mode))
                fcntl.flock(held[-1], fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            for fd in held:
                os.close(fd)
            raise
        self._locks += held

    def unlock(self) -> None:
        for fd in self._locks:
            os.close(fd)
        self._locks.clear()


def write_atomically(files: FileSystem, name: str, data: bytes) -> None:
    """Create or replace a file so that after a crash it is either the old one or the whole new one."""
    temporary = name + ".new"
    file = files.open(temporary, create=True)
    try:
        file.truncate(0)
        file.append([data])
        file.sync()
    except OSError:
        # half a file is of no use, and the disk may be full
        with suppress(OSError):
            file.truncate(0)
            files.remove(temporary)
        raise
    finally:
        file.close()
    files.rename(temporary, name)
    files.sync()
