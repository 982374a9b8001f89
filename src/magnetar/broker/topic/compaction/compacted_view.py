"""A compacted view of a topic: a log of its own, whose entries carry the place they had in the topic.

The bytes of an entry are in :mod:`magnetar.compaction.view_entries`, what is known of the view as a whole in
:mod:`magnetar.compaction.compaction_cursor`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable

from magnetar.broker.topic.ports import EntryRun
from magnetar.broker.topic.position_search import Answer, FoundEntry, first_not, is_before
from magnetar.compaction.compaction_cursor import ViewFacts
from magnetar.compaction.messages import last_index
from magnetar.compaction.view_entries import PLACE, PLACE_BYTES, entry_of, index_of
from magnetar.model.ids import EARLIEST, Position
from magnetar.storage.ledgers.managed_ledger import ManagedLedger
from magnetar.storage.ledgers.stored_run import StoredRun

LastDone = Callable[[tuple[Position, int] | Exception], None]


def unpack(run: EntryRun) -> list[StoredRun]:
    """The topic's entries in a piece of the view's log: a run for each stretch without a gap."""
    runs: list[StoredRun] = []
    counts = run.counts
    expected = (-1, -1, -1, 0)
    for i, data in enumerate(run.entries):
        ordinal, ledger, entry = PLACE.unpack_from(data)
        index = index_of(data)
        if (ordinal, ledger, entry, index) != expected:
            runs.append(StoredRun(ordinal, ledger, entry, [], None if counts is None else [], index))
        runs[-1].entries.append(entry_of(data))
        if counts is not None:
            runs[-1].counts.append(counts[i])  # type: ignore[union-attr]  # made two lines above
        if index >= 0:
            index += 1 if counts is None else counts[i]
        expected = (ordinal + 1, ledger, entry + 1, index)
    return runs


class CompactedView:
    """A whole compacted view; never changes. ``pins``: how many sources are inside it."""

    def __init__(self, log: ManagedLedger, facts: ViewFacts) -> None:
        self.log = log
        self.facts = facts
        self.horizon = facts.horizon
        self.pins = 0
        self._ids = [ledger.id for ledger in facts.ledgers]
        self._ordinals = [ledger.ordinal for ledger in facts.ledgers]

    @property
    def entries(self) -> int:
        """How many there are."""
        return self.log.end - self.log.first

    @property
    def bytes(self) -> int:
        """What they take with their message indexes; their places are left out."""
        return self.log.retained_bytes() - PLACE_BYTES * self.entries

    def index_of(self, ordinal: int, done: Answer) -> None:
        """Number, in the view's log, of the first entry at or after ``ordinal``; maybe at once."""

        def before(entry: bytes) -> bool:
            return bool(PLACE.unpack_from(entry)[0] < ordinal)

        first_not(self.log, before, lambda found: done(found if isinstance(found, Exception) else found.ordinal))

    def since(self, publish_time_ms: int, done: Answer) -> None:
        """Ordinal of the first entry published at or after that time; the horizon if there is none."""

        def before(entry: bytes) -> bool | None:
            return is_before(entry_of(entry), publish_time_ms)

        def received(found: FoundEntry | Exception) -> None:
            if isinstance(found, Exception):
                done(found)
            else:
                done(self.horizon if found.entry is None else PLACE.unpack_from(found.entry)[0])

        first_not(self.log, before, received)

    def last(self, done: LastDone) -> None:
        """Position and batch index of the last message that stays; -1 everywhere if there is none."""
        end = self.log.end

        def read(result: EntryRun | Exception) -> None:
            if isinstance(result, Exception):
                done(result)
                return
            _, ledger, entry = PLACE.unpack_from(result.entries[0])
            done((Position(ledger, entry), last_index(entry_of(result.entries[0]))))

        if end == self.log.first:
            done((EARLIEST, -1))
        elif (run := self.log.cached(end - 1, 1, 1)) is not None:
            read(run)
        else:
            self.log.read(end - 1, 1, 1, read)

    def position(self, ordinal: int) -> Position | None:
        """Position of an ordinal whose ledger the view knows."""
        i = bisect_right(self._ordinals, ordinal) - 1
        if i < 0 or ordinal >= self.facts.ledgers[i].end:
            return None
        ledger = self.facts.ledgers[i]
        return Position(ledger.id, ordinal - ledger.ordinal)

    def exact(self, position: Position) -> int | None:
        """Ordinal of a position in a ledger that the view knows."""
        i = bisect_right(self._ids, position.ledger) - 1
        if i < 0 or self._ids[i] != position.ledger or position.entry < 0:
            return None
        ledger = self.facts.ledgers[i]
        ordinal = ledger.ordinal + position.entry
        return ordinal if ordinal < ledger.end else None

    def ordinal(self, position: Position) -> int:
        """Ordinal of the first entry that may stay at or after ``position``; the horizon if there is none."""
        i = bisect_right(self._ids, position.ledger) - 1
        ledgers = self.facts.ledgers
        if i >= 0 and self._ids[i] == position.ledger:
            return min(ledgers[i].ordinal + max(position.entry, 0), ledgers[i].end)
        return ledgers[i + 1].ordinal if i + 1 < len(ledgers) else self.horizon
