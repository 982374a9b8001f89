"""Segments of the log: which file, how much of it counts, and where each ledger's extents lie in it.

A segment is written by one process life only. While it is the newest, the places of its extents are kept in memory
(20 bytes an extent); once it is sealed they are written to ``<segment>.index`` and loaded again only when a reader
needs them. An index holds nothing that the segment itself does not say: a damaged one is made anew.
"""

from __future__ import annotations

import struct
from array import array
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from typing import Final

from crc32c import crc32c

from magnetar.storage.backends.journal_backend import JournalBackend, index_name
from magnetar.storage.log import records

_INDEX_MAGIC: Final = b"MGTRIDX1"
_INDEX_HEAD: Final = struct.Struct("<8sQI")
_INDEX_SPAN: Final = struct.Struct("<QQQI")
_INDEXES_MAX: Final = 64


class ExtentOffsets:
    """Where consecutive extents of one ledger lie: parallel arrays, ascending by first ordinal."""

    __slots__ = ("firsts", "lengths", "offsets")

    def __init__(self) -> None:
        self.firsts = array("Q")
        self.offsets = array("Q")
        self.lengths = array("I")

    def add(self, first: int, offset: int, length: int) -> None:
        """Note an extent. ``firsts`` last: a reader in another thread then never sees half of it."""
        self.lengths.append(length)
        self.offsets.append(offset)
        self.firsts.append(first)

    def find(self, ordinal: int) -> int:
        """Number of the extent that holds ``ordinal``."""
        return bisect_right(self.firsts, ordinal) - 1

    def copy(self) -> ExtentOffsets:
        """A copy that later extents do not change."""
        return ExtentOffsets.from_bytes(self.to_bytes(), len(self.firsts))

    def sort(self) -> None:
        """Put what was added in the order of the file into that of the ordinals: extents may have been moved there."""
        order = sorted(range(len(self.firsts)), key=self.firsts.__getitem__)
        for column in (self.firsts, self.offsets, self.lengths):
            column[:] = array(column.typecode, [column[i] for i in order])

    def to_bytes(self) -> bytes:
        """The bytes of an index file's columns."""
        return self.firsts.tobytes() + self.offsets.tobytes() + self.lengths.tobytes()

    @classmethod
    def from_bytes(cls, data: bytes, count: int) -> ExtentOffsets:
        """The inverse of :meth:`to_bytes`."""
        places = cls()
        places.firsts.frombytes(data[: 8 * count])
        places.offsets.frombytes(data[8 * count : 16 * count])
        places.lengths.frombytes(data[16 * count : 20 * count])
        return places


class Span:
    """The part of one ledger that lies in one segment: ordinals ``first <= o < end``."""

    __slots__ = ("bytes", "end", "first", "hidden", "ledger", "log", "places", "segment")

    def __init__(self, log: int, segment: int, ledger: int, first: int, end: int, size: int) -> None:
        self.log = log
        self.segment = segment
        self.ledger = ledger
        self.first = first
        self.end = end
        self.bytes = size
        """What its extents take in the segment, headers included."""
        self.hidden = 0
        """About how much of that belongs to entries at the front that were let go."""
        self.places: ExtentOffsets | None = None
        """None: sealed, look into the segment's index."""

    @property
    def living(self) -> int:
        """About how many of its bytes are needed."""
        return self.bytes - self.hidden


def index_bytes(number: int, spans: Iterable[Span]) -> bytes:
    """Content of an index file: head, table of spans, their places, checksum."""
    ordered = sorted(spans, key=lambda span: (span.log, span.first))
    listed = [(span, span.places) for span in ordered if span.places is not None]
    parts = [_INDEX_HEAD.pack(_INDEX_MAGIC, number, len(listed))]
    parts += [_INDEX_SPAN.pack(s.log, s.ledger, s.first, len(p.firsts)) for s, p in listed]
    parts += [p.to_bytes() for _, p in listed]
    body = b"".join(parts)
    return body + struct.pack("<I", crc32c(body))


def spans_of(number: int, places: dict[tuple[int, int], ExtentOffsets]) -> list[Span]:
    """What an index is made of when all that is known is where the extents of (log, ledger) lie."""
    spans = []
    for (log, ledger), found in places.items():
        span = Span(log, number, ledger, found.firsts[0], found.firsts[-1], 0)
        span.places = found
        spans.append(span)
    return spans


class SegmentIndex:
    """A loaded index file."""

    __slots__ = ("_data", "_table")

    def __init__(self, number: int, data: bytes) -> None:
        """Raises RecordError if the index is damaged or another segment's."""
        if len(data) < _INDEX_HEAD.size + 4 or struct.unpack("<I", data[-4:])[0] != crc32c(data[:-4]):
            raise records.RecordError(f"the checksum of {index_name(number)} does not match")
        magic, of, count = _INDEX_HEAD.unpack_from(data)
        if magic != _INDEX_MAGIC or of != number:
            raise records.RecordError(f"{index_name(number)} is not the index of this segment")
        self._data = data
        self._table: dict[tuple[int, int], list[tuple[int, int, int]]] = {}
        """For each log and ledger, ascending: first ordinal, where the places stand, how many."""
        at = _INDEX_HEAD.size + count * _INDEX_SPAN.size
        if at > len(data):
            raise records.RecordError(f"{index_name(number)} is shorter than its table")
        for i in range(count):
            log, ledger, first, extents = _INDEX_SPAN.unpack_from(data, _INDEX_HEAD.size + i * _INDEX_SPAN.size)
            self._table.setdefault((log, ledger), []).append((first, at, extents))
            at += 20 * extents
        if at + 4 != len(data):
            raise records.RecordError(f"{index_name(number)} does not hold the places that it lists")

    def extents(self) -> Iterator[tuple[int, int, int, int]]:
        """Every extent it lists: log, first ordinal, offset, length."""
        for (log, _), listed in self._table.items():
            for _, at, count in listed:
                places = ExtentOffsets.from_bytes(self._data[at : at + 20 * count], count)
                for one in zip(places.firsts, places.offsets, places.lengths, strict=True):
                    yield log, *one

    def places(self, span: Span) -> ExtentOffsets:
        """Return the places of a span, or of what it was a part of when the index was written.

        The front of that may have been moved away since. Raises RecordError if the index does not know it.
        """
        listed = self._table.get((span.log, span.ledger), [])
        i = bisect_right(listed, span.first, key=_first) - 1
        if i < 0:
            raise records.RecordError(f"{index_name(span.segment)} does not list log {span.log} from {span.first}")
        _, at, count = listed[i]
        return ExtentOffsets.from_bytes(self._data[at : at + 20 * count], count)


def _first(listed: tuple[int, int, int]) -> int:
    return listed[0]


class SegmentIndexes:
    """The indexes that were read last, a bounded number; used in one thread."""

    def __init__(self, backend: JournalBackend) -> None:
        self._backend = backend
        self._indexes: OrderedDict[int, SegmentIndex] = OrderedDict()

    def places(self, span: Span) -> ExtentOffsets:
        """Where the extents of a span lie, from memory or its segment's index. Raises OSError, RecordError."""
        places = span.places  # the loop may take it away once the index is written
        if places is not None:
            return places
        index = self._indexes.get(span.segment)
        if index is None:
            index = SegmentIndex(span.segment, self._backend.read_index(span.segment))
            self._indexes[span.segment] = index
            while len(self._indexes) > _INDEXES_MAX:
                self._indexes.popitem(last=False)
        return index.places(span)

    def forget(self, number: int) -> None:
        """Drop the index of a segment that is about to be removed."""
        self._indexes.pop(number, None)
