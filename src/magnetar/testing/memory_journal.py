"""A journal's backend in memory: what several stores of one test share, and the third judge of the seam.

Nothing in it is lost or torn; :class:`magnetar.testing.faultfiles.FaultFileSystem` is the disk that fails.
"""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Iterable, Sequence
from typing import TypeVar

from magnetar.model.errors import PersistenceError
from magnetar.storage.backends.journal_backend import Chunk, Committed, ReadBuffer, index_name, segment_name

T = TypeVar("T")


class MemorySegment:
    """Implements :class:`magnetar.storage.backends.journal_backend.SegmentReader`."""

    def __init__(self) -> None:
        self.data = bytearray()

    def read(self, offset: int, size: int) -> bytes:
        return bytes(self.data[offset : offset + size])

    def read_large(self, offset: int, size: int, buffer: ReadBuffer) -> tuple[bytes | ReadBuffer, int]:
        return self.read(offset, size), 0

    def size(self) -> int:
        return len(self.data)

    def truncate(self, size: int) -> None:
        del self.data[size:]

    def sync(self) -> None: ...
    def close(self) -> None: ...


class MemoryReserve:
    """Memory is never short: there is nothing to keep back."""

    checkpoint_bytes = 0

    def take(self) -> bool:
        return True

    def give_up(self) -> bool:
        return False

    def short(self) -> bool:
        return False

    def size(self) -> int:
        return 0


class MemoryJournal:
    """Implements the backend and, as ``writer``, the segment writer. One process is all there is."""

    def __init__(self) -> None:
        self._segments: dict[int, MemorySegment] = {}
        self._indexes: dict[int, bytes] = {}
        self._checkpoints: dict[int, bytes] = {}
        self._acquired = False
        self._open: MemorySegment | None = None
        self._length = 0
        self.kept_aside: dict[str, bytes] = {}
        self.zeros_written = 0

    @property
    def writer(self) -> MemoryJournal:
        return self

    def acquire(self) -> None:
        if self._acquired:
            raise PersistenceError("the journal is in use")
        self._acquired = True

    def release(self) -> None:
        self._acquired = False

    # writing -------------------------------------------------------------------------------------------------------

    @property
    def takes_blocks(self) -> bool:
        return self._open is not None

    def begin(self, number: int, chunks: Sequence[Chunk], size: int, sync: bool, done: Committed) -> None:
        self._open = self._segments[number] = MemorySegment()
        self._length = 0
        self.append(chunks, size, sync, done)

    def append(self, chunks: Sequence[Chunk], size: int, sync: bool, done: Committed, lead: int | None = None) -> None:
        assert self._open is not None
        self._open.data += b"".join(chunks)
        self._length += size
        asyncio.get_running_loop().call_soon(done, None)

    def abandon(self) -> bool:
        if self._open is not None:
            self._open.truncate(self._length)
            self._open = None
        return True

    def close(self) -> None:
        self._open = None

    # segments ------------------------------------------------------------------------------------------------------

    def segments(self) -> list[int]:
        return sorted(self._segments)

    def noted_newest(self) -> int | None:
        return None

    def open(self, number: int) -> MemorySegment:
        return _found(self._segments, number, segment_name(number))

    def reader(self, number: int) -> MemorySegment:
        return self.open(number)

    def forget(self, number: int) -> None: ...

    def seal(self, number: int, length: int, index: bytes, *, sync: bool) -> None:
        if number in self._segments:
            self._segments[number].truncate(length)
        self.write_index(number, index)

    def read_index(self, number: int) -> bytes:
        return _found(self._indexes, number, index_name(number))

    def write_index(self, number: int, index: bytes) -> None:
        self._indexes[number] = index

    def sizes(self, numbers: Iterable[int]) -> dict[int, int]:
        return {
            number: len(self._indexes.get(number, b"")) + self._segments[number].size()
            for number in numbers
            if number in self._segments
        }

    def remove(self, number: int) -> None:
        self._segments.pop(number, None)
        self._indexes.pop(number, None)

    def keep_aside(self, number: int, offset: int, why: str, parts: Iterable[bytes]) -> str:
        name = f"{segment_name(number)}-{offset:x}-{why}"
        self.kept_aside[name] = b"".join(parts)
        return name

    # checkpoints ---------------------------------------------------------------------------------------------------

    def checkpoints(self) -> list[int]:
        return sorted(self._checkpoints)

    def read_checkpoint(self, number: int) -> bytes:
        return _found(self._checkpoints, number, f"checkpoint {number}")

    def write_checkpoint(self, number: int, data: bytes) -> None:
        self._checkpoints[number] = data

    def remove_checkpoint(self, number: int) -> None:
        del self._checkpoints[number]

    def reject_checkpoint(self, number: int) -> str:
        name = f"checkpoint-{number}-rejected"
        self.kept_aside[name] = self._checkpoints.pop(number)
        return name

    def sync(self) -> None: ...
    def remove_unfinished(self) -> None: ...

    def reserve(self, size: int) -> MemoryReserve:
        return MemoryReserve()


def _found(there: dict[int, T], number: int, name: str) -> T:
    found = there.get(number)
    if found is None:
        raise FileNotFoundError(errno.ENOENT, f"there is no {name}")
    return found
