"""Applies what a start reads to a state: first a checkpoint, then record after record.

Each record is judged before it changes anything (:mod:`magnetar.storage.log.judged_records`), and then against what is
known of its log: the state that comes out of it is one whose checkpoint the next start takes.
"""

from __future__ import annotations

from typing import Any, Final

from magnetar.storage.ledgers.archive import Offload
from magnetar.storage.ledgers.ledger import Ledger
from magnetar.storage.ledgers.managed_ledger import ManagedLedger
from magnetar.storage.log import checkpoint, judged_records, records
from magnetar.storage.log.records import RecordKind
from magnetar.storage.log.segment import Span
from magnetar.storage.replay.recovered import CURSOR, LEDGER, LOG, LogFactory, Recovered
from magnetar.storage.replay.replayed_cursors import ReplayedCursors
from magnetar.storage.replay.replayed_extents import ReplayedExtents
from magnetar.storage.replay.replayed_logs import ReplayedLogs, require_ordinal

_FEATURE_STATE_KINDS: Final = (
    RecordKind.FEATURE_STATE_CHANGE,
    RecordKind.FEATURE_STATE,
    RecordKind.FEATURE_STATE_REMOVED,
)


class Replay:
    """Applies records to the state; applying one twice changes nothing."""

    def __init__(self, found: Recovered, factory: LogFactory) -> None:
        self.found = found
        self._factory = factory
        self.logs = ReplayedLogs(found, factory)
        self._extents = ReplayedExtents(found, self.logs)
        self._cursors = ReplayedCursors(found, factory, self.logs)
        self.sequence = -1
        """The number of the block whose records are being applied."""
        self._deleted_copies: set[str] = set()
        """Keys of objects that are gone, and were not written again."""

    def image(self, image: checkpoint.Checkpoint) -> None:
        """Take a checkpoint."""
        found, head = self.found, image.head
        found.checkpoint_segment = found.segment = head["segment"]
        found.length = head["length"]
        found.sequence = head["sequence"]
        found.ids = list(head["ids"])
        self.logs.oldest, self._cursors.oldest = found.ids[LOG], found.ids[CURSOR]
        found.secret = head["secret"]
        for values in head.get("discarded", ()):
            copy = Offload.from_list(values)
            self._factory.discarded[copy.key] = copy
        for logged in image.logs:
            about = logged.about
            managed = self.logs.make(about["id"], about["name"])
            managed.properties = about["properties"]
            managed.hidden, managed.hidden_size = about.get("hidden", (0, 0))
            for values in about["ledgers"]:
                managed.table.add(Ledger.from_list(values))
                found.ids[LEDGER] = max(found.ids[LEDGER], values[0])
            for values in about["spans"]:
                self._extents.span(managed, Span(managed.id, *values))
            managed.recovered(about["end"], about["index"])
            for one in logged.cursors:
                self._cursors.whole(managed, one.name, one.properties, one.state)
            managed.feature_states_at = about["annexes"]
            for feature_state in logged.feature_states:
                managed.feature_state(feature_state.name).restore(feature_state)

    def record(self, segment: int, block_offset: int, raw: records.RawRecord) -> None:
        """Apply one record. Raises RecordError, and nothing has changed, if it cannot be one of ours."""
        kind = raw.kind
        if kind == RecordKind.EXTENT:
            self._extents.extent(segment, block_offset + raw.at, raw)
        elif kind == RecordKind.ACKS:
            self._cursors.acknowledged(judged_records.acks_of(raw))
        elif kind == RecordKind.CURSOR:
            self._cursors.created(*judged_records.cursor_of(raw))
        elif kind in _FEATURE_STATE_KINDS:
            log_id, name, data = judged_records.feature_state_of(raw)
            managed = self.found.logs.get(log_id)
            if managed is not None and self.sequence > managed.feature_states_at:
                managed.feature_state(name).replay(kind, data)
        else:
            self._rare(kind, judged_records.fields_of(raw))

    def _rare(self, kind: int, fields: dict[str, Any]) -> None:
        if kind == RecordKind.COPY_DELETED:
            self._factory.discarded.pop(fields["key"], None)
            self._deleted_copies.add(fields["key"])
        elif kind == RecordKind.COPY_BEGUN:
            self._factory.copy_discarded(self._copy(fields["offload"]))
        else:
            self.found.know(LOG, fields["log"])
            if kind == RecordKind.LEDGER:
                self.found.know(LEDGER, fields["ledger"])
            self._of_log(kind, fields)

    def _of_log(self, kind: int, fields: dict[str, Any]) -> None:
        managed = self.found.logs.get(fields["log"])
        if kind == RecordKind.LOG:
            self.logs.born(fields)
        elif kind == RecordKind.LOG_DELETED:
            self.logs.deleted(fields["log"])
        elif managed is None:
            return
        elif kind == RecordKind.LEDGER:
            self.logs.ledger(managed, fields)
        elif kind == RecordKind.OFFLOADED:
            managed.apply_offload(fields["ledger"], self._copy(fields["offload"]))
        elif kind == RecordKind.TRIMMED:
            require_ordinal(managed, fields["ordinal"])
            managed.replay_trim(fields["ordinal"], fields.get("bytes") or 0)
        elif kind == RecordKind.CURSOR_DELETED:
            self._cursors.deleted(managed, fields["cursor"])

    def _let_go_deleted_copies(self, managed: ManagedLedger) -> None:
        """A copy is deleted when its ledger was trimmed. If the kill came before the record of the trim, and the
        checkpoint that knew of it cannot be read any more, the record of the deletion is all that says so."""
        for ledger in list(managed.table.ledgers):
            copy = ledger.offload
            if copy is not None and copy.key in self._deleted_copies:
                ledger.offload = None
                if copy.released:
                    managed.replay_trim(ledger.end, 0)

    def _copy(self, values: list[Any]) -> Offload:
        """A copy that is there, or is being written."""
        copy = Offload.from_list(values)
        self._deleted_copies.discard(copy.key)
        return copy

    def settle(self) -> None:
        """After the last record: name what is missing, forget what was begun and never became durable."""
        self.logs.part_names()
        self._cursors.part_ids()
        for managed in self.found.logs.values():
            if self._deleted_copies:
                self._let_go_deleted_copies(managed)
            for ledger in managed.table.ledgers:
                if ledger.offload is not None:
                    # a checkpoint may know of a trim that the kill prevented
                    self._factory.discarded.pop(ledger.offload.key, None)
            self._extents.settle(managed)
            for cursor in managed.cursors.values():
                cursor.settle()
            self.logs.name_nameless(managed)
        self._cursors.name_nameless()
