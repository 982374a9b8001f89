"""A topic's endless log: entries in, ordinals and positions out; read, trim, cursors.

Lives on the event loop. ``append`` fixes the order and returns at once; ``on_durable`` hears once per group what is
durable, and only ordinals below ``end`` may be shown to any client.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any, Final, Protocol

from magnetar.model.errors import PersistenceError
from magnetar.model.ids import Position
from magnetar.runtime.clock import Clock
from magnetar.storage.ledgers.cursor import Cursor
from magnetar.storage.ledgers.cursor_deletions import CursorDeletions, Over
from magnetar.storage.ledgers.entry_cache import CachedRuns, EntryCache
from magnetar.storage.ledgers.feature_state import FeatureState
from magnetar.storage.ledgers.ledger import Ledger, LedgerTable, Rollover
from magnetar.storage.ledgers.span_table import SpanHome, SpanTable
from magnetar.storage.ledgers.stored_run import StoredRun
from magnetar.storage.ledgers.trimmable_ledgers import TrimHome, TrimmableLedgers
from magnetar.storage.log import records
from magnetar.storage.log.write_group import PendingExtent, WriteTimes

_EXTENT_BYTES: Final = 256 << 10
"""An extent is closed when it is larger: it is also what one read takes from the disk at least."""

NEVER: Final = 1 << 62  # an ordinal that no log reaches

_new_run: Final = tuple.__new__  # a third of what calling the class takes, once per extent
ReadDone = Callable[[StoredRun | Exception], None]


class LogHome(SpanHome, TrimHome, Protocol):
    """The store, as one log sees it."""

    cache: EntryCache
    clock: Clock
    cursor_deletions: CursorDeletions
    rollover: Rollover

    def next_ledger_id(self) -> int: ...
    def next_cursor_id(self) -> int: ...
    def birth_given(self, log_id: int, record: bytes) -> None: ...
    def read(self, log: ManagedLedger, start: int, entries_max: int, bytes_max: int, done: ReadDone) -> None: ...
    def read_on(self, log: ManagedLedger) -> None: ...


class ManagedLedger(TrimmableLedgers):
    """One topic's log; made by :class:`magnetar.storage.store.LedgerStore`."""

    # CPython shares the keys of instances with up to 29 attributes; one with 30 had a hash table of 1.6 KB for each
    # topic, and 1,000 topics that are written in turn cost 8 % more CPU (docs/performance.md)
    __slots__ = (
        "_extent", "_ledger_bytes", "_ledger_ready", "_next", "_next_index", "_room", "ahead_from", "cached_runs",
        "cursors", "deleted", "end", "entries_added", "feature_states", "feature_states_at", "home",
        "id", "index", "name", "newest_read", "on_counted", "on_durable", "on_failed", "on_group", "properties",
        "read_end", "spans", "table",
    )  # fmt: skip

    def __init__(self, home: LogHome, log_id: int, name: str) -> None:
        super().__init__(home)
        self.home = home
        self.id = log_id
        self.name = name
        self.properties: dict[str, Any] = {}
        self.table = LedgerTable()
        self.spans = SpanTable(home, log_id)
        self.cursors: dict[str, Cursor] = {}
        self.feature_states: dict[str, FeatureState] = {}
        self.feature_states_at = -1
        """For recovery: the checkpoint's states of features hold everything up to this block."""
        self.end = 0
        """Ordinal after the last durable entry."""
        self.index = 0
        """Message index after the last durable message: messages ever stored."""
        self.entries_added = 0
        """Entries made durable since this process loaded the log."""
        self.deleted = False
        self._next = 0
        self._next_index = 0
        self._ledger_bytes = 0
        self._extent: PendingExtent | None = None
        self._room = 0
        self._ledger_ready = False
        self.cached_runs = CachedRuns(self.cursors)
        self.ahead_from = NEVER
        """Ordinal at which a reader has used up so much of what was read ahead that more is due."""
        self.read_end = -1
        """Where the reader's last read of this log ended."""
        self.newest_read = -1
        """Where the last of the reads began that were begun for it."""
        self.on_durable: Callable[[PendingExtent], None] = _nothing
        self.on_failed: Callable[[PendingExtent, PersistenceError], None] = _nothing_failed
        self.on_group: Callable[[], None] = _nothing_happened
        self.on_counted: Callable[[PendingExtent, WriteTimes], None] = _nothing_counted

    @property
    def next(self) -> int:
        """Ordinal of the next entry to be appended."""
        return self._next

    @property
    def pending(self) -> int:
        """Entries that were appended and are not durable yet."""
        return self._next - self.end

    # appending ---------------------------------------------------------------------------------------------------

    def append(self, entry: bytes, messages: int, tag: object) -> int:
        """Put ``entry`` (``messages`` messages) after all others and return its ordinal.

        ``tag`` comes back in the extent given to ``on_durable`` or ``on_failed``.
        """
        extent = self._extent
        if extent is None or self._room <= 0:
            extent = self._start_extent()
        entries = extent.entries
        if messages != 1 or extent.counts is not None:
            if extent.counts is None:
                extent.counts = [1] * len(entries)
            extent.counts.append(messages)
        entries.append(entry)
        extent.tags.append(tag)
        size = len(entry)
        extent.size += size
        self._journal.pending_bytes += size
        self._room = self._room - 1 if extent.size < _EXTENT_BYTES else 0
        self._next_index += messages
        ordinal = self._next
        self._next = ordinal + 1
        return ordinal

    def append_all(self, entries: list[bytes], tags: Sequence[object]) -> None:
        """Put entries of one message each after all others, in order; ``tags`` are theirs, as in :meth:`append`."""
        done, count = 0, len(entries)
        while done < count:
            extent = self._extent
            if extent is None or self._room <= 0:
                extent = self._start_extent()
            some = entries[done : done + self._room]
            size = sum(map(len, some))
            if extent.size + size >= _EXTENT_BYTES:
                # the entry that fills the extent still belongs to it
                some = some[: bisect_left(list(accumulate(map(len, some))), _EXTENT_BYTES - extent.size) + 1]
                size = sum(map(len, some))
            n = len(some)
            extent.entries += some
            extent.tags += tags[done : done + n]
            if extent.counts is not None:
                extent.counts += [1] * n
            extent.size += size
            self._journal.pending_bytes += size
            self._room = self._room - n if extent.size < _EXTENT_BYTES else 0
            self._next_index += n
            self._next += n
            done += n

    def barrier(self, done: Callable[[], None], failed: Callable[[PersistenceError], None] | None = None) -> None:
        """Call ``done`` when everything appended before is durable."""
        self._journal.barrier(done, failed)

    def _start_extent(self) -> PendingExtent:
        now = self.home.clock.now_ms()
        if self._extent is not None:
            self._ledger_bytes += self._extent.size
        ledger = self.table.ledgers[-1] if self.table.ledgers else None
        if ledger is None or not self._ledger_ready:
            ledger = self.open_ledger()
        else:
            entries = self._next - ledger.ordinal
            if self.home.rollover.due(entries, self._ledger_bytes, ledger.opened_ms, now):
                ledger = self.open_ledger()
        entry = self._next - ledger.ordinal
        extent = PendingExtent(self, ledger.id, entry, self._next, self._next_index, now)
        left = self.home.rollover.entries_max - entry
        self._room = left if left > 0 else 4096
        self._extent = extent
        self._journal.add_extent(self.id, extent)
        return extent

    def open_ledger(self) -> Ledger:
        """Close the open ledger, if any, and open the next one."""
        now = self.home.clock.now_ms()
        # one that never got an entry is void, as for recovery: loading a topic again and again must not add up
        self.table.drop_from(self._next)
        if self.table.ledgers:
            self.table.ledgers[-1].closed_ms = now
        ledger = Ledger(self.home.next_ledger_id(), self._next, self._next_index, now)
        self.table.add(ledger)
        self._extent = None
        self._ledger_bytes = 0
        self._ledger_ready = True
        record = records.json_record(
            records.RecordKind.LEDGER, log=self.id, ledger=ledger.id, ordinal=ledger.ordinal, index=ledger.index, ms=now
        )
        self._journal.add_record(record, None, self._ledger_lost)
        return ledger

    def _ledger_lost(self, error: PersistenceError) -> None:
        self._ledger_ready = False

    def write_birth(self, done: Callable[[], None] | None = None) -> None:
        """Have the log itself, and its properties, in the next group that can be written."""
        if self.deleted:  # or the record would bring it back
            self.barrier(done or _nothing_happened)
            return
        record = records.json_record(records.RecordKind.LOG, log=self.id, name=self.name, properties=self.properties)
        self.home.birth_given(self.id, record)
        self._journal.add_record(record, done)

    # what the journal reports --------------------------------------------------------------------------------------

    def extent_closed(self) -> None:
        """The journal has taken the open extent."""
        if self._extent is not None:
            self._ledger_bytes += self._extent.size
            self._extent = None

    def extent_durable(self, extent: PendingExtent) -> None:
        """Entries are on disk: note where, keep them in the cache, notify the topic."""
        if self.deleted:
            self.on_failed(extent, PersistenceError("the log was deleted"))
            return
        n = len(extent.entries)
        counts = extent.counts
        messages = n if counts is None else sum(counts)
        self.spans.place(extent.segment, extent.ledger, extent.ordinal, n, extent.offset, extent.length)
        ledger = self.table.ledgers[-1]
        if ledger.id != extent.ledger:
            ledger = self._ledger_of(extent.ledger)
        ledger.entries += n
        ledger.messages += messages
        ledger.bytes += extent.size
        self.end = extent.ordinal + n
        self.index = extent.index + messages
        self.entries_added += n
        run = _new_run(StoredRun, (extent.ordinal, extent.ledger, extent.entry, extent.entries, counts, extent.index))
        self.home.cache.put(self.cached_runs, run, extent.size)
        self.on_durable(extent)

    def extent_failed(self, extent: PendingExtent, error: PersistenceError) -> None:
        """Entries did not reach the disk: their ordinals are free again, their ledger takes no more."""
        self._next = self.end
        self._next_index = self.index
        self._extent = None
        self._ledger_ready = False
        self.table.drop_after(self.end)
        self.on_failed(extent, error)

    def _ledger_of(self, ledger_id: int) -> Ledger:
        ledgers = self.table.ledgers
        if ledgers[-1].id == ledger_id:
            return ledgers[-1]
        return next(found for found in reversed(ledgers) if found.id == ledger_id)

    # recovery ----------------------------------------------------------------------------------------------------

    def recovered(self, end: int, index: int) -> None:
        """What is durable ends here."""
        self.end = self._next = end
        self.index = self._next_index = index

    def replay_extent(
        self, segment: int, head: records.ExtentHead, counts: list[int] | None, size: int, offset: int, length: int
    ) -> None:
        """An extent found after the checkpoint; ``size`` is what its entries take."""
        messages = head.entries if counts is None else sum(counts)
        self.spans.place(segment, head.ledger, head.ordinal, head.entries, offset, length)
        if not any(known.id == head.ledger for known in reversed(self.table.ledgers)):
            # its own record was in a damaged block; that of the next one may have come before this extent
            self.table.insert(Ledger(head.ledger, head.ordinal - head.entry, head.message_index, head.published_ms))
        ledger = self._ledger_of(head.ledger)
        ledger.entries = head.entry + head.entries
        ledger.messages += messages
        ledger.bytes += size
        self.recovered(head.ordinal + head.entries, head.message_index + messages)

    # reading -----------------------------------------------------------------------------------------------------

    def cached(self, start: int, entries_max: int, bytes_max: int) -> StoredRun | None:
        """Entries from ``start`` on that are in memory, at least one, or None."""
        if start >= self.end:
            return None
        if start >= self.ahead_from:
            self.home.read_on(self)
        return self.cached_runs.find(start, entries_max, bytes_max)

    def read(self, start: int, entries_max: int, bytes_max: int, done: ReadDone) -> None:
        """Read from disk; ``done`` is called on the loop with at least one entry, or with the error.

        Begins at ``first`` if ``start`` was trimmed. ``start`` must be below ``end``.
        """
        self.home.read(self, max(start, self.first), entries_max, bytes_max, done)

    def position(self, ordinal: int) -> Position:
        """(ledger, entry) of an ordinal."""
        return self.table.position(ordinal)

    def ordinal(self, position: Position) -> int:
        """Ordinal of the first entry at or after ``position``; at most ``end`` (rule 5.9.7)."""
        return max(self.table.ordinal(position, self.end), self.first)

    def exact_ordinal(self, position: Position) -> int | None:
        """Ordinal of exactly this position, or None."""
        found = self.table.exact(position, self.end)
        return None if found is None or found < self.first else found

    # cursors -----------------------------------------------------------------------------------------------------

    def open_cursor(
        self, name: str, ordinal: int, *, durable: bool = True, properties: dict[str, Any] | None = None,
        done: Callable[[], None] | None = None,
    ) -> Cursor:  # fmt: skip
        """Make a cursor whose next entry is ``ordinal``; ``done`` when a durable one is on disk."""
        cursor = Cursor(
            self, self.home.next_cursor_id(), name, ordinal - 1, self._journal if durable else None, properties
        )
        if durable:
            self.cursors[name] = cursor
            cursor.record(done or _nothing_happened)
        else:
            self.cached_runs.came(cursor)
            (done or _nothing_happened)()
        return cursor

    def delete_cursor(self, name: str, done: Callable[[], None] | None = None) -> None:
        """Forget a durable cursor; ``done`` when that is durable."""
        cursor = self.cursors.pop(name)
        cursor.deleted = True
        record = records.json_record(records.RecordKind.CURSOR_DELETED, log=self.id, cursor=cursor.id)
        self.home.cursor_deletions.begin(self.id, name, record, done)

    def after_deletion(self, name: str, answer: Over) -> None:
        """Answer when no deletion of a cursor of that name is on its way to the disk; see :class:`CursorDeletions`."""
        self.home.cursor_deletions.when_over(self.id, name, answer)

    # features ----------------------------------------------------------------------------------------------------

    def feature_state(self, name: str) -> FeatureState:
        """Where the feature of that name keeps its state (docs/decisions/006); the same object each time."""
        feature_state = self.feature_states.get(name)
        if feature_state is None:
            feature_state = self.feature_states[name] = FeatureState(self, self._journal, name)
        return feature_state

    # the end ------------------------------------------------------------------------------------------------------

    def forget(self) -> None:
        """The log is being deleted, and with it what it knows of copies."""
        self.deleted = True
        self.discard_copies(self.table.ledgers)

    def dissolve(self) -> None:
        """The deletion is durable: let go of what refers back to the log, so that no collector has to find it."""
        self.cursors.clear()
        self.feature_states.clear()
        self.on_durable, self.on_failed, self.on_group = _nothing, _nothing_failed, _nothing_happened
        self.on_counted = _nothing_counted

    def retained_bytes(self) -> int:
        """Entry bytes in all retained ledgers."""
        return sum(ledger.bytes for ledger in self.table.ledgers)


def _nothing(extent: PendingExtent) -> None: ...
def _nothing_failed(extent: PendingExtent, error: PersistenceError) -> None: ...
def _nothing_happened() -> None: ...
def _nothing_counted(extent: PendingExtent, times: WriteTimes) -> None: ...
