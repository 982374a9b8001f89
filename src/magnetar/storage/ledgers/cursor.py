"""What one subscription has consumed, in ordinals; as durable as the entries themselves.

A durable cursor's changes join the journal's next group: an acknowledgment that is waited for is durable when its
callback runs, any other one within the journal's ``ack_delay``. Between whole states (CURSOR records, at creation,
after a seek, in every checkpoint) only changes are written (ACKS records). A non-durable cursor has the same face and
no journal (rule 4.3.2).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, Protocol

from magnetar.model.ids import ack_set_of, bits_of
from magnetar.model.ordinal_bitmap import OrdinalBitmap
from magnetar.model.own_properties import OF_SUBSCRIPTIONS
from magnetar.storage.ledgers.ranges import AckedSet, coalesce
from magnetar.storage.log import cursor_records, records
from magnetar.storage.log.journal import Journal

Done = Callable[[], None]
_WORD: Final = 64


class LogEnds(Protocol):
    """The ends of the log that the cursor runs over."""

    id: int
    end: int

    @property
    def first(self) -> int: ...


class Cursor:
    """One subscription's acknowledgments. ``acked.mark_delete`` and all arguments are ordinals."""

    __slots__ = (
        "_dirty_partial", "_fresh", "_journal", "_log", "_partial", "_whole", "acked", "attended", "bytes_written",
        "deleted",
        "durable", "has_partial_batches", "id", "jumped", "name", "properties", "recorded", "times_lost",
        "times_written",
    )  # fmt: skip

    def __init__(
        self, log: LogEnds, cursor_id: int, name: str, mark_delete: int, journal: Journal | None,
        properties: dict[str, Any] | None = None,
    ) -> None:  # fmt: skip
        self._log = log
        self._journal = journal
        self.id = cursor_id
        self.name = name
        self.durable = journal is not None
        self.acked = AckedSet(mark_delete)
        self.attended = False
        """Whether a consumer is connected."""
        self.properties: dict[str, Any] = properties or {}
        self.jumped = 0
        """Entries that a non-durable cursor lost because they were trimmed before it read them."""
        self.times_written = self.bytes_written = self.times_lost = 0
        """Records with what changed, their bytes, and how many of them the disk refused, since the start."""
        self.has_partial_batches = False
        self.recorded = False
        """Whether it would outlive a crash."""
        self.deleted = False
        """What is acknowledged from now on is written no more: it would bring the cursor back at the next start."""
        self._partial: dict[int, int] = {}
        self._fresh: list[int] = []
        self._dirty_partial: dict[int, None] = {}
        """The ordinals of which a part was acknowledged since the last record; an empty set is three times as large."""
        self._whole = True

    @property
    def mark_delete(self) -> int:
        """Every ordinal up to this one is acknowledged."""
        return self.acked.mark_delete

    def acknowledge(self, ordinals: Sequence[int], durable: Done | None = None) -> None:
        """Acknowledge single entries; unknown and repeated ones change nothing (rule 5.7.4)."""
        if len(ordinals) == 1:
            # of a thousand topics in turn each has one
            ordinal, fresh = ordinals[0], ordinals
            if ordinal >= self._log.end or not self.acked.add(ordinal):
                self._changed(durable)
                return
            if ordinal > self.acked.mark_delete:
                self._fresh.append(ordinal)  # up to the mark the mark says it
        else:
            fresh = self.acked.add_all(ordinals, self._log.end)
            self._fresh += fresh
        if self.has_partial_batches:
            for ordinal in fresh:
                self._partial.pop(ordinal, None)
            self.has_partial_batches = bool(self._partial)
        self._changed(durable)

    def acknowledge_until(self, ordinal: int, durable: Done | None = None) -> None:
        """Acknowledge everything up to ``ordinal`` (rule 5.7.3)."""
        if self.acked.add_until(min(ordinal, self._log.end - 1)) and self.has_partial_batches:
            for partial in [o for o in self._partial if o <= self.acked.mark_delete]:
                del self._partial[partial]
            self.has_partial_batches = bool(self._partial)
        self._changed(durable)

    def acknowledge_indexes(
        self, ordinal: int, remaining: Sequence[int], batch_size: int, durable: Done | None = None
    ) -> bool:
        """Keep only the messages of a batch whose bit is set in ``remaining`` (64-bit words, rules 5.7.6, 5.7.7).

        True when nothing is left, which acknowledges the entry.
        """
        if ordinal >= self._log.end or ordinal in self.acked:
            self._changed(durable)
            return ordinal in self.acked
        live = bits_of(remaining)
        if batch_size < _WORD * len(remaining):
            live &= (1 << batch_size) - 1
        if ordinal in self._partial:
            live &= self._partial[ordinal]
        if not live:
            self._partial.pop(ordinal, None)
            self.has_partial_batches = bool(self._partial)
            self.acknowledge((ordinal,), durable)
            return True
        self._partial[ordinal] = live
        self._dirty_partial[ordinal] = None
        self.has_partial_batches = True
        self._changed(durable)
        return False

    def acknowledged(self, ordinal: int) -> bool:
        """Whether the whole entry is acknowledged."""
        return ordinal in self.acked

    def next_unacknowledged(self, ordinal: int) -> int:
        """The smallest ordinal >= ``ordinal`` that is not acknowledged (may be the log's end)."""
        return self.acked.next_missing(ordinal)

    def next_acknowledged(self, ordinal: int, stop: int) -> int:
        """The smallest acknowledged ordinal in ``[ordinal, stop)``, or ``stop``."""
        return self.acked.next_present(ordinal, stop)

    def remaining_indexes(self, ordinal: int) -> tuple[int, ...]:
        """Words of what is left of a batch; () when all of it is."""
        live = self._partial.get(ordinal)
        return () if live is None else ack_set_of(live)

    def reset(self, ordinal: int, durable: Done | None = None) -> None:
        """Seek: ``ordinal`` is the next to be read, later acknowledgments are forgotten (rule 5.9.4)."""
        self.acked.replace(ordinal - 1)
        self._partial.clear()
        self.has_partial_batches = False
        self._whole = True  # which forgets what had changed before
        self._changed(durable)

    def backlog(self) -> int:
        """Entries that are not acknowledged."""
        return max(self._log.end - 1 - self.acked.mark_delete - self.acked.above, 0)

    def acknowledged_ranges(self, at: int = 0) -> Iterator[tuple[int, int]]:
        """What is acknowledged above the mark, from ordinal ``at`` on: ascending, half-open."""
        return self.acked.ranges(at)

    @property
    def acknowledged_stretches(self) -> int:
        """How many ranges :meth:`acknowledged_ranges` names."""
        return self.acked.stretches()

    def acknowledged_of(self, ordinals: OrdinalBitmap, stop: int) -> int:
        """How many of ``ordinals`` above the mark and below ``stop`` are acknowledged."""
        return self.acked.count_common(ordinals, self.acked.mark_delete + 1, stop)

    def unacknowledged(self, start: int, stop: int) -> int:
        """How many ordinals of ``[start, stop)`` are not acknowledged."""
        return self.acked.missing_in(start, stop)

    def set_properties(self, properties: dict[str, Any], durable: Done | None = None) -> None:
        """Replace what is kept beside the cursor, except what the broker keeps there itself."""
        own = {name: value for name, value in self.properties.items() if name.startswith(OF_SUBSCRIPTIONS)}
        self.properties = {**own, **properties}
        self._whole = True
        self._changed(durable)

    def trimmed(self) -> None:
        """The log lost its front; only a non-durable cursor can have been there."""
        before = self._log.first - 1
        if self.acked.mark_delete < before:
            self.jumped += self.acked.missing_in(self.acked.mark_delete + 1, before + 1)
            self.acknowledge_until(before)

    def _changed(self, durable: Done | None) -> None:
        journal = self._journal
        if journal is not None:
            journal.touch(self, durable)
            return
        # a cursor without a journal is never rendered, so what changed need not be remembered
        self._fresh.clear()
        self._dirty_partial.clear()
        if durable is not None:
            durable()

    # on disk -----------------------------------------------------------------------------------------------------

    def render(self) -> bytes:
        """What changed since the last call, as a record; nothing once it is deleted."""
        if self.deleted:
            return b""
        if self._whole:
            self._whole = False
            self._fresh.clear()
            self._dirty_partial.clear()
            record = records.record(records.RecordKind.CURSOR, self.snapshot())
            self.times_written += 1
            self.bytes_written += len(record)
            return record
        mark = self.acked.mark_delete
        if not self.acked.size and not self._dirty_partial:
            # nothing is acknowledged above the mark
            self._fresh.clear()
            record = cursor_records.mark_delete_record(self._log.id, self.id, mark)
            self.times_written += 1
            self.bytes_written += len(record)
            return record
        ranges: list[tuple[int, int]] = []
        partial: list[tuple[int, Sequence[int]]] = []
        if self._fresh:
            if above := [ordinal for ordinal in self._fresh if ordinal > mark]:
                ranges = coalesce(above)
            self._fresh.clear()
        if self._dirty_partial:
            partial = [(o, ack_set_of(self._partial[o])) for o in sorted(self._dirty_partial) if o in self._partial]
            self._dirty_partial.clear()
        state = cursor_records.CursorState(self._log.id, self.id, mark, ranges, partial)
        record = records.record(records.RecordKind.ACKS, cursor_records.cursor_state(state))
        self.times_written += 1
        self.bytes_written += len(record)
        return record

    def record(self, done: Done) -> None:
        """Have it on the disk for the first time; ``done`` when it is there."""
        assert self._journal is not None

        def recorded() -> None:
            self.recorded = True
            done()

        self._journal.touch(self, recorded)

    def renumber(self, cursor_id: int) -> None:
        """Have another id, which no record knows: the next one is a whole state."""
        self.id = cursor_id
        self._whole = True

    def lost(self) -> None:
        """The last render did not reach the disk."""
        self.times_lost += 1
        self._whole = True

    def snapshot(self) -> bytes:
        """The whole state, as in a CURSOR record's body."""
        partial = [(ordinal, ack_set_of(live)) for ordinal, live in sorted(self._partial.items())]
        state = cursor_records.CursorState(
            self._log.id, self.id, self.acked.mark_delete, list(self.acked.ranges()), partial
        )
        return cursor_records.cursor_record(self.name, self.properties, state)

    def restore(self, state: cursor_records.CursorState) -> None:
        """Take a whole state from disk."""
        self.recorded = True
        self.acked.replace(state.mark_delete, state.ranges)
        self._partial = {ordinal: bits_of(words) for ordinal, words in state.partial}
        self.has_partial_batches = bool(self._partial)
        self._whole = False

    def replay(self, state: cursor_records.CursorState) -> None:
        """Take a change from disk."""
        self.acked.add_until(state.mark_delete)
        for start, stop in state.ranges:
            self.acked.add_range(start, stop)
        for ordinal, words in state.partial:
            self._partial[ordinal] = bits_of(words)
        for ordinal in [o for o in self._partial if o in self.acked]:
            del self._partial[ordinal]
        self.has_partial_batches = bool(self._partial)
        self._whole = False

    def settle(self) -> None:
        """After recovery: acknowledge nothing that does not exist, or the next entries would be born acknowledged."""
        end = self._log.end
        mark = self.acked.mark_delete
        beyond = self.acked.next_present(end, 1 << 62) < 1 << 62
        if mark >= end or beyond:
            ranges = [(start, min(stop, end)) for start, stop in self.acked.ranges() if start < end]
            self.acked.replace(min(mark, end - 1), ranges)
            self._whole = True
        for ordinal in [o for o in self._partial if o >= end]:
            del self._partial[ordinal]
            self._whole = True
        self.has_partial_batches = bool(self._partial)
