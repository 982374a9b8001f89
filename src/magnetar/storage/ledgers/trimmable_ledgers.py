"""What a log lets go at its front: whole ledgers, and the beginning of one whose end is still needed."""

from __future__ import annotations

from typing import Protocol

from magnetar.storage.ledgers.cursor import Cursor
from magnetar.storage.ledgers.offloadable_ledgers import CopyHome, OffloadableLedgers
from magnetar.storage.log import records


class TrimHome(CopyHome, Protocol):
    """The store, as trimming sees it."""

    keep_all: str | None
    """Why nothing may be trimmed; None if it may."""


class TrimmableLedgers(OffloadableLedgers):
    """The part of a managed ledger that trims it; ``end`` and ``cursors`` are the log's own."""

    __slots__ = ("_trims", "hidden", "hidden_size")

    end: int
    cursors: dict[str, Cursor]

    def __init__(self, home: TrimHome) -> None:
        super().__init__(home)
        self._trims = home
        self.hidden = 0
        """Ordinals below were let go, though their ledger may still be there for others."""
        self.hidden_size = 0
        """The bytes that were given with ``hidden``; see :attr:`hidden_bytes`."""

    @property
    def first(self) -> int:
        """Lowest retained ordinal; ledgers before it are gone, of its own the beginning may be hidden."""
        first, hidden = self.table.first, self.hidden
        return first if first >= hidden else hidden

    @property
    def hidden_bytes(self) -> int:
        """Bytes of the hidden entries in the first ledger that is still there."""
        return self.hidden_size if self.table.ledgers and self.hidden > self.table.ledgers[0].ordinal else 0

    def trim(self, keep_from: int, hidden_bytes: int | None = None) -> int:
        """Drop closed ledgers at the front that end at or below ``keep_from``; how many (rule 4.2.2).

        With ``hidden_bytes`` exactly: what is left below ``keep_from`` in its ledger, of that size, is hidden.
        """
        if self._trims.keep_all is not None:
            return 0
        drop = 0
        stop = min(keep_from, self.end)
        # a ledger ends where the next one begins: what it counts itself leaves out entries that are still being written
        for following in self.table.ledgers[1:]:
            if following.ordinal > stop:
                break
            drop += 1
        first = self.table.ledgers[drop].ordinal if drop else self.first
        if hidden_bytes is not None:
            first = max(first, stop)
        if drop or first > self.first:
            self._hide(first, hidden_bytes or 0)
            # Only when the trim is durable may the bytes go.
            record = records.json_record(records.RecordKind.TRIMMED, log=self.id, ordinal=first, bytes=self.hidden_size)
            self._journal.add_record(record, lambda: self.spans.drop_before(first))
            self.discard_copies(self.table.drop_front(drop))
            for cursor in self.cursors.values():
                cursor.trimmed()
        return drop

    def finish_trim(self) -> None:
        """After a start: what a checkpoint knew of a trim whose record did not become durable is carried out."""
        first = self.first
        if self.spans.any_before(first):
            record = records.json_record(records.RecordKind.TRIMMED, log=self.id, ordinal=first, bytes=self.hidden_size)
            self._journal.add_record(record, lambda: self.spans.drop_before(first))

    def _hide(self, first: int, hidden_bytes: int) -> None:
        if first > self.hidden:
            self.hidden, self.hidden_size = first, hidden_bytes

    def replay_trim(self, first: int, hidden_bytes: int) -> None:
        """A TRIMMED record. The ledger that begins at ``first`` may follow: its own record may have been void once."""
        count = sum(1 for ledger in self.table.ledgers if ledger.ordinal < first and ledger.end <= first)
        self.discard_copies(self.table.drop_front(count))
        self._hide(first, hidden_bytes)
        self.spans.drop_before(first)
