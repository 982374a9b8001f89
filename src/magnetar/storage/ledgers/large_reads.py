"""Large reads of segments, one after the other, while the disk is at work on the next.

The reader's thread checks and copies what one read gave; a thread of its own has the disk fill a second buffer
meanwhile, where it is known what the log's next read will be (docs/decisions/068-disk-ahead.md).
"""

from __future__ import annotations

from concurrent.futures import Executor, Future
from contextlib import suppress
from typing import Final, NamedTuple

from magnetar.storage.backends.journal_backend import JournalBackend, ReadBuffer, SegmentReader, read_buffer

_AHEAD_MIN: Final = 256 << 10
"""Smaller reads are over sooner than another thread has begun them."""


class _Begun(NamedTuple):
    """A read ahead of its first request."""

    segment: int
    offset: int
    size: int
    data: Future[tuple[bytes | ReadBuffer, int]]


class LargeReads:
    """Used in the reader's thread only; ``ahead`` has one worker, or does what it is given at once."""

    def __init__(self, backend: JournalBackend, ahead: Executor, buffer_bytes: int) -> None:
        self._backend = backend
        self._ahead = ahead
        self._buffer, self._spare = read_buffer(buffer_bytes), read_buffer(buffer_bytes)
        """What the disk writes into; pages that nothing was read into take no memory."""
        self._begun: _Begun | None = None
        self._file: SegmentReader | None = None
        """The segment that was last read ahead, opened once more: what others do with theirs does not matter."""
        self._segment = 0
        self.ahead_min = _AHEAD_MIN
        """Bytes of a read that is worth it."""
        self.hits = 0
        """Reads that had been begun before they were asked for."""

    def read(self, segment: int, offset: int, size: int) -> tuple[bytes | ReadBuffer, int]:
        """Return where the bytes are, and at which index they begin; there until the next read. Raises OSError."""
        begun = self._begun
        if begun is not None and begun[:2] == (segment, offset) and size <= begun.size:
            self._begun = None
            # what failed is tried once more below
            with suppress(OSError):
                data, at = begun.data.result()
                self._buffer, self._spare = self._spare, self._buffer
                self.hits += 1
                return data, at
        return self._backend.reader(segment).read_large(offset, size, self._buffer)

    def begin(self, segment: int, offset: int, size: int) -> None:
        """Have the disk read what will be asked for next; nothing changes it, as far as it has receipts."""
        begun = self._begun
        if size < self.ahead_min or (begun is not None and not begun.data.done()):
            return
        if self._file is None or self._segment != segment:
            self.close()
            try:
                self._file = self._backend.open(segment)
            except OSError:
                return
            self._segment = segment
        work = self._ahead.submit(self._file.read_large, offset, size, self._spare)
        self._begun = _Begun(segment, offset, size, work)

    def forget(self, segment: int) -> None:
        """Let go of a segment that is about to be removed, or that was found damaged."""
        if self._segment == segment:
            self.close()

    def close(self) -> None:
        """Wait for the disk, and let go of what it was asked for."""
        if self._begun is not None:
            with suppress(OSError):
                self._begun.data.result()
            self._begun = None
        if self._file is not None:
            self._file.close()
        self._file, self._segment = None, 0
