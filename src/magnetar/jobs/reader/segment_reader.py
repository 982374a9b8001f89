"""Sealed entries straight from segment files: large sequential reads, checked, as columns over one buffer.

A piece of a ledger is a row of extents in one segment (docs/disk.md). Extents that lie near each other are read
together, past the page cache where the file system allows it, so that a job of gigabytes does not evict what the
broker keeps there. Each extent's checksum is checked; a kernel then notes where each of its entries begins, without
an object per entry. What cannot be read is never skipped silently: it is yielded as a :class:`Missing` between the
entries, and a segment that the broker removed meanwhile raises :class:`SegmentGoneError`.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
from crc32c import crc32c

from magnetar.client.read_position import ReadPosition
from magnetar.columnar.kernels.compiled import kernel
from magnetar.jobs.reader.snapshot import FrozenFiles
from magnetar.jobs.reader.topic_ledgers import SegmentPiece, moved_pieces
from magnetar.model.errors import MagnetarError
from magnetar.storage.backends.journal_backend import index_name, segment_name
from magnetar.storage.log import records
from magnetar.storage.log.segment import ExtentOffsets, SegmentIndex, Span
from magnetar.storage.log.segment_scan import SegmentScan

if TYPE_CHECKING:
    from numpy.typing import NDArray

READ_BYTES: Final = 8 << 20
"""One read; an extent that is larger is read whole."""
TABLE_ENTRIES: Final = 8_136
"""Entries whose metadata is read together: their table stays in the processor's cache.

No power of two: with rows 64 KiB apart all facts of an entry fight for the same cache lines, at two to five times the
time (measured).
"""
_GAP_MAX: Final = 64 << 10
"""Up to so many bytes of other topics are read rather than skipped by a second read."""
_PAGE: Final = records.PAGE
_O_DIRECT: Final = getattr(os, "O_DIRECT", 0)
_HEAD: Final = records.RECORD_HEADER_SIZE
_LENGTHS_AT: Final = records.RECORD_HEADER_SIZE + records.EXTENT_HEAD_SIZE
_COUNT_AT: Final = _LENGTHS_AT - 4


class SegmentGoneError(MagnetarError):
    """The broker removed the segment (trimming) between the snapshot of the directory and the read."""


class Entries(NamedTuple):
    """Consecutive entries of a topic: parallel arrays, one element per entry, over one buffer.

    ``data`` is overwritten when the next block is asked for; copy what is to stay.
    """

    data: NDArray[np.uint8]
    ledgers: NDArray[np.int64]
    entries: NDArray[np.int64]
    """Number of the entry in its ledger."""
    offsets: NDArray[np.int64]
    """Where in ``data`` it begins."""
    lengths: NDArray[np.int64]
    indexes: NDArray[np.int64] | None
    """Message index of its first message (rule 1.1.6), if it is known."""
    counts: NDArray[np.int64] | None = None
    """Number of messages that the broker counts for it, if that is known."""

    def __len__(self) -> int:
        return len(self.offsets)


class Missing(NamedTuple):
    """A range of entries ``[start, stop)`` that should be there and cannot be read."""

    start: ReadPosition
    stop: ReadPosition
    why: str

    def __str__(self) -> str:
        return f"{self.start.ledger}:{self.start.entry} to before {self.stop.ledger}:{self.stop.entry}: {self.why}"


def read_piece(ledgers: Path, piece: SegmentPiece) -> Iterator[Entries | Missing]:
    """Yield the entries of a piece in order, hidden ones left out. Raises SegmentGoneError, OSError."""
    try:
        file = _SegmentFile(ledgers / segment_name(piece.segment))
    except FileNotFoundError:
        yield from _elsewhere(ledgers, piece)
        return
    try:
        yield from _PieceReader(file, piece, _extent_table(ledgers, piece)).blocks()
    finally:
        file.close()


def _elsewhere(ledgers: Path, piece: SegmentPiece) -> Iterator[Entries | Missing]:
    """Read a piece whose segment is gone: the broker moved what it held, or removed it."""
    found = moved_pieces(ledgers, piece)
    gone = f"{segment_name(piece.segment)} was removed by the broker"
    if not found or any(not (ledgers / segment_name(one.segment)).exists() for one in found):
        raise SegmentGoneError(gone)
    at = piece.first
    for one in found:
        if at < one.first:
            yield Missing(
                ReadPosition(piece.ledger, at - piece.base), ReadPosition(piece.ledger, one.first - piece.base), gone
            )
        yield from read_piece(ledgers, one)
        at = one.stop
    if at < piece.stop:
        yield Missing(
            ReadPosition(piece.ledger, at - piece.base), ReadPosition(piece.ledger, piece.stop - piece.base), gone
        )


class _SegmentFile:
    """One segment file, opened for reading only; large reads pass the page cache by."""

    def __init__(self, path: Path) -> None:
        self.name = path.name
        self._plain = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            self._direct = os.open(f"/proc/self/fd/{self._plain}", os.O_RDONLY | os.O_CLOEXEC | _O_DIRECT)
        except OSError:
            self._direct = -1
        self._space = mmap.mmap(-1, READ_BYTES + 2 * _PAGE)
        self._view: NDArray[np.uint8] = np.frombuffer(self._space, np.uint8)

    def read(self, offset: int, size: int) -> NDArray[np.uint8]:
        """Read ``size`` bytes, fewer at the end of the file; the next read overwrites them."""
        skip = offset % _PAGE
        wanted = -(-(skip + size) // _PAGE) * _PAGE
        if wanted > len(self._view):
            self._space = mmap.mmap(-1, wanted)
            self._view = np.frombuffer(self._space, np.uint8)
        got = self._pread(self._direct, offset - skip, wanted) if self._direct >= 0 else -1
        if got < 0:
            got = max(self._pread(self._plain, offset - skip, wanted), 0)
        return self._view[skip : min(skip + size, got)]

    def _pread(self, fd: int, offset: int, wanted: int) -> int:
        """Read into the buffer from its beginning and return the number of bytes; -1 if this descriptor refuses."""
        got = 0
        try:
            while got < wanted:
                with memoryview(self._space)[got:wanted] as left:
                    more = os.preadv(fd, [left], offset + got)
                if more <= 0:
                    break
                got += more
                if more % _PAGE:
                    break  # the end of the file
        except OSError:
            if fd == self._plain:
                raise
            return -1
        return got

    def close(self) -> None:
        os.close(self._plain)
        if self._direct >= 0:
            os.close(self._direct)


class _ExtentTable(NamedTuple):
    """The places of a piece's extents in its segment, as columns."""

    firsts: NDArray[np.int64]
    offsets: NDArray[np.int64]
    lengths: NDArray[np.int64]


def _extent_table(ledgers: Path, piece: SegmentPiece) -> _ExtentTable:
    """Take the offsets from the piece, from the segment's index, or, if that is unreadable, from the segment itself."""
    places = _offsets_of_piece(piece) if piece.places is not None else _offsets_of_index(ledgers, piece)
    if places is None:
        places = _offsets_of_scan(ledgers, piece)
    firsts = np.array(places.firsts, np.int64)
    begin = max(int(np.searchsorted(firsts, piece.first, "right")) - 1, 0)
    end = int(np.searchsorted(firsts, piece.stop, "left"))
    cut = slice(begin, end)
    return _ExtentTable(firsts[cut], np.array(places.offsets[cut], np.int64), np.array(places.lengths[cut], np.int64))


def _offsets_of_piece(piece: SegmentPiece) -> ExtentOffsets:
    data = piece.places or b""
    return ExtentOffsets.from_bytes(data, len(data) // 20)


def _offsets_of_index(ledgers: Path, piece: SegmentPiece) -> ExtentOffsets | None:
    """Read the segment's index; None if it cannot be used."""
    try:
        index = SegmentIndex(piece.segment, (ledgers / index_name(piece.segment)).read_bytes())
        return index.places(Span(piece.log, piece.segment, piece.ledger, piece.begin, piece.stop, 0))
    except (OSError, ValueError, records.RecordError):
        return None


def _offsets_of_scan(ledgers: Path, piece: SegmentPiece) -> ExtentOffsets:
    """Find the extents by scanning the segment; damaged ones are left out."""
    places = ExtentOffsets()
    with FrozenFiles(ledgers) as files:
        for block in SegmentScan(None, piece.segment, files.freeze(segment_name(piece.segment))):
            for raw in block.records:
                if raw.kind == records.RecordKind.EXTENT:
                    head = records.extent_head(raw.body)
                    if (head.log, head.ledger) == (piece.log, piece.ledger):
                        places.add(head.ordinal, block.offset + raw.at, _HEAD + len(raw.body))
    places.sort()
    return places


class _PieceReader:
    """Reads the entries of one piece."""

    def __init__(self, file: _SegmentFile, piece: SegmentPiece, table: _ExtentTable) -> None:
        self._file = file
        self._piece = piece
        self._table = table
        self._hidden = np.array(piece.hidden, np.int64)
        self._next = piece.first
        """Ordinal of the next entry to yield."""

    def blocks(self) -> Iterator[Entries | Missing]:
        for begin, end in _reads(self._table):
            yield from self._read(begin, end)
        if self._next < self._piece.stop:
            yield self._missing(self._piece.stop, "the segment does not hold them any more")

    def _read(self, begin: int, end: int) -> Iterator[Entries | Missing]:
        """Read extents ``begin`` to ``end`` of the table, which lie near each other, at once."""
        piece, table = self._piece, self._table
        offsets, lengths, firsts = table.offsets[begin:end], table.lengths[begin:end], table.firsts[begin:end]
        at = int(offsets[0])
        data = self._file.read(at, int(offsets[-1] + lengths[-1]) - at)
        starts = offsets - at
        good = _intact(data, starts, lengths)
        own = np.zeros(int(good.sum()), np.uint8)
        _mark_own(data, starts[good], firsts[good], piece.log, piece.ledger, own)
        good[good] = own.view(np.bool_)
        run = 0
        for bad in [*np.flatnonzero(~good).tolist(), len(good)]:
            if run < bad:
                yield from self._run(data, starts[run:bad], firsts[run:bad])
            if bad < len(good):
                following = begin + bad + 1
                stop = min(int(table.firsts[following]), piece.stop) if following < len(table.firsts) else piece.stop
                if stop > self._next:
                    where = f"{self._file.name} at offset {int(offsets[bad])}"
                    yield self._missing(stop, f"the checksum of the extent in {where} does not match")
            run = bad + 1

    def _run(
        self, data: NDArray[np.uint8], starts: NDArray[np.int64], firsts: NDArray[np.int64]
    ) -> Iterator[Entries | Missing]:
        """Yield the entries of intact extents; entries may be missing between them."""
        counts = np.empty(len(starts), np.int64)
        _count_entries(data, starts, counts)
        ends = firsts + counts
        expected = np.concatenate(([self._next], ends[:-1]))
        run = 0
        for jump in [*np.flatnonzero(firsts > expected).tolist(), len(firsts)]:
            if run < jump:
                block = self._block(data, starts[run:jump], counts[run:jump])
                self._next = max(self._next, int(min(ends[jump - 1], self._piece.stop)))
                if len(block):
                    yield block
            if jump < len(firsts):
                yield self._missing(int(firsts[jump]), "no extent in the segment holds them")
            run = jump

    def _block(self, data: NDArray[np.uint8], starts: NDArray[np.int64], counts: NDArray[np.int64]) -> Entries:
        piece = self._piece
        ordinals, *columns = (np.empty(int(counts.sum()), np.int64) for _ in range(5))
        _find_entries(data, starts, ordinals, *columns)
        keep = (ordinals >= self._next) & (ordinals < piece.stop)
        if len(self._hidden):
            keep &= ~np.isin(ordinals, self._hidden)
        if not keep.all():
            ordinals, columns = ordinals[keep], [column[keep] for column in columns]
        ledgers = np.full(len(ordinals), piece.ledger, np.int64)
        return Entries(data, ledgers, ordinals - piece.base, *columns)

    def _missing(self, stop: int, why: str) -> Missing:
        """Report the entries up to an ordinal as missing, and continue after it."""
        first, self._next = self._next, stop
        ledger, base = self._piece.ledger, self._piece.base
        return Missing(ReadPosition(ledger, first - base), ReadPosition(ledger, stop - base), why)


def _reads(table: _ExtentTable) -> Iterator[tuple[int, int]]:
    """Yield the ranges of extents that one read takes."""
    ends = table.offsets + table.lengths
    far = np.flatnonzero(table.offsets[1:] - ends[:-1] > _GAP_MAX) + 1
    begin = 0
    for stop in [*far.tolist(), len(ends)]:
        while begin < stop:
            fits = int(np.searchsorted(ends, table.offsets[begin] + READ_BYTES, "right"))
            end = min(max(fits, begin + 1), stop)
            yield begin, end
            begin = end


def _intact(data: NDArray[np.uint8], starts: NDArray[np.int64], lengths: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return which extents are there as they were written, by their checksums."""
    good = np.ones(len(starts), np.bool_)
    view = data.data
    size = len(view)
    for i, (at, length) in enumerate(zip(starts.tolist(), lengths.tolist(), strict=True)):
        body = at + _HEAD
        end = at + length
        stored = int.from_bytes(view[body - 4 : body], "little")
        if (
            end > size
            or view[at] != records.RecordKind.EXTENT
            or crc32c(view[body:end], crc32c(view[at : at + 8])) != stored
        ):
            good[i] = False
    return good


@kernel
def _u32(data: Any, at: Any) -> Any:
    return (
        np.int64(data[at]) | np.int64(data[at + 1]) << 8 | np.int64(data[at + 2]) << 16 | np.int64(data[at + 3]) << 24
    )


@kernel
def _u64(data: Any, at: Any) -> Any:
    return _u32(data, at) | _u32(data, at + 4) << 32


@kernel
def _mark_own(data: Any, starts: Any, firsts: Any, log: Any, ledger: Any, out: Any) -> None:
    """Mark the extents that are what the table says: of this log and ledger, from this ordinal on."""
    for i in range(len(starts)):
        head = starts[i] + _HEAD
        out[i] = _u64(data, head) == log and _u64(data, head + 8) == ledger and _u64(data, head + 24) == firsts[i]


@kernel
def _count_entries(data: Any, starts: Any, out: Any) -> None:
    """Count the entries of each extent."""
    for i in range(len(starts)):
        out[i] = _u32(data, starts[i] + _COUNT_AT)


@kernel
def _find_entries(data: Any, starts: Any, ordinals: Any, offsets: Any, lengths: Any, indexes: Any, counts: Any) -> None:
    """Fill in ordinal, offset, length, message index and message count of each entry."""
    row = 0
    for i in range(len(starts)):
        start = starts[i]
        head = start + _HEAD
        ordinal = _u64(data, head + 24)
        index = _u64(data, head + 32)
        n = _u32(data, start + _COUNT_AT)
        counted = np.int64(data[start + 1] & 1)
        table = start + _LENGTHS_AT
        position = table + 4 * n * (1 + counted)
        for j in range(n):
            length = _u32(data, table + 4 * j)
            ordinals[row] = ordinal + j
            offsets[row] = position
            lengths[row] = length
            indexes[row] = index
            counts[row] = _u32(data, table + 4 * (n + j)) if counted else np.int64(1)
            index += counts[row]
            position += length
            row += 1
