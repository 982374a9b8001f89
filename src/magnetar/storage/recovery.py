"""Start-up is recovery: newest checkpoint, then every record younger than it, in order.

There is no other way to start, so the way after kill -9 is walked every time. The result is the state as of the last
durable group: every log's ledgers, spans and cursors.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable
from typing import Any, Final, Protocol

from magnetar.model.errors import PersistenceError
from magnetar.storage.backends.journal_backend import JournalBackend, segment_name
from magnetar.storage.ledgers.archive import Offload
from magnetar.storage.ledgers.cursor import Cursor
from magnetar.storage.ledgers.ledger import Ledger
from magnetar.storage.ledgers.managed_ledger import ManagedLedger
from magnetar.storage.ledgers.span_table import ExtentPlace
from magnetar.storage.log import checkpoint, cursor_records, records
from magnetar.storage.log.journal import Journal
from magnetar.storage.log.segment import ExtentOffsets, Span
from magnetar.storage.log.segment_scan import Border, SegmentScan
from magnetar.storage.lost_blocks import begun_but_hollow, blocks_missing, gap_after

log = logging.getLogger(__name__)

NAMELESS: Final = "persistent://lost/found/log-{}"
"""Entries of a log that nothing names any more are kept as this topic: it can be read and deleted like any other."""

_FEATURE_STATE_KINDS: Final = (
    records.RecordKind.FEATURE_STATE_CHANGE,
    records.RecordKind.FEATURE_STATE,
    records.RecordKind.FEATURE_STATE_REMOVED,
)


class LogFactory(Protocol):
    """The store, as recovery sees it."""

    journal: Journal
    discarded: dict[str, Offload]

    def copy_discarded(self, offload: Offload) -> None: ...
    def make_log(self, log_id: int, name: str) -> ManagedLedger: ...


class Recovered:
    """The result of a recovery."""

    def __init__(self) -> None:
        self.logs: dict[int, ManagedLedger] = {}
        self.cursors: dict[int, tuple[ManagedLedger, Cursor]] = {}
        self.checkpoint_number = 0
        self.checkpoint_segment = 0
        self.segment = 0
        """The newest segment that exists."""
        self.length = 0
        """How much of it counts."""
        self.hollow = False
        """The newest segment was read, and no whole block is in it."""
        self.blocks_lost = False
        """Of what was read some is unreadable, if only a header: numbers may have been given there."""
        self.sequence = 0
        """Sequence for the next block."""
        self.secret: int | None = None
        """The directory's; None in a new one."""
        self.scanned: list[int] = []
        """Segments that were read, and so need an index file."""
        self.noted: int | None = None
        """The newest of which is known that a block of it was durable."""
        self.ids = [0, 0, 0]
        """Highest log, ledger and cursor id ever seen."""
        self.damage: list[str] = []
        """Descriptions of what is unreadable; each is in the log, too."""

    def name(self, damage: str) -> None:
        """Note damage that has not been said yet."""
        self.damage.append(damage)
        log.error("%s", damage)


def recover(
    backend: JournalBackend,
    factory: LogFactory,
    owner: int | None = None,
    before_change: Callable[[], None] = lambda: None,
) -> Recovered:
    """Read the journal; ``owner`` is its secret, if that is known. ``before_change`` is called before the first write.

    Raises PersistenceError if it cannot be understood without loss; nothing is changed then.
    """
    found = Recovered()
    segments = backend.segments()
    found.checkpoint_number, image, damaged = checkpoint.find(backend, owner)
    if image is not None:
        _Replay(found, factory).image(image)
    elif segments and segments[0] != 1:
        raise PersistenceError(
            f"no readable checkpoint, and {segment_name(1)} is gone: the state cannot be rebuilt. "
            f"Restore {_named(damaged) or 'a checkpoint'} or the directory from a backup"
        )
    young = [number for number in segments if number > found.checkpoint_segment]
    gap = gap_after(found.checkpoint_segment, segments)
    if gap is not None:
        raise PersistenceError(gap + (f" (damaged: {_named(damaged)})" if damaged else ""))
    before_change()
    checkpoint.set_aside(backend, damaged)
    found.segment = max([found.checkpoint_segment, *segments])
    if found.secret is None:
        found.secret = owner
    replay = _Replay(found, factory)
    found.noted = backend.noted_newest()
    for number, following in zip(young, [*young[1:], None], strict=False):
        _scan(backend, number, None if following is None else _border(backend, following), replay)
    if young:
        backend.sync()
    replay.settle()
    return found


def _named(checkpoints: Iterable[int]) -> str:
    return ", ".join(f"checkpoint-{number:016x}" for number in checkpoints)


def _border(backend: JournalBackend, number: int) -> Border:
    file = backend.open(number)
    try:
        return SegmentScan(backend, number, file).border()
    finally:
        file.close()


def _scan(backend: JournalBackend, number: int, border: Border | None, replay: _Replay) -> None:
    """Replay one segment; ``border`` is the one between it and the next, None for the newest."""
    found = replay.found
    limit, before = border or (None, None)
    begun = number == found.noted
    file = backend.open(number)
    try:
        scan = SegmentScan(backend, number, file, limit, before, found.secret, begun=begun)
        scan.sequence = found.sequence - 1
        for block in scan:
            replay.damaged = bool(found.damage or scan.damage)
            replay.sequence = block.sequence
            for raw in block.records:
                replay.record(number, block.offset, raw)
        found.sequence = scan.sequence + 1
        found.secret = scan.secret
        found.damage += scan.damage
        lost = None
        if begun and scan.hollow and not scan.damage and border is not None:  # the store names the newest
            lost = begun_but_hollow(number)
        elif before is not None:
            lost = blocks_missing(number, found.sequence, before)
        if lost is not None:
            found.name(lost)
        found.blocks_lost |= bool(scan.damage or lost)
        found.scanned.append(number)
        found.hollow = scan.hollow
        found.length = scan.length
        if limit is None and file.size() > scan.length and not scan.kept_in_place:
            file.truncate(scan.length)
        # after kill -9 what was read may be in the page cache only, and a checkpoint is about to rely on it
        file.sync()
    finally:
        file.close()


class _Replay:
    """Applies records to the state; applying one twice changes nothing."""

    def __init__(self, found: Recovered, factory: LogFactory) -> None:
        self.found = found
        self._factory = factory
        self._covered: dict[Span, int] = {}
        """How far the spans that only the checkpoint vouches for have been found in their segments."""
        self._promised: dict[Span, int] = {}
        self._nameless: set[int] = set()
        """Logs whose birth lies in a damaged block."""
        self._gone: set[int] = set()
        """Logs that were deleted."""
        self.sequence = -1
        """The number of the block whose records are being applied."""
        self.damaged = False
        """Whether a damaged block came before: only then can a log be unknown that was not deleted."""

    def image(self, image: checkpoint.Checkpoint) -> None:
        """Take a checkpoint."""
        found, head = self.found, image.head
        found.checkpoint_segment = found.segment = head["segment"]
        found.length = head["length"]
        found.sequence = head["sequence"]
        found.ids = list(head["ids"])
        found.secret = head["secret"]
        for values in head.get("discarded", ()):
            copy = Offload.from_list(values)
            self._factory.discarded[copy.key] = copy
        for logged in image.logs:
            about = logged.about
            managed = self._log(about["id"], about["name"])
            managed.properties = about["properties"]
            managed.hidden, managed.hidden_size = about.get("hidden", (0, 0))
            for values in about["ledgers"]:
                managed.table.add(Ledger.from_list(values))
                found.ids[1] = max(found.ids[1], values[0])
            for values in about["spans"]:
                span = Span(managed.id, *values)
                if span.segment > found.checkpoint_segment:
                    span.places = ExtentOffsets()
                    self._covered[span], self._promised[span] = span.first, span.end
                managed.spans.add(span)
            managed.recovered(about["end"], about["index"])
            for one in logged.cursors:
                self._cursor(managed, one.name, one.properties, one.state)
            managed.feature_states_at = about["annexes"]
            for feature_state in logged.feature_states:
                managed.feature_state(feature_state.name).restore(feature_state)

    def record(self, segment: int, block_offset: int, raw: records.RawRecord) -> None:
        """Apply one record."""
        kind, body = raw.kind, raw.body
        if kind == records.RecordKind.EXTENT:
            self._extent(segment, block_offset + raw.at, raw)
        elif kind == records.RecordKind.ACKS:
            state, _ = cursor_records.parse_cursor_state(body)
            self.found.ids[2] = max(self.found.ids[2], state.cursor)
            known = self.found.cursors.get(state.cursor)
            if known is not None:
                known[1].replay(state)
        elif kind == records.RecordKind.CURSOR:
            name, properties, state, _ = cursor_records.parse_cursor_record(body)
            managed = self.found.logs.get(state.log)
            self.found.ids[2] = max(self.found.ids[2], state.cursor)
            if managed is not None:
                self._cursor(managed, name, properties, state)
        elif kind in _FEATURE_STATE_KINDS:
            log_id, name, data = records.parse_feature_state(body)
            managed = self.found.logs.get(log_id)
            if managed is not None and self.sequence > managed.feature_states_at:
                managed.feature_state(name).replay(kind, data)
        else:
            self._rare(kind, json.loads(body))

    def _rare(self, kind: int, fields: dict[str, Any]) -> None:
        found = self.found
        if kind == records.RecordKind.LOG:
            if fields["log"] in self._gone:
                return
            self._log(fields["log"], fields["name"]).properties = fields["properties"]
            return
        if kind == records.RecordKind.COPY_DELETED:
            self._factory.discarded.pop(fields["key"], None)
            return
        if kind == records.RecordKind.COPY_BEGUN:
            self._factory.copy_discarded(Offload.from_list(fields["offload"]))
            return
        managed = found.logs.get(fields["log"])
        found.ids[0] = max(found.ids[0], fields["log"])
        if kind == records.RecordKind.LEDGER:
            found.ids[1] = max(found.ids[1], fields["ledger"])
        if managed is None:
            return
        if kind == records.RecordKind.LOG_DELETED:
            del found.logs[managed.id]
            self._gone.add(managed.id)
            managed.forget()
            for span in managed.spans:
                managed.home.span_dropped(span)
            for cursor in managed.cursors.values():
                found.cursors.pop(cursor.id, None)
        elif kind == records.RecordKind.LEDGER:
            self._ledger(managed, fields)
        elif kind == records.RecordKind.OFFLOADED:
            managed.apply_offload(fields["ledger"], Offload.from_list(fields["offload"]))
        elif kind == records.RecordKind.TRIMMED:
            managed.replay_trim(fields["ordinal"], fields.get("bytes", 0))
        elif kind == records.RecordKind.CURSOR_DELETED:
            pair = found.cursors.pop(fields["cursor"], None)
            if pair is not None and managed.cursors.get(pair[1].name) is pair[1]:
                del managed.cursors[pair[1].name]
        else:
            raise PersistenceError(f"a record of kind {kind}: the directory was written by a newer version of magnetar")

    def _log(self, log_id: int, name: str) -> ManagedLedger:
        managed = self.found.logs.get(log_id)
        if managed is None:
            managed = self.found.logs[log_id] = self._factory.make_log(log_id, name)
            self.found.ids[0] = max(self.found.ids[0], log_id)
        elif log_id in self._nameless and name != managed.name:
            self._nameless.discard(log_id)
            managed.name = name
        return managed

    def _ledger(self, managed: ManagedLedger, fields: dict[str, Any]) -> None:
        table = managed.table
        if any(known.id >= fields["ledger"] for known in table.ledgers[-1:]):
            return
        # a ledger that was opened after entries which then failed is void: the next one begins where it did or before
        table.drop_from(fields["ordinal"])
        if table.ledgers and not table.ledgers[-1].closed_ms:
            table.ledgers[-1].closed_ms = fields["ms"]
        table.add(Ledger(fields["ledger"], fields["ordinal"], fields["index"], fields["ms"]))

    def _extent(self, segment: int, offset: int, raw: records.RawRecord) -> None:
        head = records.extent_head(raw.body)
        managed = self.found.logs.get(head.log)
        length = records.RECORD_HEADER_SIZE + len(raw.body)
        ids = self.found.ids
        ids[0], ids[1] = max(ids[0], head.log), max(ids[1], head.ledger)
        if raw.flags & records.MOVED:
            if managed is not None:
                self._moved(
                    managed,
                    ExtentPlace(segment, head.ledger, head.ordinal, head.ordinal + head.entries, offset, length),
                )
            return
        if managed is None:
            if not self.damaged:
                return  # deleted, and the checkpoint knows
            self._nameless.add(head.log)
            managed = self._log(head.log, NAMELESS.format(head.log))
            managed.recovered(head.ordinal, head.message_index)
        if head.ordinal < managed.end:
            self._placed_again(
                managed, ExtentPlace(segment, head.ledger, head.ordinal, head.ordinal + head.entries, offset, length)
            )
            return
        self._missing(managed, managed.end, head.ordinal)
        counts = records.extent_counts(raw)
        size = records.extent_payload_size(raw)
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

    def _cursor(
        self, managed: ManagedLedger, name: str, properties: dict[str, Any], state: cursor_records.CursorState
    ) -> None:
        known = self.found.cursors.get(state.cursor)
        if known is None:
            self.found.ids[2] = max(self.found.ids[2], state.cursor)
            cursor = Cursor(managed, state.cursor, name, state.mark_delete, self._factory.journal, properties)
            self.found.cursors[state.cursor] = (managed, cursor)
        else:
            cursor = known[1]
            cursor.properties = properties
        # a later one of that name stands in the checkpoint while the records still speak of an earlier one
        managed.cursors[name] = cursor
        cursor.restore(state)

    def _missing(self, managed: ManagedLedger, start: int, stop: int) -> None:
        if start < stop:
            first, last = managed.position(start), managed.position(stop - 1)
            self.found.name(f"{managed.name}: {stop - start} entries from {first} to {last} are missing")

    def settle(self) -> None:
        """After the last record: name what is missing, forget what was begun and never became durable."""
        for managed in self.found.logs.values():
            for ledger in managed.table.ledgers:
                if ledger.offload is not None:
                    # a checkpoint may know of a trim that the kill prevented
                    self._factory.discarded.pop(ledger.offload.key, None)
            for span in managed.spans:
                if span in self._covered:
                    self._missing(managed, max(self._covered[span], span.first), min(self._promised[span], span.end))
            managed.spans.hide_before(managed.first)
            # what was let go may have been lost before: an ordinal below is never shown, so none is given
            managed.recovered(max(managed.end, managed.first), managed.index)
            # the checkpoint may know a ledger that was opened after entries which the kill prevented
            managed.table.drop_after(managed.end)
            for cursor in managed.cursors.values():
                cursor.settle()
            if managed.id in self._nameless:
                self.found.name(
                    f"the name of log {managed.id} was in a damaged block; its entries are kept as {managed.name}"
                )
