"""Which entries of one topic belong to open transactions, and which are hidden for ever. Pure (rules 9.9, 9.10).

Everything is an ordinal. Entries of an open transaction wait, and all entries after the first of them wait with them;
entries of an aborted one and the marker that ends one are hidden: consumers never see them.
"""

from __future__ import annotations

import base64
import zlib
from typing import Any

from magnetar.protocol.commands.ids import TxnId
from magnetar.storage.ledgers.ranges import AckedSet

NO_MARKER = -1
"""A transaction that ended without one: the disk refused it."""


class TransactionBuffer:
    """One topic's transactions, as far as they are durable."""

    def __init__(self) -> None:
        self.open: dict[TxnId, list[list[int]]] = {}
        """Half-open stretches of ordinals per open transaction, ascending."""
        self.hidden = AckedSet(-2)
        """Bitmap: markers and aborted entries. Its mark stands for what is trimmed, see ``first``."""
        self.first = 0
        """Below it the log is trimmed, and what there still is of it (a compacted view) was never hidden."""
        self.limit: int | None = None
        """First ordinal that may not be read; None: everything may."""
        self.committed = 0
        self.aborted = 0
        """Transactions that ended since the state was made (rule 9.18)."""

    def wrote(self, txn: TxnId, start: int, stop: int) -> None:
        """Entries of an open transaction; they lie after all others."""
        stretches = self.open.setdefault(txn, [])
        if stretches and stretches[-1][1] == start:
            stretches[-1][1] = stop
        else:
            stretches.append([start, stop])
        if self.limit is None or start < self.limit:
            self.limit = start

    def ended(self, txn: TxnId, *, commit: bool, marker: int) -> None:
        """It was decided; without entries here only the marker is left of it."""
        stretches = self.open.pop(txn, [])
        if commit:
            self.committed += 1
        else:
            self.aborted += 1
            for start, stop in stretches:
                self.hidden.add_range(start, stop)
        if marker != NO_MARKER:
            self.hidden.add(marker)
        # a transaction enters with its first entry, so they stand in the order of those
        oldest = next(iter(self.open.values()), None)
        self.limit = None if oldest is None else oldest[0][0]

    def first_of(self, txn: TxnId) -> int | None:
        """Ordinal of a transaction's first entry, if it is open and has any."""
        stretches = self.open.get(txn)
        return stretches[0][0] if stretches else None

    def oldest(self) -> TxnId | None:
        """The open transaction that sets the limit."""
        return next(iter(self.open), None)

    def trimmed(self, first: int) -> None:
        """The log has nothing below ``first`` any more."""
        self.first = max(self.first, first)
        self.hidden.add_until(first - 1)

    def next_hidden(self, start: int, stop: int) -> int:
        """The first hidden ordinal of a range, or ``stop``."""
        start = max(start, self.first)
        return self.hidden.next_present(start, stop) if start < stop else stop

    def next_shown(self, start: int) -> int:
        """The first ordinal from ``start`` on that is not hidden."""
        return start if start < self.first else self.hidden.next_missing(start)

    def last_shown(self, start: int, stop: int) -> int:
        """The last ordinal of a range that is not hidden, or ``start - 1``."""
        low = max(start, self.first, self.hidden.mark_delete + 1)
        at = self.hidden.last_clear(low, stop)
        return at if low <= at < stop else max(min(self.first, stop), start) - 1

    def hidden_in(self, start: int, stop: int) -> list[int]:
        """Hidden ordinals of a range, ascending: there may be a million in a row."""
        found: list[int] = []
        at = self.next_hidden(start, stop)
        while at < stop:
            shown = min(self.next_shown(at), stop)
            found.extend(range(at, shown))
            at = self.next_hidden(shown, stop)
        return found

    # on disk -----------------------------------------------------------------------------------------------------

    def encode(self) -> Any:
        """Return everything as JSON values."""
        return {
            "open": [[txn.most, txn.least, stretches] for txn, stretches in self.open.items()],
            "first": self.first,
            "hidden": base64.b64encode(zlib.compress(self.hidden.dump(), 1)).decode(),
        }

    def decode(self, value: Any) -> None:
        """Take what :meth:`encode` returned, into an empty state."""
        for most, least, stretches in value["open"]:
            for start, stop in stretches:
                self.wrote(TxnId(most, least), start, stop)
        self.first = value.get("first", 0)
        self.hidden.load(zlib.decompress(base64.b64decode(value["hidden"])))

    def check(self) -> None:
        """Assert the invariants; for tests."""
        seen: set[int] = set()
        for stretches in self.open.values():
            for start, stop in stretches:
                assert start < stop
                assert seen.isdisjoint(range(start, stop))
                seen.update(range(start, stop))
        assert self.limit == min(seen, default=None)
        assert not [ordinal for ordinal in seen if ordinal in self.hidden]
        self.hidden.check()
