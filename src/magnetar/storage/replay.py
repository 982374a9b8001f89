"""Applies what a start reads to a state: first a checkpoint, then record after record.

Each record is judged before it changes anything (:mod:`magnetar.storage.log.judged_records`), and here against what is
known of its log: the state that comes out of it is one whose checkpoint the next start takes.
"""

from __future__ import annotations

import logging
from typing import Any, Final, Protocol

from magnetar.storage.ledgers.archive import Offload
from magnetar.storage.ledgers.cursor import Cursor
from magnetar.storage.ledgers.ledger import Ledger
from magnetar.storage.ledgers.managed_ledger import ManagedLedger
from magnetar.storage.ledgers.span_table import ExtentPlace
from magnetar.storage.log import checkpoint, cursor_records, judged_records, records
from magnetar.storage.log.journal import Journal
from magnetar.storage.log.segment import ExtentOffsets, Span

log = logging.getLogger(__name__)

NAMELESS: Final = "persistent://lost/found/log-{}"
"""Entries of a log that nothing names any more are kept as this topic: it can be read and deleted like any other."""

_IDS_AHEAD: Final = 1 << 40
"""How far an id may be ahead of the highest one known: each start that follows lost blocks skips 2**24."""
_ENTRIES_AHEAD: Final = 1 << 32
"""How many entries may be lost in a row: more than a hundred segments hold."""
_MESSAGES_AHEAD: Final = 1 << 50
_FIRST_ORDINAL_BELOW: Final = 1 << 61
"""Where a log begins whose birth is lost."""
_LOG, _LEDGER, _CURSOR = range(3)
"""Where the highest id of each stands."""

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
        self.cursors: dict[tuple[int, int], Cursor] = {}
        """By the ids of their log and their own."""
        self.renumbered: list[Cursor] = []
        """Those that shared their id with another one of their log, and have new ones that no record knows."""
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


class Replay:
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
        self._shared: set[tuple[int, int]] = set()
        """Ids that several cursors of one log have, which very old versions could give: nobody knows whose a record
        without a name is, so it counts for none of them."""
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
        """Apply one record. Raises RecordError, and nothing has changed, if it cannot be one of ours."""
        kind = raw.kind
        if kind == records.RecordKind.EXTENT:
            self._extent(segment, block_offset + raw.at, raw)
        elif kind == records.RecordKind.ACKS:
            state = judged_records.acks_of(raw)
            self._know(_CURSOR, state.cursor)
            key = state.log, state.cursor
            known = self.found.cursors.get(key)
            if known is not None and key not in self._shared:
                self._require_ranges(self.found.logs[state.log], state)
                known.replay(state)
        elif kind == records.RecordKind.CURSOR:
            name, properties, state = judged_records.cursor_of(raw)
            managed = self.found.logs.get(state.log)
            self._know(_CURSOR, state.cursor)
            if managed is not None:
                self._require_ranges(managed, state)
                self._cursor(managed, name, properties, state)
        elif kind in _FEATURE_STATE_KINDS:
            log_id, name, data = judged_records.feature_state_of(raw)
            managed = self.found.logs.get(log_id)
            if managed is not None and self.sequence > managed.feature_states_at:
                managed.feature_state(name).replay(kind, data)
        else:
            self._rare(kind, judged_records.fields_of(raw))

    def _know(self, which: int, number: int) -> None:
        """An id was given. Raises RecordError if it cannot have been."""
        ids = self.found.ids
        if number > ids[which]:
            if number > ids[which] + _IDS_AHEAD:
                raise records.RecordError(f"an id {number} where {ids[which]} is the highest")
            ids[which] = number

    def _require_ranges(self, managed: ManagedLedger, state: cursor_records.CursorState) -> None:
        """Raises RecordError if entries are acknowledged that cannot be there, not even lost."""
        if state.ranges:
            self._require_ordinal(managed, state.ranges[-1][1])

    def _require_ordinal(self, managed: ManagedLedger, ordinal: int) -> None:
        """Raises RecordError if the log cannot have got so far, whatever is lost."""
        if ordinal > managed.end + _ENTRIES_AHEAD:
            raise records.RecordError(f"ordinal {ordinal} of a log that ends at {managed.end}")

    def _rare(self, kind: int, fields: dict[str, Any]) -> None:
        found = self.found
        if kind == records.RecordKind.LOG:
            self._know(_LOG, fields["log"])
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
        self._know(_LOG, fields["log"])
        if kind == records.RecordKind.LEDGER:
            self._know(_LEDGER, fields["ledger"])
        elif kind == records.RecordKind.LOG_DELETED:
            self._gone.add(fields["log"])
        if managed is None:
            return
        if kind == records.RecordKind.LOG_DELETED:
            self._delete(managed)
        elif kind == records.RecordKind.LEDGER:
            self._ledger(managed, fields)
        elif kind == records.RecordKind.OFFLOADED:
            managed.apply_offload(fields["ledger"], Offload.from_list(fields["offload"]))
        elif kind == records.RecordKind.TRIMMED:
            self._require_ordinal(managed, fields["ordinal"])
            managed.replay_trim(fields["ordinal"], fields.get("bytes") or 0)
        elif kind == records.RecordKind.CURSOR_DELETED:
            key = managed.id, fields["cursor"]
            gone = None if key in self._shared else found.cursors.pop(key, None)
            if gone is not None and managed.cursors.get(gone.name) is gone:
                del managed.cursors[gone.name]

    def _delete(self, managed: ManagedLedger) -> None:
        del self.found.logs[managed.id]
        managed.forget()
        for span in managed.spans:
            managed.home.span_dropped(span)
        for cursor in managed.cursors.values():
            self.found.cursors.pop((managed.id, cursor.id), None)

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
        self._require_ordinal(managed, fields["ordinal"])
        kept = (one for one in reversed(table.ledgers) if one.entries or one.ordinal < fields["ordinal"])
        if (last := next(kept, None)) is not None and last.end > fields["ordinal"]:
            raise records.RecordError(f"ledger {fields['ledger']} begins within ledger {last.id}")
        # a ledger that was opened after entries which then failed is void: the next one begins where it did or before
        table.drop_from(fields["ordinal"])
        if table.ledgers and not table.ledgers[-1].closed_ms:
            table.ledgers[-1].closed_ms = fields["ms"]
        table.add(Ledger(fields["ledger"], fields["ordinal"], fields["index"], fields["ms"]))

    def _extent(self, segment: int, offset: int, raw: records.RawRecord) -> None:
        head = judged_records.extent_of(raw)
        managed = self.found.logs.get(head.log)
        length = records.RECORD_HEADER_SIZE + len(raw.body)
        self._know(_LOG, head.log)
        self._know(_LEDGER, head.ledger)
        if raw.flags & records.MOVED:
            if managed is not None:
                self._moved(
                    managed,
                    ExtentPlace(segment, head.ledger, head.ordinal, head.ordinal + head.entries, offset, length),
                )
            return
        if managed is None:
            if not self.damaged or head.log in self._gone:
                return  # deleted, and the checkpoint or a record knows
            if head.ordinal >= _FIRST_ORDINAL_BELOW:
                raise records.RecordError(f"a log that begins at {head.ordinal}")
            self._nameless.add(head.log)
            managed = self._log(head.log, NAMELESS.format(head.log))
            managed.recovered(head.ordinal, head.message_index)
        if head.ordinal < managed.end:
            self._placed_again(
                managed, ExtentPlace(segment, head.ledger, head.ordinal, head.ordinal + head.entries, offset, length)
            )
            return
        self._require_place(managed, head)
        self._missing(managed, managed.end, head.ordinal)
        counts = records.extent_counts(raw)
        size = records.extent_payload_size(raw)
        managed.replay_extent(segment, head, counts, size, offset, length)

    def _require_place(self, managed: ManagedLedger, head: records.ExtentHead) -> None:
        """Raises RecordError if entries of that ledger cannot lie there: it would overlap another one."""
        self._require_ordinal(managed, head.ordinal)
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
        key = managed.id, state.cursor
        cursor = self.found.cursors.get(key)
        if cursor is not None and cursor.name != name:
            self._shared.add(key)
            cursor = managed.cursors.get(name)
            if cursor is not None and cursor.id != state.cursor:
                cursor = None
        if cursor is None:
            self.found.ids[_CURSOR] = max(self.found.ids[_CURSOR], state.cursor)
            cursor = Cursor(managed, state.cursor, name, state.mark_delete, self._factory.journal, properties)
            self.found.cursors.setdefault(key, cursor)
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
        self._part_names()
        for log_id, shared in self._shared:
            if (managed := self.found.logs.get(log_id)) is not None:
                self._part_ids(managed, shared)
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

    def _part_names(self) -> None:
        """Of logs of one name all but the newest were deleted, and the record of that is not there.

        If nothing is damaged, only a checkpoint came before the kill: the deletion is carried out. Else they are kept.
        """
        newest: dict[str, ManagedLedger] = {}
        for _, managed in sorted(self.found.logs.items()):
            before = newest.get(managed.name)
            if before is not None and not self.found.damage:
                self._delete(before)
            elif before is not None:
                before.name = NAMELESS.format(before.id)
                self.found.name(f"two logs are called {managed.name}; the older one is kept as {before.name}")
            newest[managed.name] = managed

    def _part_ids(self, managed: ManagedLedger, shared: int) -> None:
        """Give each of the cursors that have one id an id of its own."""
        found, sharing = self.found, [cursor for cursor in managed.cursors.values() if cursor.id == shared]
        for cursor in sharing:
            found.ids[_CURSOR] += 1
            cursor.renumber(found.ids[_CURSOR])
            found.cursors[managed.id, cursor.id] = cursor
        found.renumbered += sharing
        if sharing:
            names = " and ".join(cursor.name for cursor in sharing)
            log.warning(
                "%s: %s had one id; each has its own now, and what the log has of the old one counts for none",
                managed.name, names,
            )  # fmt: skip
