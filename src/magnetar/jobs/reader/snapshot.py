"""A snapshot of another process's data directory: read without a lock, and without leaving a trace.

Theory of operation. A broker that runs appends to its newest segment, begins new ones, writes checkpoints and removes
what is dead. A :class:`DirectorySnapshot` is a :class:`magnetar.storage.backends.files.FileSystem` over the same
directory, made so that the store's own recovery (`storage.recovery`) can walk over it and find what a start at this
instant would find:

* Files are opened for reading only. Whatever recovery would mend (cut off torn ends, set damaged files aside, sync)
  vanishes: the broker must never notice that its directory is read.
* First the checkpoints are read, then the segments are listed, then those that the newest checkpoint does not cover are
  opened. In this order the segments hold at least what the checkpoint speaks of. Opened files stay readable when the
  broker removes them; if one goes between listing and opening, everything is looked at again.
* A checkpoint that another directory's broker wrote counts as little as for a start, of whatever format it is: which
  secret is this directory's own, its segments and metadata say (`storage.directory_format`).
* A segment is read into memory once, at the length that it had when it was opened (at most 128 MB, one at a time), so
  that a write that is under way looks torn and never corrupt. The newest one is read twice: blocks may come while it is
  read, over zeros after the log's end, and the second time all those below the last one of the first time are there.
* **Only what is durable counts.** A block is only begun when the one before is durable (docs/disk.md), so every block
  but the last certainly is. The last one of the newest segment is left out unless the checkpoint vouches for it: the
  broker may not have sent a receipt for it yet, and a crash may still undo it. What was written last is therefore seen
  one write later; it lies in the open ledger nearly always, which is read by protocol anyway.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Self

from typing_extensions import override

from magnetar.model.errors import InvalidValueError, PersistenceError
from magnetar.storage.backends.directory import why_no_file
from magnetar.storage.backends.file_names import checkpoint_names, segment_numbers
from magnetar.storage.backends.files import File
from magnetar.storage.backends.journal_backend import Chunk, ReadBuffer, segment_name
from magnetar.storage.directory_format import owner_of
from magnetar.storage.log import checkpoint, records

_ATTEMPTS: Final = 5
_MAGIC: Final = records.BLOCK_MAGIC.to_bytes(4, "little")


def ledgers_of(directory: Path) -> Path:
    """Return where the log of a data directory lies; the log's directory may be given too. Raises InvalidValueError."""
    for place in (directory / "ledgers", directory):
        try:
            names = os.listdir(place)
        except OSError:
            continue
        if segment_numbers(names) or checkpoint_names(names):
            return place
    raise InvalidValueError(
        f"{directory} is no data directory of a magnetar broker that can be read: it has no segments; give the "
        "directory that the broker was started with (--data), on the broker's machine and with the right to read it"
    )


class _FrozenFile:
    """A file's content at one instant; changes to it vanish."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._size = os.fstat(fd).st_size
        self._data: bytes | None = None
        self.end: int | None = None
        """Bytes that count, if fewer than the file has."""

    def content(self) -> bytes:
        """Return all bytes, read once."""
        if self._data is None:
            parts, at = [], 0
            while at < self._size:
                part = os.pread(self._fd, self._size - at, at)
                if not part:
                    break
                parts.append(part)
                at += len(part)
            self._data = b"".join(parts)
        return self._data

    def append(self, chunks: Sequence[Chunk]) -> None: ...
    def write(self, at: int, chunks: Sequence[Chunk]) -> None: ...
    def sync(self) -> None: ...
    def truncate(self, size: int) -> None: ...
    def allocate(self, size: int) -> None: ...

    def read(self, offset: int, size: int) -> bytes:
        end = offset + size
        return self.content()[offset : end if self.end is None else min(end, self.end)]

    def read_large(self, offset: int, size: int, buffer: ReadBuffer) -> tuple[bytes | ReadBuffer, int]:
        return self.read(offset, size), 0

    def size(self) -> int:
        whole = len(self.content())
        return whole if self.end is None else min(whole, self.end)

    def names_and_size(self) -> tuple[int, int]:
        return 1, self.size()

    def close(self) -> None:
        """Drop what was read; the file may be opened again."""
        self._data = None

    def release(self) -> None:
        """Close the descriptor."""
        self._data = None
        os.close(self._fd)


class _ReadFile(_FrozenFile):
    """A file of which a part is asked for, and read, at a time."""

    @override
    def read(self, offset: int, size: int) -> bytes:
        return os.pread(self._fd, size, offset)

    @override
    def size(self) -> int:
        return self._size


class _DiscardedFile:
    """A file that keeps nothing: recovery writes what it sets aside into it."""

    def append(self, chunks: Sequence[Chunk]) -> None: ...
    def write(self, at: int, chunks: Sequence[Chunk]) -> None: ...
    def sync(self) -> None: ...
    def truncate(self, size: int) -> None: ...
    def allocate(self, size: int) -> None: ...
    def close(self) -> None: ...

    def read(self, offset: int, size: int) -> bytes:
        return b""

    def read_large(self, offset: int, size: int, buffer: ReadBuffer) -> tuple[bytes | ReadBuffer, int]:
        return b"", 0

    def size(self) -> int:
        return 0

    def names_and_size(self) -> tuple[int, int]:
        return 1, self.size()


class FrozenFiles:
    """A directory whose files are frozen when they are opened; a context manager that holds their descriptors."""

    _kind: type[_FrozenFile] = _FrozenFile

    def __init__(self, path: Path) -> None:
        self.path = path
        self._files: dict[str, _FrozenFile] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all files."""
        for file in self._files.values():
            file.release()
        self._files.clear()

    def freeze(self, name: str) -> _FrozenFile:
        """Open a file for reading as it is now. Raises FileNotFoundError, PersistenceError if it is none."""
        found = self._files.get(name)
        if found is None:
            words = why_no_file(str(self.path / name))
            if words is not None:
                raise PersistenceError(words)
            flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK
            found = self._files[name] = self._kind(os.open(self.path / name, flags))
        return found

    # the interface that recovery uses
    # ------------------------------------------------------------------------------------------

    def open(self, name: str, *, create: bool = False) -> File:
        return _DiscardedFile() if create else self.freeze(name)

    def names(self) -> list[str]:
        return sorted(self._files)

    def misplaced(self) -> dict[str, str]:
        return {}

    def space(self) -> tuple[int, int]:
        return 0, 0

    def in_place(self) -> bool:
        return True

    def holds(self, name: str, file: File) -> bool:
        return True

    def rename(self, old: str, new: str) -> None: ...
    def remove(self, name: str) -> None: ...
    def sync(self) -> None: ...
    def make(self) -> None: ...
    def lock(self) -> None: ...
    def unlock(self) -> None: ...

    @property
    def locked(self) -> bool:
        return False


class _ListedFiles(FrozenFiles):
    """All files of a directory, for a look at their beginnings."""

    _kind: type[_FrozenFile] = _ReadFile

    @override
    def names(self) -> list[str]:
        return sorted(os.listdir(self.path))


class DirectorySnapshot(FrozenFiles):
    """The file system that recovery sees: checkpoints, and the segments that they do not cover."""

    def __init__(self, ledgers: Path) -> None:
        """``ledgers`` as :func:`ledgers_of` gives it. Raises PersistenceError if it changes too fast, OSError."""
        super().__init__(ledgers)
        with _ListedFiles(ledgers) as files:
            self.owner = owner_of(files)
            """The directory's secret, if its files do not contradict each other."""
        for _ in range(_ATTEMPTS):
            try:
                self._take()
            except FileNotFoundError:
                self.close()
            else:
                return
        raise PersistenceError(f"{ledgers} changed {_ATTEMPTS} times while it was being looked at; try again")

    def _take(self) -> None:
        covered, durable = 0, -1
        for name in checkpoint_names(os.listdir(self.path)):
            try:
                image = checkpoint.decode(self.freeze(name).content(), self.owner)
            except records.RecordError:
                continue
            covered = image.head["segment"]
            durable = max([image.head["sequence"] - 1, *(one.about["annexes"] for one in image.logs)])
        young = [number for number in segment_numbers(os.listdir(self.path)) if number > covered]
        for number in young:
            self.freeze(segment_name(number))
        if young:
            newest = self.freeze(segment_name(young[-1]))
            newest.end = _end_of_durable(newest.content(), durable)
            newest.close()


def _end_of_durable(data: bytes, durable: int) -> int:
    """Return how much of the newest segment certainly is durable, if blocks up to sequence ``durable`` are."""
    try:
        secret = records.parse_segment_header(data[: records.SEGMENT_HEADER_SIZE]).secret
    except records.RecordError:
        return len(data)
    at = data.rfind(_MAGIC)
    while at >= 0:
        header = records.parse_block_header(data, at)
        if header is not None and header.secret == secret and _whole(data, at, header):
            return at + records.BLOCK_HEADER_SIZE + header.length if header.sequence <= durable else at
        at = data.rfind(_MAGIC, 0, at)
    return min(len(data), records.SEGMENT_HEADER_SIZE)


def _whole(data: bytes, at: int, header: records.BlockHeader) -> bool:
    size = records.BLOCK_HEADER_SIZE + header.length
    if at + size > len(data):
        return False
    try:
        records.parse_block(data[at : at + size], 0, header)
    except records.RecordError:
        return False
    return True
