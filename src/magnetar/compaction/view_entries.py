"""The entries of a compacted view's log: each carries the place that it had in the topic. Pure.

entry of the view   [i64 ordinal][i64 ledger][i64 entry][0e 02, u48 index]?[the entry as it stays]

The message index of its first message is there if the broker kept it when the topic was compacted (decision 075), and
it has no more than 48 bits: who claims a million messages in each entry comes beyond that within an hour. An entry
itself begins with 0e 01, or without a checksum with a size that is below 0e 02.
"""

from __future__ import annotations

import struct
from typing import Final

PLACE: Final = struct.Struct("<qqq")
PLACE_BYTES: Final = PLACE.size


INDEXED: Final = b"\x0e\x02"
INDEX_BYTES: Final = 8
"""Bytes of the index with what announces it."""
_INDEXES: Final = 1 << 48
_UNKNOWN: Final = -(1 << 62)


def pack(ordinal: int, ledger: int, entry: int, data: bytes, index: int = _UNKNOWN) -> bytes:
    """An entry of the view; ``index`` below 0 is not known, and one that has no room is not kept."""
    place = PLACE.pack(ordinal, ledger, entry)
    return place + INDEXED + index.to_bytes(6, "big") + data if 0 <= index < _INDEXES else place + data


def place_of(packed: bytes) -> tuple[int, int, int, bytes]:
    """Ordinal, ledger and entry that an entry of the view has in the topic, and the entry as it stays."""
    return *PLACE.unpack_from(packed), entry_of(packed)


def entry_of(packed: bytes) -> bytes:
    """The entry as it stays."""
    indexed = packed.startswith(INDEXED, PLACE_BYTES)
    return packed[PLACE_BYTES + INDEX_BYTES if indexed else PLACE_BYTES :]


def index_of(packed: bytes) -> int:
    """The message index of its first message, below 0 if it is not known."""
    if not packed.startswith(INDEXED, PLACE_BYTES):
        return _UNKNOWN
    return int.from_bytes(packed[PLACE_BYTES + 2 : PLACE_BYTES + INDEX_BYTES], "big")
