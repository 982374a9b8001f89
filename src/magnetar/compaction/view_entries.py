"""The entries of a compacted view's log: each carries the place that it had in the topic. Pure.

entry of the view   [i64 ordinal][i64 ledger][i64 entry][the entry as it stays]
"""

from __future__ import annotations

import struct
from typing import Final

PLACE: Final = struct.Struct("<qqq")
PLACE_BYTES: Final = PLACE.size


def pack(ordinal: int, ledger: int, entry: int, data: bytes) -> bytes:
    """An entry of the view."""
    return PLACE.pack(ordinal, ledger, entry) + data


def place_of(packed: bytes) -> tuple[int, int, int, bytes]:
    """Ordinal, ledger and entry that an entry of the view has in the topic, and the entry as it stays."""
    return *PLACE.unpack_from(packed), packed[PLACE.size :]
