"""Identifiers: positions in a topic's log, message ids with their ack sets, and the small numbers a client chooses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple, NewType

ProducerId = NewType("ProducerId", int)
ConsumerId = NewType("ConsumerId", int)
RequestId = NewType("RequestId", int)
LedgerId = NewType("LedgerId", int)

U64_MAX: Final = (1 << 64) - 1
"""A signed -1 in a uint64 field of protobuf."""

LONG_MAX: Final = (1 << 63) - 1


class Position(NamedTuple):
    """Where an entry is: ledger and entry number in it, both from 0, in Pulsar's order (rule 4.1.4)."""

    ledger: int
    entry: int

    def __str__(self) -> str:
        return f"{self.ledger}:{self.entry}"


EARLIEST: Final = Position(-1, -1)
LATEST: Final = Position(LONG_MAX, LONG_MAX)


def signed(value: int) -> int:
    """Return a uint64 from the wire as the signed number that was meant (u64 max is -1)."""
    return value - (1 << 64) if value > LONG_MAX else value


def unsigned(value: int) -> int:
    """Return a signed number as the uint64 the wire wants."""
    return value & U64_MAX


def bits_of(ack_set: Sequence[int]) -> int:
    """The words of an ack set, signed or not, as one number: bit i is message i of the batch (rule 5.7.6)."""
    bits = 0
    for i, word in enumerate(ack_set):
        bits |= (word & U64_MAX) << (64 * i)
    return bits


def ack_set_of(bits: int) -> tuple[int, ...]:
    """The 64-bit words of an ack set, as Java's BitSet.toLongArray: trailing zero words are left out (rule 5.7.6)."""
    words = []
    while bits:
        words.append(bits & U64_MAX)
        bits >>= 64
    return tuple(words)
