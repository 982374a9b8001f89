"""What a store counts, compared with what there is: totals with their parts, tables with the objects they were made of.

Holds between any two calls from outside, so models and simulations ask it again and again, whatever they are about.
"""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

from magnetar.storage.ledgers.entry_cache import EntryCache
from magnetar.storage.ledgers.managed_ledger import ManagedLedger
from magnetar.storage.ledgers.stored_run import PackedRun, StoredRun
from magnetar.storage.log.segment import Span
from magnetar.storage.store import LedgerStore


def audit(store: LedgerStore) -> None:
    """Raise AssertionError where a total is not the sum of its parts."""
    for managed in store.logs():
        audit_log(managed, whole=not store.damage)
        assert managed.id <= store.ids[0]
        assert all(ledger.id <= store.ids[1] for ledger in managed.table.ledgers)
        assert all(cursor.id <= store.ids[2] for cursor in managed.cursors.values())
    ledgers = Counter(ledger.id for managed in store.logs() for ledger in managed.table.ledgers)
    assert not [number for number, count in ledgers.items() if count > 1], "a ledger id was given twice"
    audit_cache(store.cache, [managed for managed in store.logs() if not managed.deleted])
    _audit_occupancy(store)
    _audit_journal(store)


def _audit_journal(store: LedgerStore) -> None:
    """Entries and bytes that wait are those of the open group and of the one that is being written."""
    journal = store.journal
    groups = [group for group in (journal._group, journal._writing) if group is not None]
    waiting = [extent for group in groups for _, extent in group.extents]
    assert journal.pending_bytes == sum(extent.size for extent in waiting)
    assert all(extent.size == sum(map(len, extent.entries)) for extent in waiting)
    entries: Counter[object] = Counter()
    for extent in waiting:
        entries[extent.owner] += len(extent.entries)
    for managed in store.logs():
        assert managed.pending == entries[managed]


def audit_log(managed: ManagedLedger, *, whole: bool = True) -> None:
    """Of one log: its ledgers, its spans, its cursors. ``whole``: nothing of it was found damaged."""
    table, ledgers = managed.table, managed.table.ledgers
    assert table._bases == [ledger.ordinal for ledger in ledgers]
    assert table._ids == [ledger.id for ledger in ledgers] == sorted(set(table._ids))
    assert all(ledger.closed_ms for ledger in ledgers[:-1]), "only the last one is open"
    assert managed.end <= managed.next
    assert not ledgers or managed.first <= managed.end
    for before, after in pairwise(ledgers):
        if after.ordinal <= managed.end:
            assert before.end <= after.ordinal
            assert before.index + before.messages <= after.index
            if whole:
                assert (before.end, before.index + before.messages) == (after.ordinal, after.index)
    written = [ledger for ledger in ledgers if ledger.ordinal <= managed.end]
    if written and whole:
        assert (written[-1].end, written[-1].index + written[-1].messages) == (managed.end, managed.index)
    for ledger in ledgers:
        assert ledger.messages >= 0 <= ledger.bytes
        assert bool(ledger.entries) >= bool(ledger.messages)
    spans = list(managed.spans)
    assert managed.spans._firsts == [span.first for span in spans]
    assert all(span.first < span.end for span in spans)
    assert all(before.end <= after.first for before, after in pairwise(spans))
    for span in spans:
        assert span.log == managed.id
        assert 0 <= span.hidden <= span.bytes
    if whole and not managed.deleted:
        _audit_places(managed, spans)
    for cursor in managed.cursors.values():
        cursor.acked.check()
        assert cursor.has_partial_batches == bool(cursor._partial)
        assert all(live for live in cursor._partial.values()), "a batch of which nothing is left"
        assert not [ordinal for ordinal in cursor._partial if cursor.acknowledged(ordinal)]
        start = max(managed.first, cursor.mark_delete + 1)
        if managed.end - start < _COUNTED_MAX:
            left = [ordinal for ordinal in range(start, managed.end) if not cursor.acknowledged(ordinal)]
            assert cursor.backlog() == len(left), (cursor.backlog(), left)


_COUNTED_MAX = 300
_HEAD_MAX = 100  # bytes of an extent's record, its checksum and its head
_ENTRY_MAX = 8  # bytes of an entry's length and its number of messages


def _audit_places(managed: ManagedLedger, spans: list[Span]) -> None:
    """Every retained entry lies in one span, unless only its ledger's copy has it; a span's bytes are its extents'."""
    for ledger in managed.table.ledgers:
        mine = [span for span in spans if span.ledger == ledger.id]
        assert all(ledger.ordinal <= span.first and span.end <= ledger.end for span in mine)
        if ledger.offload is not None and ledger.offload.released:
            continue
        start = max(ledger.ordinal, managed.first)
        assert sum(max(span.end - max(span.first, start), 0) for span in mine) == max(ledger.end - start, 0)
    for span in spans:
        places, of = span.places, managed.table.of_id(span.ledger)
        if places is None or of is None or (span.first, span.end) != (of.ordinal, of.end):
            continue
        # a ledger of which all lies in the segment that is being written
        size, heads = sum(places.lengths), len(places.firsts) * _HEAD_MAX + of.entries * _ENTRY_MAX
        assert of.bytes <= size <= of.bytes + heads, (of.bytes, size)
        assert span.bytes == size


def audit_cache(cache: EntryCache, logs: list[ManagedLedger]) -> None:
    """Pieces and bytes."""
    listed = set()
    for part in (cache._recent, cache._awaited, cache._read):
        assert part.bytes == sum(size for _, _, size, _ in part.pieces)
        assert 0 <= part.old <= len(part.pieces)
        listed |= {(id(cached), first) for cached, first, _, _ in part.pieces}
    assert cache.entries_put - cache.entries_gone == sum(
        entries for part in (cache._recent, cache._awaited, cache._read) for _, _, _, entries in part.pieces
    )
    pieces = [piece for part in (cache._recent, cache._awaited, cache._read) for piece in part.pieces]
    gone = sum(cached.at(first) < 0 for cached, first, _, _ in pieces)
    assert gone <= cache._cleared, "pieces of logs that were cleared hold their part of the budget for ever"
    for managed in logs:
        runs = managed.cached_runs.runs
        assert all(before.first + len(before.entries) <= after.first for before, after in pairwise(runs))
        for run in runs:
            assert isinstance(run, StoredRun | PackedRun)
            assert (id(managed.cached_runs), run.first) in listed, "a piece that nobody would ever let go"


def _audit_occupancy(store: LedgerStore) -> None:
    occupancy = store.occupancy
    needed: dict[int, set[Span]] = {}
    for managed in store.logs():
        for span in managed.spans:
            needed.setdefault(span.segment, set()).add(span)
    gone = {span.log for spans in occupancy._spans.values() for span in spans} - {m.id for m in store.logs()}
    if store.journal._writing is None and not store.journal._group:
        assert not gone, "a log whose end is durable keeps segments"
    for number, spans in occupancy._spans.items():
        assert spans, "a segment of which nothing is needed counts as needed"
        mine = {span for span in spans if span.log not in gone}  # of a log whose end is not durable yet
        assert mine == needed.pop(number, set())
    assert not needed
    for number, living in occupancy._living.items():
        assert living == sum(span.living for span in occupancy._spans[number])
    assert occupancy._living.keys() <= occupancy._spans.keys()
    assert occupancy._copied.keys() <= occupancy._moved_to.keys(), "of a segment that was removed"
    assert all(0 < size <= occupancy.sizes.get(number, size) for number, size in occupancy._copied.items())
