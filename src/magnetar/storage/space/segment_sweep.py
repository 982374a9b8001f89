"""What lives in one segment, read from its beginning to its end.

A segment is emptied in the order in which it lies there, whichever topics that is, because each read of the disk costs
more than its bytes: after it the reader's thread waits for the interpreter, five milliseconds while the loop is busy.
Read topic by topic, a megabyte of a thousand topics took twenty reads and ten times as long as its checksums
(docs/decisions/005-rescue.md).

Where extents lie is known from the segment's index: it is put together for many spans at once, into windows of the
file, and takes 36 bytes an extent.
"""

from __future__ import annotations

import asyncio
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Final, NamedTuple

from magnetar.model.errors import PersistenceError
from magnetar.storage.backends.journal_backend import ReadBuffer, segment_name
from magnetar.storage.ledgers.entry_reader import EntryReader
from magnetar.storage.log import judged_records, records
from magnetar.storage.log.segment import Span

_WINDOW_BITS: Final = 18
"""Extents are sorted within windows of 256 KB."""
_EXTENTS_MAX: Final = 256
"""Extents that one turn of the loop may be asked to move."""
_LISTED_MAX: Final = 100_000
"""Extents whose places are held at once."""
_SPANS_AT_ONCE: Final = 500
"""So many spans are looked up before others may read."""
_GAP_MAX: Final = 256 << 10
"""Bytes that are rather read over than stepped over."""
_READ_MAX: Final = 4 << 20


class LivingExtent(NamedTuple):
    """Entries ``[first, end)`` of a span, to be written a second time."""

    span: Span
    first: int
    end: int
    record: bytes


class _Place(NamedTuple):
    """Where an extent lies, and what it has to hold: ordinals ``[first, end)`` of a span."""

    offset: int
    length: int
    span: int
    first: int
    end: int


class _Window:
    """The places of extents that begin in one part of the file, in columns."""

    __slots__ = ("columns",)

    def __init__(self) -> None:
        self.columns = array("Q"), array("I"), array("I"), array("Q"), array("Q")

    def add(self, place: tuple[int, int, int, int, int]) -> None:
        for column, value in zip(self.columns, place, strict=True):
            column.append(value)

    def places(self) -> list[_Place]:
        """In the order of the file."""
        return sorted(map(_Place, *self.columns))


class SegmentSweep:
    """One pass over what is needed of one segment; lives on the loop and reads in the reader's thread."""

    def __init__(self, number: int, reader: EntryReader, needed: Callable[[Span], int | None]) -> None:
        """``needed``: from which ordinal on a span is needed; None if nothing of it is."""
        self._number = number
        self._reader = reader
        self._needed = needed
        self._spans: list[Span] = []
        self._windows: dict[int, _Window] = {}
        self._listed = 0
        self._places: Iterator[_Place] = iter(())

    async def find(self, spans: list[Span]) -> list[Span]:
        """Find out where what is needed of these spans lies; the spans that there was no room for.

        Raises PersistenceError or OSError.
        """
        at = 0
        while at < len(spans) and self._listed < _LISTED_MAX:
            part = spans[at : at + _SPANS_AT_ONCE]
            at += len(part)
            wanted = [(span, start, span.end) for span in part if (start := self._needed(span)) is not None]
            if wanted:
                await self._reader.in_thread(self._find, wanted)
        self._places = self._in_order()
        return spans[at:]

    def begin(self, size_max: int) -> asyncio.Future[list[LivingExtent] | None]:
        """Begin to read about ``size_max`` bytes, at least an extent: what is needed of it then, None at the end.

        The future raises PersistenceError or OSError.
        """
        chosen: list[_Place] = []
        needed: dict[int, int | None] = {}
        left = size_max
        for place in islice(self._places, _EXTENTS_MAX):
            if place.span not in needed:
                needed[place.span] = self._needed(self._spans[place.span])
            if (start := needed[place.span]) is not None and start < place.end:
                chosen.append(place)
                left -= place.length
                if left <= 0:
                    break
        if not needed:
            ended: asyncio.Future[list[LivingExtent] | None] = asyncio.get_running_loop().create_future()
            ended.set_result(None)
            return ended
        return self._reader.in_thread(self._read, chosen, needed)

    def _in_order(self) -> Iterator[_Place]:
        for number in sorted(self._windows):
            yield from self._windows.pop(number).places()

    # in the reader's thread --------------------------------------------------------------------------------------

    def _find(self, wanted: Iterable[tuple[Span, int, int]]) -> None:
        for span, start, stop in wanted:
            places = self._reader.places(span)
            i, end = places.find(start), bisect_left(places.firsts, stop)
            if i < 0:
                raise self._missing(span, start)
            number = len(self._spans)
            self._spans.append(span)
            self._listed += end - i
            for j in range(i, end):
                follows = places.firsts[j + 1] if j + 1 < end else stop
                window = self._windows.setdefault(places.offsets[j] >> _WINDOW_BITS, _Window())
                window.add((places.offsets[j], places.lengths[j], number, places.firsts[j], follows))

    def _read(self, chosen: Sequence[_Place], needed: dict[int, int | None]) -> list[LivingExtent]:
        out: list[LivingExtent] = []
        for run in _runs(chosen):
            at = run[0].offset
            size = run[-1].offset + run[-1].length - at
            data, begin = self._reader.large.read(self._number, at, size)
            for place in run:
                span = self._spans[place.span]
                raw, head = self._record(span, data, begin + place.offset - at)
                found = head.log, head.ledger, head.ordinal, head.ordinal + head.entries
                if found != (span.log, span.ledger, place.first, place.end):
                    raise self._missing(span, place.first)
                first = max(place.first, needed[place.span] or 0)
                record = records.moved_extent(raw, first - place.first)
                out.append(LivingExtent(span, first, place.end, record))
        # what one topic has here lies side by side at its second place
        out.sort(key=_of_log)
        return out

    def _record(self, span: Span, data: bytes | ReadBuffer, at: int) -> tuple[records.RawRecord, records.ExtentHead]:
        try:
            raw = records.parse_record(data, at)
            if raw.kind == records.RecordKind.EXTENT:
                return raw, judged_records.extent_of(raw)
            error = records.RecordError(f"the record at offset {at} is no extent")
        except records.RecordError as found:
            error = found
        raise PersistenceError(
            f"{segment_name(self._number)}: the entries of log {span.log} from {span.first} on cannot be read: {error}"
        ) from error

    def _missing(self, span: Span, ordinal: int) -> PersistenceError:
        return PersistenceError(f"ordinal {ordinal} of log {span.log} is missing in {segment_name(self._number)}")


def _runs(places: Sequence[_Place]) -> Iterator[list[_Place]]:
    """Split places, which are in the order of the file, into those that one read takes."""
    run: list[_Place] = []
    for place in places:
        if run:
            last = run[-1]
            end = last.offset + last.length
            if place.offset - end > _GAP_MAX or place.offset + place.length - run[0].offset > _READ_MAX:
                yield run
                run = []
        run.append(place)
    if run:
        yield run


def _of_log(one: LivingExtent) -> tuple[int, int]:
    return one.span.log, one.first
