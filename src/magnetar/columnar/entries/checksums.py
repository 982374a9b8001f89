"""The checksums that producers give their entries (CRC-32C), of many entries at once.

A library computes them three times as fast per byte, but a call from Python costs as much as a hundred bytes of this
kernel do: small entries are checked here, larger ones are left to the caller.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
from crc32c import crc32c as crc32c_of

from magnetar.columnar.entries.block import ENTRY_END, ENTRY_START
from magnetar.columnar.kernels.compiled import Int64Array, Uint8Array, int64, kernel, uint64
from magnetar.columnar.kernels.protobuf_wire import read_u32

if TYPE_CHECKING:
    from numpy.typing import NDArray

CHECKED_HERE: Final = 2048
"""Larger entries are checked by a library, which is faster per byte and slower per call."""
_HEADER: Final = 10
_WRONG: Final = 1
_LARGE: Final = 2


def _crc_tables() -> np.ndarray[tuple[int, int], np.dtype[np.uint64]]:
    """Return CRC-32C of one byte followed by 0 to 7 zero bytes."""
    tables = np.zeros((8, 256), np.uint64)
    for byte in range(256):
        value = byte
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
        tables[0, byte] = value
    for row in range(1, 8):
        for byte in range(256):
            before = int(tables[row - 1, byte])
            tables[row, byte] = before >> 8 ^ int(tables[0, before & 0xFF])
    return tables


CRC_TABLES: Final = _crc_tables()


@kernel
def crc32c(data: Uint8Array, at: int, end: int, tables: Int64Array) -> int:
    """Return the checksum of an entry's bytes; ``tables`` are `CRC_TABLES`."""
    value = uint64(0xFFFFFFFF)
    low = uint64(0xFF)
    while at + 8 <= end:
        value ^= (
            uint64(data[at])
            | uint64(data[at + 1]) << uint64(8)
            | uint64(data[at + 2]) << uint64(16)
            | uint64(data[at + 3]) << uint64(24)
        )
        value = (
            tables[7, value & low]
            ^ tables[6, value >> uint64(8) & low]
            ^ tables[5, value >> uint64(16) & low]
            ^ tables[4, value >> uint64(24)]
            ^ tables[3, data[at + 4]]
            ^ tables[2, data[at + 5]]
            ^ tables[1, data[at + 6]]
            ^ tables[0, data[at + 7]]
        )
        at += 8
    while at < end:
        value = value >> uint64(8) ^ tables[0, (value ^ uint64(data[at])) & low]
        at += 1
    found: int = int64(value ^ uint64(0xFFFFFFFF))
    return found


@kernel
def _check(data: Uint8Array, table: Int64Array, tables: Int64Array, found: Uint8Array) -> None:
    for index in range(table.shape[1]):
        start, end = table[ENTRY_START, index], table[ENTRY_END, index]
        found[index] = 0
        if end - start < _HEADER or data[start] != 0x0E or data[start + 1] != 0x01:
            found[index] = _WRONG
        elif end - start > CHECKED_HERE:
            found[index] = _LARGE
        elif crc32c(data, start + 6, end, tables) != read_u32(data, start + 2):
            found[index] = _WRONG


def wrong_checksums(data: NDArray[np.uint8], table: NDArray[np.int64]) -> list[int]:
    """Return the entries (columns of a block's table) that are not as their producers sent them, ascending.

    Also what is no entry. Each has to lie within ``data``.
    """
    state = np.empty(table.shape[1], np.uint8)
    _check(data, table, CRC_TABLES, state)
    view: Any = data.data
    for index in np.flatnonzero(state == _LARGE).tolist():
        start, end = int(table[ENTRY_START, index]), int(table[ENTRY_END, index])
        if crc32c_of(view[start + 6 : end]) != int.from_bytes(view[start + 2 : start + 6], "big"):
            state[index] = _WRONG
    wrong: list[int] = np.flatnonzero(state == _WRONG).tolist()
    return wrong
