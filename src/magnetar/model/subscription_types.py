"""How the consumers of one subscription share its messages: the four types, and what Key_Shared adds to them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Final, NamedTuple


class SubType(IntEnum):
    """A subscription's type, with Pulsar's numbers on the wire and names in errors (rules 5.1.1, 5.10.1)."""

    Exclusive = 0
    Shared = 1
    Failover = 2
    Key_Shared = 3


class KeySharedMode(IntEnum):
    """Who divides the hash range: the broker, or the consumers themselves; Pulsar's names and the Python client's."""

    AUTO_SPLIT = 0
    STICKY = 1
    AutoSplit = AUTO_SPLIT
    Sticky = STICKY


class IntRange(NamedTuple):
    """A range of slots to which both ends belong."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class KeySharedMeta:
    """What a Key_Shared (or key-range Exclusive) consumer asks for when it subscribes (rule 5.6.3)."""

    mode: KeySharedMode
    hash_ranges: tuple[IntRange, ...] = ()
    allow_out_of_order_delivery: bool = False


AUTO_SPLIT: Final = KeySharedMeta(KeySharedMode.AUTO_SPLIT)
"""The default of a consumer that asks for nothing."""
