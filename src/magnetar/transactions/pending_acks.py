"""Acknowledgements that open transactions hold reserved on one subscription. Pure (rules 9.12, 9.14).

A reserved entry is neither sent nor acknowledged. Two transactions may hold different messages of one batch, never the
same one; a cumulative acknowledgement belongs to one transaction at a time and only moves forward. The caller has
looked at the cursor before: what is acknowledged cannot be reserved.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from magnetar.model.ids import U64_MAX, ack_set_of, bits_of
from magnetar.model.ordinals import SortedOrdinals
from magnetar.protocol.commands.ids import TxnId
from magnetar.storage.ledgers.ranges import coalesce


class PartialBatch(NamedTuple):
    """Messages of one batch: bit i of ``taken`` is message i, of ``size``."""

    ordinal: int
    taken: int
    size: int

    @property
    def left(self) -> tuple[int, ...]:
        """The ack set: 64-bit words of what is not taken (rule 5.7.6)."""
        return self.left_of(())

    def left_of(self, words: Sequence[int]) -> tuple[int, ...]:
        """The part of an ack set (empty: the whole batch) that is not taken."""
        left = bits_of(words) if words else (1 << self.size) - 1
        return ack_set_of(left & ~self.taken)

    def joined(self, other: PartialBatch | None) -> PartialBatch:
        """What both take."""
        if other is None:
            return self
        return PartialBatch(self.ordinal, self.taken | other.taken, max(self.size, other.size))


_BATCH_MAX = 1 << 20
"""Messages of a batch; more do not fit into an entry."""


def partial_batch(ordinal: int, ack_set: Sequence[int], batch_size: int) -> PartialBatch:
    """Make one from an acknowledgement: the bits that are set in its words stay."""
    size = min(batch_size or 64 * len(ack_set), _BATCH_MAX)
    return PartialBatch(ordinal, ((1 << size) - 1) & ~bits_of(ack_set), size)


@dataclass(slots=True)
class TransactionAcks:
    """What one transaction has acknowledged."""

    whole: set[int] = field(default_factory=set)
    parts: dict[int, PartialBatch] = field(default_factory=dict)
    until: PartialBatch | None = None
    """Cumulative: everything before ``until.ordinal``, and of that entry what is taken (all of it if ``size`` is 0)."""

    def entries(self) -> list[int]:
        """Ordinals that are reserved one by one, ascending."""
        return sorted(self.whole.union(self.parts))

    def encode(self) -> Any:
        """Return everything as JSON values."""
        return [
            coalesce(list(self.whole)),
            [_written(p) for p in self.parts.values()],
            self.until and _written(self.until),
        ]

    @classmethod
    def decode(cls, value: Any) -> TransactionAcks:
        """The inverse."""
        whole, parts, until = value
        return cls(set(_ordinals(whole)), {p[0]: _read(p) for p in parts}, _read(until) if until else None)


def _written(part: PartialBatch) -> list[Any]:
    """Large numbers as text: in JSON they are decimal, which takes their length squared, and Python refuses it."""
    ordinal, taken, size = part
    return [ordinal, taken if taken <= U64_MAX else f"{taken:x}", size]


def _read(value: Sequence[Any]) -> PartialBatch:
    ordinal, taken, size = value
    return PartialBatch(ordinal, int(taken, 16) if isinstance(taken, str) else taken, size)


def _ordinals(ranges: Iterable[Sequence[int]]) -> Iterable[int]:
    for start, stop in ranges:
        yield from range(start, stop)


class PendingAcks:
    """One subscription's."""

    def __init__(self) -> None:
        self.held: dict[TxnId, TransactionAcks] = {}
        self.whole = SortedOrdinals()
        """Entries that are reserved as a whole, ascending."""
        self.parts: dict[int, PartialBatch] = {}
        """Per batch, what is reserved of it, by whomever."""
        self.cumulative: TxnId | None = None

    def __bool__(self) -> bool:
        return bool(self.held)

    def conflict(self, whole: Iterable[int], parts: Iterable[PartialBatch]) -> tuple[int, bool] | None:
        """The first ordinal that is reserved already, and whether it was asked for as a part of a batch."""
        for ordinal in whole:
            if ordinal in self.whole or ordinal in self.parts:
                return ordinal, False
        for part in parts:
            known = self.parts.get(part.ordinal)
            if part.ordinal in self.whole or (known is not None and known.taken & part.taken):
                return part.ordinal, True
        return None

    def reserve(self, txn: TxnId, whole: Iterable[int], parts: Iterable[PartialBatch]) -> None:
        """After :meth:`conflict` said None."""
        held = self.held.setdefault(txn, TransactionAcks())
        new = list(whole)
        held.whole.update(new)
        self.whole.extend(new)
        for part in parts:
            held.parts[part.ordinal] = part.joined(held.parts.get(part.ordinal))
            self.parts[part.ordinal] = part.joined(self.parts.get(part.ordinal))

    def conflict_until(self, txn: TxnId, until: PartialBatch) -> PartialBatch | None:
        """The cumulative acknowledgement that forbids this one."""
        if self.cumulative is None:
            return None
        current = self.held[self.cumulative].until
        assert current is not None
        if txn != self.cumulative or _reach(until) <= _reach(current):
            return current
        return None

    def reserve_until(self, txn: TxnId, until: PartialBatch) -> None:
        """After :meth:`conflict_until` said None."""
        self.cumulative = txn
        self.held.setdefault(txn, TransactionAcks()).until = until

    def take(self, txn: TxnId) -> TransactionAcks | None:
        """The transaction has ended: what it held, which is reserved no more."""
        held = self.held.pop(txn, None)
        if held is None:
            return None
        self.whole.discard_all(held.whole)
        for ordinal, part in held.parts.items():
            all_of_it = self.parts[ordinal]
            others = all_of_it.taken & ~part.taken
            if others:
                self.parts[ordinal] = all_of_it._replace(taken=others)
            else:
                del self.parts[ordinal]
        if self.cumulative == txn:
            self.cumulative = None
        return held

    def restore(self, txn: TxnId, held: TransactionAcks) -> None:
        """Reserve again what ``txn`` held, as read from disk."""
        self.reserve(txn, held.whole, held.parts.values())
        if held.until is not None:
            self.reserve_until(txn, held.until)

    def check(self) -> None:
        """Assert the cross-links; for tests."""
        whole: list[int] = []
        parts: dict[int, int] = {}
        for held in self.held.values():
            whole += held.whole
            for ordinal, part in held.parts.items():
                assert ordinal == part.ordinal
                assert not parts.get(ordinal, 0) & part.taken, "a message is reserved twice"
                parts[ordinal] = parts.get(ordinal, 0) | part.taken
        assert sorted(whole) == list(self.whole.front(len(whole) + 1)), "an entry is reserved twice"
        assert parts == {ordinal: part.taken for ordinal, part in self.parts.items()}
        assert set(whole).isdisjoint(parts)
        holders = [txn for txn, held in self.held.items() if held.until is not None]
        assert holders == ([] if self.cumulative is None else [self.cumulative])


def _reach(until: PartialBatch) -> tuple[int, float]:
    return until.ordinal, until.taken.bit_count() if until.size else float("inf")
