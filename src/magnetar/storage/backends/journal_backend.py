"""What a journal's segments and checkpoints lie in: the seam under the log (docs/decisions/026-journal-backend.md).

The log above knows blocks, offsets in numbered segments and checkpoints by number; what a segment is (a file, a ledger
of another system, an object) only its backend knows. One process at a time writes, which :meth:`JournalBackend.acquire`
sees to.

Writing happens on the event loop: a call returns at once and the result comes later through a callback. Everything else
blocks and is called from the store's threads, or by a start before anything else runs. What goes wrong is an OSError;
FileNotFoundError says that what was asked for is not there, and :func:`is_full` that space is used up.

The implementations are :class:`magnetar.storage.backends.local_journal.LocalJournal` and, for tests,
:class:`magnetar.testing.memory_journal.MemoryJournal`; one suite runs over all of them.
"""

from __future__ import annotations

import errno
import mmap
from collections.abc import Callable, Iterable, Sequence
from typing import Final, Protocol, TypeAlias

Chunk = bytes | bytearray | memoryview
Committed = Callable[[BaseException | None], None]
ReadBuffer: TypeAlias = mmap.mmap


def segment_name(number: int) -> str:
    """The name of a segment in messages, whatever it lies in."""
    return f"segment-{number:016x}"


def index_name(number: int) -> str:
    """The name of a sealed segment's index in messages."""
    return f"segment-{number:016x}.index"


def is_full(error: BaseException | None) -> bool:
    """Whether the disk, or what this user may have of it, is used up."""
    return isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)


_BAD_MEDIUM: Final = (
    errno.EIO, errno.EBADMSG, errno.EUCLEAN, errno.ENODATA, errno.EILSEQ, errno.EREMOTEIO
)  # fmt: skip


def is_bad_medium(error: BaseException | None) -> bool:
    """Whether the disk does not give the bytes, and will give them at no later time; Linux has many words for it."""
    return isinstance(error, OSError) and error.errno in _BAD_MEDIUM


def is_shortage(error: BaseException | None) -> bool:
    """Whether the process or the machine is short of descriptors or memory: that passes, and nothing is damaged."""
    return isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE, errno.ENOMEM)


def read_buffer(size: int) -> ReadBuffer:
    """Memory that large reads go into, on whole pages."""
    return mmap.mmap(-1, size)


class SegmentWriter(Protocol):
    """Writes the newest segment, one write at a time: no call before the callback of the one before."""

    @property
    def zeros_written(self) -> int:
        """Bytes that were written ahead of the segment's end to make later writes cheaper."""
        ...

    @property
    def takes_blocks(self) -> bool:
        """Whether a segment is open for :meth:`append`; if not, the next block begins a segment."""
        ...

    def begin(self, number: int, chunks: Sequence[Chunk], size: int, sync: bool, done: Committed) -> None:
        """Begin segment ``number`` with these ``size`` bytes; durable, with its name, when ``done`` gets None.

        If it fails, nothing of it counts at a start, and the segment before is the newest still.
        """
        ...

    def append(self, chunks: Sequence[Chunk], size: int, sync: bool, done: Committed, lead: int | None = None) -> None:
        """Append ``size`` bytes to the open segment; durable, if ``sync``, when ``done`` gets None.

        ``lead``: without the first ``lead`` bytes, which are zero, the chunks begin and end on a page of the segment.
        """
        ...

    def abandon(self) -> bool:
        """The last write failed: nothing after the last durable byte counts, and the segment takes no more.

        Returns whether what was refused is cut off. If not, a start that comes before the next segment may find it.
        """
        ...

    def close(self) -> None:
        """Release the open segment; nothing is under way."""
        ...


class SegmentReader(Protocol):
    """The bytes of one segment."""

    def read(self, offset: int, size: int) -> bytes:
        """Up to ``size`` bytes from ``offset``; fewer only at the end."""
        ...

    def read_large(self, offset: int, size: int, buffer: ReadBuffer) -> tuple[bytes | ReadBuffer, int]:
        """Read, into ``buffer`` if that spares a copy; return where the bytes are, and at which index they begin.

        ``buffer`` holds them until the next read into it.
        """
        ...

    def size(self) -> int:
        """Length in bytes."""
        ...

    def truncate(self, size: int) -> None:
        """Cut off what a failed write left; durable after :meth:`sync`."""
        ...

    def sync(self) -> None:
        """Make durable what was read: after a kill it may have been in memory only."""
        ...

    def close(self) -> None: ...


class SpaceReserve(Protocol):
    """Space kept back for what makes space, given up when everything else is used."""

    checkpoint_bytes: int
    """What the last checkpoint took."""

    def take(self) -> bool:
        """Have the reserve; False if there is no room for it."""
        ...

    def give_up(self) -> bool:
        """Let its space be used; False if there was none to give."""
        ...

    def short(self) -> bool:
        """Whether less is free than the reserve is large."""
        ...

    def size(self) -> int:
        """Bytes that it should have. Raises OSError."""
        ...


class JournalBackend(Protocol):
    """The segments and checkpoints of one journal."""

    @property
    def writer(self) -> SegmentWriter:
        """What appends; only for the process that acquired the backend."""
        ...

    def acquire(self) -> None:
        """Become the only process that writes, for as long as it lives. Raises PersistenceError."""
        ...

    def release(self) -> None:
        """Let another process write, and close everything."""
        ...

    def segments(self) -> list[int]:
        """The numbers of all segments, ascending."""
        ...

    def noted_newest(self) -> int | None:
        """A segment whose first block is known to have been durable, the newest such; None if none is known."""
        ...

    def open(self, number: int) -> SegmentReader:
        """Read a segment; the caller closes it. Raises FileNotFoundError."""
        ...

    def reader(self, number: int) -> SegmentReader:
        """Read a segment again and again: the backend closes it, at :meth:`forget` at the latest. For one thread."""
        ...

    def forget(self, number: int) -> None:
        """Close what :meth:`reader` gave; in the same thread."""
        ...

    def seal(self, number: int, length: int, index: bytes, *, sync: bool) -> None:
        """A segment takes no more: ``length`` bytes of it count, and this is its index, durably.

        ``sync``: its blocks were appended without being made durable. Fine if the segment is gone.
        """
        ...

    def read_index(self, number: int) -> bytes:
        """The index of a sealed segment, in the thread of :meth:`reader`. Raises FileNotFoundError if there is none."""
        ...

    def write_index(self, number: int, index: bytes) -> None:
        """Replace the index, whole or not at all."""
        ...

    def sizes(self, numbers: Iterable[int]) -> dict[int, int]:
        """Bytes that these segments take with their indexes; without those that are not there."""
        ...

    def remove(self, number: int) -> None:
        """Remove a segment and its index; fine if they are gone already."""
        ...

    def keep_aside(self, number: int, offset: int, why: str, parts: Iterable[bytes]) -> str:
        """Keep unreadable bytes of a segment, durably, where no start looks: the name. ``why`` is part of it."""
        ...

    def checkpoints(self) -> list[int]:
        """The numbers of all checkpoints, ascending."""
        ...

    def read_checkpoint(self, number: int) -> bytes: ...

    def write_checkpoint(self, number: int, data: bytes) -> None:
        """Durable on return, whole or not at all."""
        ...

    def remove_checkpoint(self, number: int) -> None: ...

    def reject_checkpoint(self, number: int) -> str:
        """Keep a damaged checkpoint where no start looks: the name."""
        ...

    def sync(self) -> None:
        """Make durable which segments and checkpoints there are."""
        ...

    def remove_unfinished(self) -> None:
        """Remove what a kill left half-written."""
        ...

    def reserve(self, size: int) -> SpaceReserve:
        """The reserve of so many bytes at least."""
        ...
