"""The ledgers that make one topic's endless log, and the two ways to name an entry.

Outside, an entry is (ledger, entry) as in Apache Pulsar (rules of 4.1). Inside, it is its ordinal: its number in the
log, counted from the first entry ever written, dense across ledgers. Each ledger knows the ordinal of its first entry,
so one subtraction leads from one name to the other; ordinals make cursors, backlogs and redelivery plain integers.
"""

from __future__ import annotations

from bisect import bisect_right
from itertools import pairwise
from typing import Any

from magnetar.model.ids import Position
from magnetar.storage.ledgers.archive import Offload


class Ledger:
    """One ledger: open while it is the last, immutable afterwards. ``closed_ms`` is 0 while it is open."""

    __slots__ = ("bytes", "closed_ms", "entries", "id", "index", "messages", "offload", "opened_ms", "ordinal")

    def __init__(self, ledger_id: int, ordinal: int, index: int, opened_ms: int) -> None:
        self.id = ledger_id
        self.ordinal = ordinal
        """Ordinal of its entry 0."""
        self.index = index
        """Message index of its first message."""
        self.opened_ms = opened_ms
        self.closed_ms = 0
        self.entries = 0
        self.messages = 0
        self.bytes = 0
        self.offload: Offload | None = None
        """Its copy outside the directory, if that is durably known."""

    @property
    def end(self) -> int:
        """Ordinal after its last entry."""
        return self.ordinal + self.entries

    def to_list(self) -> list[Any]:
        """The list that stands in a checkpoint."""
        values: list[Any] = [
            self.id, self.ordinal, self.index, self.opened_ms, self.closed_ms, self.entries, self.messages, self.bytes,
        ]  # fmt: skip
        return values if self.offload is None else [*values, self.offload.to_list()]

    @classmethod
    def from_list(cls, values: list[Any]) -> Ledger:
        """The inverse of :meth:`to_list`."""
        ledger = cls(values[0], values[1], values[2], values[3])
        ledger.closed_ms, ledger.entries, ledger.messages, ledger.bytes = values[4:8]
        if len(values) > 8:
            ledger.offload = Offload.from_list(values[8])
        return ledger


class Rollover:
    """When a ledger is full (rule 4.2.1; settings managedLedgerMax…)."""

    __slots__ = ("bytes_max", "entries_max", "max_ms", "min_ms")

    def __init__(self, entries_max: int, bytes_max: int, min_ms: int, max_ms: int) -> None:
        self.entries_max = entries_max
        self.bytes_max = bytes_max
        self.min_ms = min_ms
        self.max_ms = max_ms

    def due(self, entries: int, size: int, opened_ms: int, now_ms: int) -> bool:
        """Whether the open ledger is to be closed before the next entry."""
        age = abs(now_ms - opened_ms)  # a clock that was years ahead is no reason to keep it open for years
        full = entries >= self.entries_max or size >= self.bytes_max
        return (full and age >= self.min_ms) or (age >= self.max_ms and entries > 0)


class LedgerTable:
    """The retained ledgers of a log, oldest first; the last one is open. Never empty once the log is in use."""

    __slots__ = ("_bases", "_ids", "ledgers")

    def __init__(self) -> None:
        self.ledgers: list[Ledger] = []
        self._bases: list[int] = []
        self._ids: list[int] = []

    def add(self, ledger: Ledger) -> None:
        """Append the newest."""
        self.ledgers.append(ledger)
        self._bases.append(ledger.ordinal)
        self._ids.append(ledger.id)

    def insert(self, ledger: Ledger) -> None:
        """Put one where its id belongs: it closes the one before it, as the one after it closes it.

        Empty ones before it that begin after it are void: they were opened for entries that are lost.
        """
        i = bisect_right(self._ids, ledger.id)
        while i and self._bases[i - 1] > ledger.ordinal and not self.ledgers[i - 1].entries:
            i -= 1
            del self.ledgers[i], self._bases[i], self._ids[i]
        self.ledgers.insert(i, ledger)
        self._bases.insert(i, ledger.ordinal)
        self._ids.insert(i, ledger.id)
        for before, after in pairwise(self.ledgers[max(i - 1, 0) : i + 2]):
            before.closed_ms = before.closed_ms or after.opened_ms

    def drop_front(self, count: int) -> list[Ledger]:
        """Forget the oldest ``count``, and return them."""
        dropped = self.ledgers[:count]
        del self.ledgers[:count], self._bases[:count], self._ids[:count]
        return dropped

    def of_id(self, ledger_id: int) -> Ledger | None:
        """The ledger of that id, if it is retained."""
        i = bisect_right(self._ids, ledger_id) - 1
        return self.ledgers[i] if i >= 0 and self._ids[i] == ledger_id else None

    def after(self, ledger_id: int) -> Ledger | None:
        """The first ledger of a higher id."""
        i = bisect_right(self._ids, ledger_id)
        return self.ledgers[i] if i < len(self.ledgers) else None

    @property
    def first(self) -> int:
        """Lowest retained ordinal."""
        return self._bases[0] if self._bases else 0

    def holding(self, ordinal: int) -> Ledger:
        """The ledger of an ordinal; the ordinal after the end belongs to the open one."""
        # of several ledgers with one base all but the last are empty
        return self.ledgers[max(bisect_right(self._bases, ordinal) - 1, 0)]

    def position(self, ordinal: int) -> Position:
        """(ledger, entry) of an ordinal; an ordinal before the first is entry -1 of the first ledger.

        The position of "just before entry 0 of a ledger" is the last entry of the ledger before it.
        """
        if not self.ledgers:
            return Position(-1, -1)
        ledger = self.holding(ordinal)
        return Position(ledger.id, max(ordinal - ledger.ordinal, -1))

    def ordinal(self, position: Position, end: int) -> int:
        """Ordinal of the first entry at or after ``position``, at most ``end`` (rule 5.9.7)."""
        i = bisect_right(self._ids, position.ledger) - 1
        if i < 0:
            return self.first
        ledger = self.ledgers[i]
        if ledger.id != position.ledger:
            return min(ledger.end, end)
        return min(ledger.ordinal + max(position.entry, 0), ledger.end, end)

    def exact(self, position: Position, end: int) -> int | None:
        """Ordinal of the entry that is at ``position``, or None if there is none."""
        i = bisect_right(self._ids, position.ledger) - 1
        if i < 0 or self._ids[i] != position.ledger:
            return None
        ledger = self.ledgers[i]
        ordinal = ledger.ordinal + position.entry
        return ordinal if position.entry >= 0 and ordinal < min(ledger.end, end) else None

    def drop_after(self, end: int) -> None:
        """Forget ledgers that begin after ``end``: what they were opened for never became durable."""
        self.drop_from(end + 1)

    def drop_from(self, ordinal: int) -> None:
        """Forget ledgers that begin at or after ``ordinal`` and hold nothing durable."""
        while self.ledgers and self.ledgers[-1].ordinal >= ordinal and not self.ledgers[-1].entries:
            self.ledgers.pop()
            self._bases.pop()
            self._ids.pop()
