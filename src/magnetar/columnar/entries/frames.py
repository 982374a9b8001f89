"""Frames off a socket to blocks of entries: MESSAGE commands read by a kernel, no object per message.

    frame   [u32 total][u32 command size][BaseCommand][0x0e02 u32 size BrokerEntryMetadata]?[entry]

The kernel knows one command and is strict about it. Where it meets anything else (another command, another consumer,
an entry without checksum or with a wrong one, bytes that are no frame) it stops, and `protocol.decoder` judges.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from magnetar.columnar.entries.block import ALL, ENTRY, ENTRY_END, ENTRY_START, FIRST, INDEX, LEDGER, NO_INDEX, STOP
from magnetar.columnar.entries.checksums import CHECKED_HERE, crc32c
from magnetar.columnar.kernels.compiled import Int64Array, Uint8Array, int64, kernel, uint64
from magnetar.columnar.kernels.protobuf_wire import read_span, read_tag, read_u32, read_varint, skip_field

MORE: Final = 0
"""The next frame is not whole yet."""
OTHER: Final = 1
"""The next frame is not for this kernel."""
NO_ROOM: Final = 2
"""The table is full."""

_ENTRY_HEADER: Final = 10
_LONG_MAX: Final = (1 << 63) - 1


@kernel
def _number(data: Uint8Array, at: int, end: int) -> tuple[int, int]:
    """Read a varint below 2**63; the position is -1 if there is none."""
    value, at = read_varint(data, at, end)
    if value > uint64(_LONG_MAX):
        return 0, -1
    return int64(value), at


@kernel
def _message_id(data: Uint8Array, at: int, end: int, table: Int64Array, count: int) -> bool:
    seen = 0
    while at < end:
        tag, at = read_tag(data, at, end)
        if tag == 0x08 and at > 0:
            table[LEDGER, count], at = _number(data, at, end)
            seen |= 1
        elif tag == 0x10 and at > 0:
            table[ENTRY, count], at = _number(data, at, end)
            seen |= 2
        elif at > 0:
            # Partition, batch index, batch size; what else there may be (an ack set, a first chunk) is not judged here.
            at = skip_field(data, tag, at, end) if tag in (0x18, 0x20, 0x30) else -1
        if at < 0:
            return False
    return seen == 3


@kernel
def _message(data: Uint8Array, at: int, end: int, consumer_id: int, table: Int64Array, count: int) -> bool:
    """Read a BaseCommand that is a MESSAGE for this consumer; its id goes into the table."""
    # 08 09 is its type, 4a begins the message itself, and nothing comes after it.
    if end - at < 4 or data[at] != 0x08 or data[at + 1] != 0x09 or data[at + 2] != 0x4A:
        return False
    at, stop = read_span(data, at + 3, end)
    if at < 0 or stop != end:
        return False
    seen = 0
    while at < end:
        tag, at = read_tag(data, at, end)
        if tag == 0x08 and at > 0:
            found, at = _number(data, at, end)
            if found != consumer_id:
                return False
            seen |= 1
        elif tag == 0x12 and at > 0:
            start, at = read_span(data, at, end)
            if at < 0 or not _message_id(data, start, at, table, count):
                return False
            seen |= 2
        elif at > 0:
            # Redelivery count, consumer epoch.
            at = skip_field(data, tag, at, end) if tag in (0x18, 0x28) else -1
        if at < 0:
            return False
    return seen == 3


@kernel
def _broker_metadata(data: Uint8Array, at: int, end: int, table: Int64Array, count: int) -> int:
    """Return where the entry begins; -1 if what stands before it cannot be read."""
    table[INDEX, count] = NO_INDEX
    if end - at < 6 or data[at] != 0x0E or data[at + 1] != 0x02:
        return at
    stop = at + 6 + read_u32(data, at + 2)
    at += 6
    if stop > end:
        return -1
    while at < stop:
        tag, at = read_tag(data, at, stop)
        if tag == 0x10 and at > 0:
            table[INDEX, count], at = _number(data, at, stop)
        elif at > 0:
            at = skip_field(data, tag, at, stop) if tag == 0x08 else -1
        if at < 0:
            return -1
    return stop


@kernel
def read_frames(
    data: Uint8Array, at: int, end: int, limit: int, consumer_id: int, table: Int64Array, tables: Int64Array
) -> tuple[int, int, int, int]:
    """Read frames in ``data[at:end]``: a status, how many entries, where the next frame is, how many bytes it has.

    The size is 0 if even that is not known yet. ``table`` is that of a `columnar.entries.block.EntryBlock`.
    """
    count = 0
    while True:
        if end - at < 4:
            return MORE, count, at, 0
        size = 4 + read_u32(data, at)
        if size > limit or size < 8:
            return OTHER, count, at, size
        if end - at < size:
            return MORE, count, at, size
        if count == table.shape[1]:
            return NO_ROOM, count, at, size
        stop = at + size
        entry = at + 8 + read_u32(data, at + 4)
        if entry > stop or not _message(data, at + 8, entry, consumer_id, table, count):
            return OTHER, count, at, size
        entry = _broker_metadata(data, entry, stop, table, count)
        if entry < 0 or stop - entry < _ENTRY_HEADER or data[entry] != 0x0E or data[entry + 1] != 0x01:
            return OTHER, count, at, size
        if stop - entry <= CHECKED_HERE and crc32c(data, entry + 6, stop, tables) != read_u32(data, entry + 2):
            return OTHER, count, at, size
        table[FIRST, count] = 0
        table[STOP, count] = ALL
        table[ENTRY_START, count] = entry
        table[ENTRY_END, count] = stop
        at = stop
        count += 1


def unchecked(table: np.ndarray[tuple[int, int], np.dtype[np.int64]]) -> list[int]:
    """Return the entries whose checksum `read_frames` has left to its caller."""
    found: list[int] = np.flatnonzero(table[ENTRY_END] - table[ENTRY_START] > CHECKED_HERE).tolist()
    return found
