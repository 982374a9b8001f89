"""The ledgers of all topics of a data directory, and where their entries lie: a recovery that changes nothing.

The store's own `recover` runs over a :class:`magnetar.jobs.reader.snapshot.DirectorySnapshot`, so there is one reader
of the log and not two. The result is copied into plain tuples that are sent to Spark's workers: where each
range of a topic lies (segment, and for segments without an index the places of its extents), which of its entries no
reader ever gets (markers and what aborted transactions wrote) and where an open transaction stops readers.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple, cast

from magnetar.jobs.reader.snapshot import DirectorySnapshot, ledgers_of
from magnetar.model.ids import Position
from magnetar.storage.backends.local_journal import LocalJournal
from magnetar.storage.ledgers.archive import Offload
from magnetar.storage.ledgers.managed_ledger import LogHome, ManagedLedger
from magnetar.storage.log.journal import Journal
from magnetar.storage.log.segment import Span
from magnetar.storage.recovery import recover
from magnetar.transactions.feature_state import TRANSACTIONS, TransactionFeatureState

_TOPICS: Final = "persistent://"


class SegmentPiece(NamedTuple):
    """The part of one ledger that lies in one segment."""

    log: int
    ledger: int
    base: int
    """Ordinal of the ledger's entry 0."""
    segment: int
    begin: int
    """Ordinal under which the segment's index lists it; at most ``first``."""
    first: int
    """Ordinal of the first entry."""
    stop: int
    """Ordinal after the last one."""
    size: int
    """Bytes in the segment, record headers included."""
    places: bytes | None
    """Offsets of the extents, encoded; None if the segment's index has them."""
    hidden: tuple[int, ...]
    """Ordinals that no reader gets, ascending."""


class CopiedLedger(NamedTuple):
    """An offloaded ledger whose entries only its copy has (docs/offload.md)."""

    offload: Offload
    ledger: int
    base: int
    """Ordinal of the ledger's entry 0."""
    first: int
    """Ordinal of the first entry that readers get."""
    stop: int
    """Ordinal after the last one."""
    hidden: tuple[int, ...]
    """Ordinals that no reader gets, ascending."""


class LedgerInfo(NamedTuple):
    """One ledger of a topic."""

    id: int
    base: int
    """Ordinal of its entry 0."""
    stop: int
    """Ordinal after its last entry, counting damaged entries too."""
    entries: int
    messages: int
    bytes: int
    first_index: int
    """Message index of its first message."""
    opened_ms: int
    closed_ms: int
    """0 while it is open."""


class TopicLedgers(NamedTuple):
    """The ledgers of one topic or partition, as the directory has them."""

    name: str
    first: int
    """Lowest ordinal that readers get."""
    end: int
    """Ordinal after the last entry that readers get."""
    ledgers: tuple[LedgerInfo, ...]
    """Oldest first; the last one is open."""
    pieces: tuple[SegmentPiece, ...]
    """Ascending; between two that do not meet entries are missing, or in ``copies``."""
    copies: tuple[CopiedLedger, ...] = ()
    """Ascending."""
    id: int = 0

    @property
    def sealed_end(self) -> int:
        """Ordinal after the last readable entry of the sealed ledgers."""
        return min(self.ledgers[-1].base, self.end) if self.ledgers else self.first

    def position(self, ordinal: int) -> Position:
        """Return the (ledger, entry) of an ordinal at or after ``first``."""
        holding = self.ledgers[0]
        for ledger in self.ledgers:
            if ledger.base > ordinal:
                break
            holding = ledger
        return Position(holding.id, ordinal - holding.base)

    def ordinal(self, position: Position) -> int:
        """Return the ordinal of the first entry at or after ``position``, between ``first`` and ``end``."""
        for ledger in self.ledgers:
            if ledger.id > position.ledger:
                return max(min(ledger.base, self.end), self.first)
            if ledger.id == position.ledger:
                inside = min(ledger.base + max(position.entry, 0), ledger.stop)
                return max(min(inside, self.end), self.first)
        return max(self.end, self.first)


class DirectoryContents(NamedTuple):
    """What a data directory held at one instant."""

    path: Path
    logs: dict[str, TopicLedgers]
    damage: tuple[str, ...]
    """What is unreadable, in words."""

    def partitions(self, topic: str) -> list[TopicLedgers]:
        """Return the topic of that full name, or all its partitions in order of their numbers."""
        prefix = f"{topic}-partition-"
        found = {
            int(name.removeprefix(prefix)): log
            for name, log in self.logs.items()
            if name.startswith(prefix) and name.removeprefix(prefix).isdecimal()
        }
        single = self.logs.get(topic)
        return ([] if single is None else [single]) + [found[number] for number in sorted(found)]


class _RecoveryHome:
    """What recovery needs of a store. Nothing is ever appended here, so there is no journal."""

    journal = cast("Journal", None)

    def __init__(self) -> None:
        self.discarded: dict[str, Offload] = {}

    def make_log(self, log_id: int, name: str) -> ManagedLedger:
        return ManagedLedger(cast("LogHome", self), log_id, name)

    def span_added(self, span: Span) -> None: ...
    def span_dropped(self, span: Span) -> None: ...
    def span_shrunk(self, span: Span, size: int) -> None: ...
    def span_left(self, source: int, target: int, size: int) -> None: ...
    def copy_discarded(self, offload: Offload) -> None: ...
    def copy_needed(self, offload: Offload) -> None: ...


def read_directory(directory: Path) -> DirectoryContents:
    """Read a data directory's newest state, even while a broker uses it.

    Raises InvalidValueError, PersistenceError, OSError.
    """
    ledgers = ledgers_of(directory)
    with DirectorySnapshot(ledgers) as files:
        found = recover(LocalJournal(files), _RecoveryHome(), files.owner)
        return DirectoryContents(
            ledgers, {log.name: _topic_ledgers(log) for log in found.logs.values()}, tuple(found.damage)
        )


def moved_pieces(ledgers: Path, piece: SegmentPiece) -> list[SegmentPiece]:
    """Return where the entries of a piece lie now if its segment is gone, ascending; removed ones are left out.

    Raises PersistenceError, OSError as :func:`read_directory` does.
    """
    out = []
    for log in read_directory(ledgers).logs.values():
        for one in log.pieces if log.id == piece.log else ():
            first, stop = max(one.first, piece.first), min(one.stop, piece.stop)
            if one.ledger == piece.ledger and first < stop and one.segment != piece.segment:
                out.append(one._replace(first=first, stop=stop, hidden=piece.hidden))
    return out


def _topic_ledgers(log: ManagedLedger) -> TopicLedgers:
    end, hidden = log.end, _HiddenEntries(log)
    if hidden.limit is not None:
        end = min(end, hidden.limit)
    table = log.table.ledgers
    stops = [*(following.ordinal for following in table[1:]), log.end]
    ledgers = tuple(
        LedgerInfo(
            one.id, one.ordinal, stop, one.entries, one.messages, one.bytes, one.index, one.opened_ms, one.closed_ms
        )
        for one, stop in zip(table, stops, strict=False)
    )
    bases = {one.id: one.base for one in ledgers}
    pieces = tuple(
        _piece(span, bases[span.ledger], max(span.first, log.first), min(span.end, end), hidden)
        for span in log.spans
        if span.ledger in bases and max(span.first, log.first) < min(span.end, end)
    )
    copies = tuple(_copies(log, end, hidden))
    return TopicLedgers(log.name, log.first, max(end, log.first), ledgers, pieces, copies, log.id)


def _copies(log: ManagedLedger, end: int, hidden: _HiddenEntries) -> Iterator[CopiedLedger]:
    for ledger in log.table.ledgers:
        first, stop = max(ledger.ordinal, log.first), min(ledger.end, end)
        if ledger.offload is not None and ledger.offload.released and first < stop:
            yield CopiedLedger(
                ledger.offload, ledger.id, ledger.ordinal, first, stop, tuple(hidden.within(first, stop))
            )


def _piece(span: Span, base: int, first: int, stop: int, hidden: _HiddenEntries) -> SegmentPiece:
    places = None if span.places is None else span.places.to_bytes()
    unseen = hidden.within(first, stop)
    return SegmentPiece(span.log, span.ledger, base, span.segment, span.first, first, stop, span.bytes, places, unseen)


class _HiddenEntries:
    """The entries of a log that its transactions hide from readers."""

    def __init__(self, log: ManagedLedger) -> None:
        # the coordinator's own log has another feature state of that name
        feature_state = log.feature_states.get(TRANSACTIONS) if log.name.startswith(_TOPICS) else None
        self._buffer = None if feature_state is None else feature_state.open(TransactionFeatureState).settled.buffer

    @property
    def limit(self) -> int | None:
        return None if self._buffer is None else self._buffer.limit

    def within(self, first: int, stop: int) -> tuple[int, ...]:
        return () if self._buffer is None else tuple(self._buffer.hidden_in(first, stop))
