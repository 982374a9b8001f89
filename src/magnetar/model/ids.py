"""Identifiers: positions in a topic's log, message ids, and the small numbers a client chooses."""

from __future__ import annotations

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
