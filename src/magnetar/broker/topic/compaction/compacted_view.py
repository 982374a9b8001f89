"""A compacted view on disk: a log of its own, whose entries carry the place they had in the topic.

    entry of the view   [i64 ordinal][i64 ledger][i64 entry][the entry as it stays]

What is known of the view as a whole is kept in the properties of the topic's cursor ``__compaction``, so that it
changes in one record together with that cursor's mark (decision 008).
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from magnetar.broker.topic.ports import Run
from magnetar.broker.topic.position_search import Answer, Found, first_not, is_before
from magnetar.compaction.messages import last_index
from magnetar.model.ids import EARLIEST, Position
from magnetar.storage.ledgers.entry_cache import Run as StoredRun
from magnetar.storage.ledgers.managed_ledger import ManagedLedger

_PLACE: Final = struct.Struct("<qqq")
PLACE_BYTES: Final = _PLACE.size
PROPERTY: Final = "#compacted"
"""The broker's own: neither shown nor replaced with the others."""

LastDone = Callable[[tuple[Position, int] | Exception], None]


class Ledger(NamedTuple):
    """A ledger of the topic, trimmed or not, of which something stays."""

    id: int
    ordinal: int
    """Of its entry 0."""
    end: int
    """Behind the last ordinal that is compacted or, at least, that stays."""


class Facts(NamedTuple):
    """What the cursor's properties say."""

    generation: int
    oldest: int
    """The lowest generation that may still exist on disk."""
    horizon: int
    """Ordinal behind the last entry that was compacted."""
    ledger: int
    """The first ledger of the view's own log: what statistics show."""
    ledgers: tuple[Ledger, ...]

    def to_property(self) -> list[Any]:
        """As it lies in the cursor's properties."""
        return [self.generation, self.oldest, self.horizon, self.ledger, [list(ledger) for ledger in self.ledgers]]

    @classmethod
    def from_property(cls, value: list[Any]) -> Facts:
        """The inverse of :meth:`to_property`."""
        generation, oldest, horizon, ledger, ledgers = value
        return cls(generation, oldest, horizon, ledger, tuple(Ledger(*one) for one in ledgers))


def view_name(topic_log: int, generation: int) -> str:
    """Name of the log; no topic's name, so it is in no list."""
    return f"internal://compacted/{topic_log}/{generation}"


def pack(ordinal: int, ledger: int, entry: int, data: bytes) -> bytes:
    """An entry of the view."""
    return _PLACE.pack(ordinal, ledger, entry) + data


def place_of(packed: bytes) -> tuple[int, int, int, bytes]:
    """Ordinal, ledger and entry that an entry of the view has in the topic, and the entry as it stays."""
    return *_PLACE.unpack_from(packed), packed[_PLACE.size :]


def unpack(run: Run) -> list[StoredRun]:
    """The topic's entries in a piece of the view's log: a run for each stretch without a gap."""
    runs: list[StoredRun] = []
    counts = run.counts
    expected = (-1, -1, -1)
    for i, data in enumerate(run.entries):
        place = _PLACE.unpack_from(data)
        if place != expected:
            ordinal, ledger, entry = place
            runs.append(StoredRun(ordinal, ledger, entry, [], None if counts is None else []))
        runs[-1].entries.append(data[_PLACE.size :])
        if counts is not None:
            runs[-1].counts.append(counts[i])  # type: ignore[union-attr]  # made two lines above
        expected = (place[0] + 1, place[1], place[2] + 1)
    return runs


class View:
    """A whole compacted view; never changes. ``pins``: how many sources are inside it."""

    def __init__(self, log: ManagedLedger, facts: Facts) -> None:
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
        """What they take, their places left out."""
        return self.log.retained_bytes() - _PLACE.size * self.entries

    def index_of(self, ordinal: int, done: Answer) -> None:
        """Number, in the view's log, of the first entry at or behind ``ordinal``; maybe at once."""

        def before(entry: bytes) -> bool:
            return bool(_PLACE.unpack_from(entry)[0] < ordinal)

        first_not(self.log, before, lambda found: done(found if isinstance(found, Exception) else found.ordinal))

    def since(self, publish_time_ms: int, done: Answer) -> None:
        """Ordinal of the first entry published at or after that time; the horizon if there is none."""

        def before(entry: bytes) -> bool | None:
            return is_before(entry[_PLACE.size :], publish_time_ms)

        def told(found: Found | Exception) -> None:
            if isinstance(found, Exception):
                done(found)
            else:
                done(self.horizon if found.entry is None else _PLACE.unpack_from(found.entry)[0])

        first_not(self.log, before, told)

    def last(self, done: LastDone) -> None:
        """Position and batch index of the last message that stays; -1 everywhere if there is none."""
        end = self.log.end

        def read(result: Run | Exception) -> None:
            if isinstance(result, Exception):
                done(result)
                return
            _, ledger, entry = _PLACE.unpack_from(result.entries[0])
            done((Position(ledger, entry), last_index(result.entries[0][_PLACE.size :])))

        if end == self.log.first:
            done((EARLIEST, -1))
        elif (run := self.log.cached(end - 1, 1, 1)) is not None:
            read(run)
        else:
            self.log.read(end - 1, 1, 1, read)

    def position(self, ordinal: int) -> Position | None:
        """Of an ordinal whose ledger the view knows."""
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
        """Ordinal of the first entry that may stay at or behind ``position``; the horizon if there is none."""
        i = bisect_right(self._ids, position.ledger) - 1
        ledgers = self.facts.ledgers
        if i >= 0 and self._ids[i] == position.ledger:
            return min(ledgers[i].ordinal + max(position.entry, 0), ledgers[i].end)
        return ledgers[i + 1].ordinal if i + 1 < len(ledgers) else self.horizon
