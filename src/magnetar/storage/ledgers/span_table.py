"""Where the entries of one log lie: its spans, in the order of their ordinals.

A span is the part of a ledger that lies in one segment; it grows with each extent until another segment or ledger
begins. Extents that are moved (:mod:`magnetar.storage.space.segment_cleaner`) leave their span for another one, from
wherever they stood in it. The store is notified of every span that comes, goes and changes, because a segment without
spans can be removed.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from typing import NamedTuple, Protocol

from magnetar.storage.log.segment import ExtentOffsets, Span


class SpanHome(Protocol):
    """The store, as spans see it."""

    def span_added(self, span: Span) -> None: ...
    def span_dropped(self, span: Span) -> None: ...

    def span_shrunk(self, span: Span, size: int) -> None:
        """So many bytes of it are needed no more; in a segment that takes no more entries, or may be."""
        ...

    def span_left(self, source: int, target: int, size: int) -> None:
        """So many bytes of segment ``source`` are needed no more because segment ``target`` has them, too."""
        ...


class ExtentPlace(NamedTuple):
    """Consecutive entries of one ledger, and where they lie."""

    segment: int
    ledger: int
    first: int
    end: int
    offset: int
    length: int


class SpanTable:
    """The spans of one log, in the order of their ordinals."""

    __slots__ = ("_firsts", "_home", "_log", "_spans")

    def __init__(self, home: SpanHome, log_id: int) -> None:
        self._home = home
        self._log = log_id
        self._spans: list[Span] = []
        self._firsts: list[int] = []

    def __iter__(self) -> Iterator[Span]:
        return iter(self._spans)

    def holding(self, ordinal: int) -> Span | None:
        """The span that holds an ordinal."""
        i = bisect_right(self._firsts, ordinal) - 1
        if i < 0 or ordinal >= self._spans[i].end:
            return None
        return self._spans[i]

    def following(self, ordinal: int) -> int | None:
        """The first ordinal after ``ordinal`` that a span begins with."""
        i = bisect_right(self._firsts, ordinal)
        return self._firsts[i] if i < len(self._firsts) else None

    def add(self, span: Span) -> None:
        """Append a span that lies after all others."""
        self._insert(len(self._spans), span)

    def _insert(self, i: int, span: Span) -> None:
        self._spans.insert(i, span)
        self._firsts.insert(i, span.first)
        self._home.span_added(span)

    def place(self, segment: int, ledger: int, ordinal: int, entries: int, offset: int, length: int) -> None:
        """An extent after all others: so many entries from ``ordinal`` on, at ``offset`` of the segment."""
        span = self._spans[-1] if self._spans else None
        if span is None or span.segment != segment or span.ledger != ledger or (places := span.places) is None:
            span = Span(self._log, segment, ledger, ordinal, ordinal, 0)
            places = span.places = ExtentOffsets()
            self.add(span)
        places.add(ordinal, offset, length)
        span.end = ordinal + entries
        span.bytes += length

    def place_again(self, segment: int, ledger: int, ordinal: int, offset: int, length: int) -> Span | None:
        """Note the place of an extent that its span counts already and no index has (recovery)."""
        span = self.holding(ordinal)
        if span is None or span.segment != segment or span.ledger != ledger or span.places is None:
            return None
        span.places.add(ordinal, offset, length)
        return span

    # moving ------------------------------------------------------------------------------------------------------

    def move(self, extent: ExtentPlace, needed_from: int) -> None:
        """The extent has a second place: what spans of its ledger hold of it lies there from now on.

        What no span holds any more (trimmed, released) comes back by no move. Nothing before ``needed_from`` is
        left behind in the old span.
        """
        i = max(bisect_right(self._firsts, extent.first) - 1, 0)
        while i < len(self._spans) and self._firsts[i] < extent.end:
            span = self._spans[i]
            first, end = max(extent.first, span.first), min(extent.end, span.end)
            if first < end and span.ledger == extent.ledger and span.segment != extent.segment:
                self._home.span_left(span.segment, extent.segment, extent.length)
                i = self._cut_out(i, first, end, extent.length, needed_from)
                i = self._put(i, first, end, extent)
            else:
                i += 1

    def _cut_out(self, i: int, first: int, end: int, length: int, needed_from: int) -> int:
        """Take ordinals out of a span; where in the table they were."""
        span = self._spans[i]
        front = max(span.first, needed_from) < first
        if not front and end >= span.end:
            del self._spans[i], self._firsts[i]
            self._home.span_dropped(span)
            return i
        gone = min(length, span.bytes)
        if not front:
            self._shrink(span, min(gone + span.hidden, span.bytes), 0)
            span.first = self._firsts[i] = end
            return i
        if end < span.end:
            # what lies after stays the span that it was: recovery knows it
            left = (span.bytes - gone) * (first - span.first) // (span.end - end + first - span.first)
            before = Span(self._log, span.segment, span.ledger, span.first, first, left)
            before.hidden = min(span.hidden, left)
            before.places = None if span.places is None else span.places.copy()
            self._shrink(span, min(gone + left, span.bytes), 0)
            span.first = self._firsts[i] = end
            self._insert(i, before)
            return i + 1
        self._shrink(span, gone, span.hidden)
        span.end = first
        return i + 1

    def _shrink(self, span: Span, size: int, hidden: int) -> None:
        living = span.living
        span.bytes -= size
        span.hidden = min(hidden, span.bytes)
        self._home.span_shrunk(span, living - span.living)

    def _put(self, i: int, first: int, end: int, extent: ExtentPlace) -> int:
        """Have the extent in the span that ends where it begins, or in one of its own; where the next one stands."""
        before = self._spans[i - 1] if i else None
        if (
            before is not None
            and before.places is not None
            and (before.segment, before.ledger, before.end) == (extent.segment, extent.ledger, first)
            and before.places.offsets  # none after a start, where blocks are lost
            and before.places.offsets[-1] < extent.offset
        ):
            before.places.add(extent.first, extent.offset, extent.length)
            before.end = end
            before.bytes += extent.length
            return i
        span = Span(self._log, extent.segment, extent.ledger, first, end, extent.length)
        span.places = ExtentOffsets()
        span.places.add(extent.first, extent.offset, extent.length)
        self._insert(i, span)
        return i + 1

    # letting go --------------------------------------------------------------------------------------------------

    def drop_before(self, first: int) -> None:
        """The spans that end at or below ``first``."""
        count = 0
        for span in self._spans:
            if span.end > first:
                break
            count += 1
        for span in self._spans[:count]:
            self._home.span_dropped(span)
        del self._spans[:count], self._firsts[:count]
        self.hide_before(first)

    def any_before(self, first: int) -> bool:
        """Whether a span ends at or below ``first``."""
        return bool(self._spans) and self._spans[0].end <= first

    def hide_before(self, first: int) -> None:
        """Entries below ``first`` are needed no more, though the span that holds them stays."""
        span = self._spans[0] if self._spans else None
        if span is not None and span.first < first < span.end:
            self._shrink(span, 0, span.bytes * (first - span.first) // (span.end - span.first))

    def drop_ledger(self, ledger: int) -> None:
        """The spans of a ledger, which may lie between others."""
        for span in self._spans:
            if span.ledger == ledger:
                self._home.span_dropped(span)
        self._spans = [span for span in self._spans if span.ledger != ledger]
        self._firsts = [span.first for span in self._spans]
