"""Where the entries of one log lie: its spans, in the order of their ordinals.

A span is the part of a ledger that lies in one segment; it grows with each extent until another segment or ledger
begins. The store is told of every span that comes and goes, because a segment without spans can be removed.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from typing import Protocol

from magnetar.storage.segment import Places, Span


class SpanHome(Protocol):
    """The store, as spans see it."""

    def span_added(self, span: Span) -> None: ...
    def span_dropped(self, span: Span) -> None: ...


class SpanTable:
    """Of the log with that id."""

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

    def add(self, span: Span) -> None:
        """Append a span that lies behind all others."""
        self._spans.append(span)
        self._firsts.append(span.first)
        self._home.span_added(span)

    def place(self, segment: int, ledger: int, ordinal: int, entries: int, offset: int, length: int) -> None:
        """An extent behind all others: so many entries from ``ordinal`` on, at ``offset`` of the segment."""
        span = self._spans[-1] if self._spans else None
        if span is None or span.segment != segment or span.ledger != ledger or span.places is None:
            span = Span(self._log, segment, ledger, ordinal, ordinal, 0)
            span.places = Places()
            self.add(span)
        assert span.places is not None
        span.places.add(ordinal, offset, length)
        span.end = ordinal + entries
        span.bytes += length

    def place_again(self, segment: int, ledger: int, ordinal: int, offset: int, length: int) -> Span | None:
        """For recovery: an extent that its span counts already, and whose place is not in an index yet."""
        span = self.holding(ordinal)
        if span is None or span.segment != segment or span.ledger != ledger or span.places is None:
            return None
        span.places.add(ordinal, offset, length)
        return span

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

    def drop_ledger(self, ledger: int) -> None:
        """The spans of a ledger, which may lie between others."""
        for span in self._spans:
            if span.ledger == ledger:
                self._home.span_dropped(span)
        self._spans = [span for span in self._spans if span.ledger != ledger]
        self._firsts = [span.first for span in self._spans]
