"""Where the entries of logs lie: what a checkpoint promises, and what the segments after it hold."""

from __future__ import annotations

from typing import Final

from magnetar.storage.ledgers.managed_ledger import ManagedLedger
from magnetar.storage.ledgers.span_table import ExtentPlace
from magnetar.storage.log import judged_records, records
from magnetar.storage.log.segment import ExtentOffsets, Span
from magnetar.storage.replay.recovered import LEDGER, LOG, Recovered
from magnetar.storage.replay.replayed_logs import ReplayedLogs, require_ordinal

_MESSAGES_AHEAD: Final = 1 << 50


class ReplayedExtents:
    """The extents of a start, while it replays; names the entries that are missing."""

    def __init__(self, found: Recovered, logs: ReplayedLogs) -> None:
        self._found = found
        self._logs = logs
        self._covered: dict[Span, int] = {}
        """How far the spans that only the checkpoint vouches for have been found in their segments."""
        self._promised: dict[Span, int] = {}

    def span(self, managed: ManagedLedger, span: Span) -> None:
        """A span that a checkpoint names."""
        if span.segment > self._found.checkpoint_segment:
            span.places = ExtentOffsets()
            self._covered[span], self._promised[span] = span.first, span.end
        managed.spans.add(span)

    def extent(self, segment: int, offset: int, raw: records.RawRecord) -> None:
        """An EXTENT record. Raises as the judge does, and if the entries cannot lie there."""
        head = judged_records.extent_of(raw)
        managed = self._found.logs.get(head.log)
        length = records.RECORD_HEADER_SIZE + len(raw.body)
        self._found.know(LOG, head.log)
        self._found.know(LEDGER, head.ledger)
        if raw.flags & records.MOVED:
            if managed is not None:
                self._moved(managed, _place(segment, head, offset, length))
            return
        if managed is None and (managed := self._logs.nameless(head)) is None:
            return
        if head.ordinal < managed.end:
            self._placed_again(managed, _place(segment, head, offset, length))
            return
        _require_place(managed, head)
        self._missing(managed, managed.end, head.ordinal)
        counts = records.extent_counts(raw)
        tables = head.entries if counts is None else 2 * head.entries
        size = len(raw.body) - records.EXTENT_HEAD_SIZE - 4 * tables
        managed.replay_extent(segment, head, counts, size, offset, length)

    def _placed_again(self, managed: ManagedLedger, extent: ExtentPlace) -> bool:
        """An extent that the checkpoint counts already. False if that says that its entries lie elsewhere."""
        span = managed.spans.place_again(extent.segment, extent.ledger, extent.first, extent.offset, extent.length)
        if span is not None and span in self._covered:
            # the front of the span may have been moved since
            self._missing(managed, max(self._covered[span], span.first), extent.first)
            self._covered[span] = extent.end
        return span is not None

    def _moved(self, managed: ManagedLedger, extent: ExtentPlace) -> None:
        if not self._placed_again(managed, extent):
            managed.spans.move(extent, managed.first)

    def _missing(self, managed: ManagedLedger, start: int, stop: int) -> None:
        if start < stop:
            first, last = managed.position(start), managed.position(stop - 1)
            self._found.name(f"{managed.name}: {stop - start} entries from {first} to {last} are missing")

    def settle(self, managed: ManagedLedger) -> None:
        """After the last record: name what is missing of a log, forget what was begun and never became durable."""
        for span in managed.spans:
            if span in self._covered:
                self._missing(managed, max(self._covered[span], span.first), min(self._promised[span], span.end))
        managed.spans.hide_before(managed.first)
        # what was let go may have been lost before: an ordinal below is never shown, so none is given
        managed.recovered(max(managed.end, managed.first), managed.index)
        # the checkpoint may know a ledger that was opened after entries which the kill prevented
        managed.table.drop_after(managed.end)


def _place(segment: int, head: records.ExtentHead, offset: int, length: int) -> ExtentPlace:
    return ExtentPlace(segment, head.ledger, head.ordinal, head.ordinal + head.entries, offset, length)


def _require_place(managed: ManagedLedger, head: records.ExtentHead) -> None:
    """Raises RecordError if entries of that ledger cannot lie there: it would overlap another one."""
    require_ordinal(managed, head.ordinal)
    if head.message_index > managed.index + _MESSAGES_AHEAD:
        raise records.RecordError(f"message {head.message_index} of a log that has {managed.index}")
    table, base, end = managed.table, head.ordinal - head.entry, head.ordinal + head.entries
    newest = table.ledgers[-1] if table.ledgers else None
    if newest is not None and newest.id == head.ledger and newest.ordinal == base:
        return  # as nearly all do
    known, after = table.of_id(head.ledger), table.after(head.ledger)
    before = (one for one in reversed(table.ledgers) if one.id < head.ledger and one.entries)
    if (
        (known is not None and known.ordinal != base)
        or (known is None and (last := next(before, None)) is not None and last.end > base)
        or (after is not None and after.ordinal < end)
    ):
        raise records.RecordError(f"entries of ledger {head.ledger} that would lie in another one")
