"""The heads of stored entries as a table of numbers: MessageMetadata read by a kernel, no object per entry.

A table is an int64 array of one row per fact (the constants below) and one column per entry, so a row is a contiguous
array. Spans are positions in the buffer that the entries are in. What few entries have (encryption, chunks) is only
noted here: `protocol.entries.metadata_of` reads it for those.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from magnetar.columnar.entries.block import BLOCK_ROWS, ENTRY_END, ENTRY_START, EntryBlock
from magnetar.columnar.kernels.compiled import Int64Array, Uint8Array, int64, kernel, uint64
from magnetar.columnar.kernels.protobuf_wire import (
    pair_spans,
    read_span,
    read_tag,
    read_u32,
    read_varint,
    skip_field,
    to_int32,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

# The first rows are those of a block's table.
METADATA: Final = 7
"""Where the metadata begins."""
PAYLOAD: Final = 8
"""Where it ends and the payload begins, which goes on up to ENTRY_END."""
FLAGS: Final = 9
BATCH: Final = 10
"""How many messages the batch says it has; NO_BATCH for a message on its own."""
PUBLISH_TIME: Final = 11
EVENT_TIME: Final = 12
SEQUENCE: Final = 13
COMPRESSION: Final = 14
PLAIN_SIZE: Final = 15
PRODUCER: Final = 16
PRODUCER_END: Final = 17
SCHEMA: Final = 18
"""-1: has none; so for keys."""
SCHEMA_END: Final = 19
KEY: Final = 20
KEY_END: Final = 21
ORDERING: Final = 22
ORDERING_END: Final = 23
PAIRS: Final = 24
KEPT: Final = 25
"""How many of its messages became rows."""
PRODUCER_ID: Final = 26
SCHEMA_ID: Final = 27
METADATA_ROWS: Final = 28

NO_BATCH: Final = -(1 << 40)

NULL_VALUE: Final = 1
BASE64_KEY: Final = 2
MARKER: Final = 4
ENCRYPTED: Final = 8
CHUNK: Final = 16
"""One of several chunks, and it says of which message (rule 3.6.2); other entries are messages of their own."""
_SEVERAL: Final = 32
_UUID: Final = 64

_HEADER: Final = 10
_MAGIC: Final = 0x0E01


@kernel
def read_metadata(data: Uint8Array, table: Int64Array, first: int, last: int) -> int:
    """Fill columns ``[first, last)`` from ENTRY_START and ENTRY_END; the first that is no entry, or ``last``."""
    for index in range(first, last):
        start, end = table[ENTRY_START, index], table[ENTRY_END, index]
        if start < 0 or end > data.size or end - start < _HEADER:
            return index
        if (int64(data[start]) << 8 | int64(data[start + 1])) != _MAGIC:
            return index
        at = start + _HEADER
        stop = at + read_u32(data, start + 6)
        if stop > end:
            return index
        for row in range(METADATA, METADATA_ROWS):
            table[row, index] = 0
        table[METADATA, index] = at
        table[PAYLOAD, index] = stop
        table[BATCH, index] = NO_BATCH
        table[SCHEMA, index] = table[KEY, index] = table[ORDERING, index] = -1
        if not _read_head(data, at, stop, table, index):
            return index
    return last


@kernel
def _read_head(data: Uint8Array, at: int, end: int, table: Int64Array, index: int) -> bool:
    required = 0
    while at < end:
        tag, at = read_tag(data, at, end)
        if at < 0:
            return False
        if tag & 7 == 2:
            start, at = read_span(data, at, end)
            if at < 0:
                return False
            if tag == 0x0A:
                required |= 1
            if tag == 0x22 and pair_spans(data, start, at)[0] < 0:
                return False
            _note_span(table, index, tag, start, at)
        elif tag & 7 == 0:
            value, at = read_varint(data, at, end)
            if at < 0:
                return False
            if tag == 0x10:
                required |= 2
            elif tag == 0x18:
                required |= 4
            _note_number(table, index, tag, value)
        else:
            at = skip_field(data, tag, at, end)
            if at < 0:
                return False
    _flag(table, index, CHUNK, table[FLAGS, index] & (_SEVERAL | _UUID) == (_SEVERAL | _UUID))
    return required == 7


@kernel
def _flag(table: Int64Array, index: int, flag: int, on: bool) -> None:
    table[FLAGS, index] = table[FLAGS, index] | flag if on else table[FLAGS, index] & ~flag


@kernel
def _note_span(table: Int64Array, index: int, tag: int, start: int, end: int) -> None:
    row = -1
    if tag == 0x0A:
        row = PRODUCER
    elif tag == 0x32:
        row = KEY
    elif tag == 0x82:
        row = SCHEMA
    elif tag == 0x92:
        row = ORDERING
    elif tag == 0x22:
        table[PAIRS, index] += 1
    elif tag == 0x6A:
        table[FLAGS, index] |= ENCRYPTED
    elif tag == 0xD2:
        table[FLAGS, index] |= _UUID
    if row >= 0:
        table[row, index] = start
        table[row + 1, index] = end


@kernel
def _note_number(table: Int64Array, index: int, tag: int, value: Any) -> None:
    if tag == 0x10:
        table[SEQUENCE, index] = int64(value)
    elif tag == 0x18:
        table[PUBLISH_TIME, index] = int64(value)
    elif tag == 0x40:
        # A kind that this protocol does not know counts as absent, as protobuf has it.
        if to_int32(value) >= 0 and to_int32(value) <= 4:
            table[COMPRESSION, index] = to_int32(value)
    elif tag == 0x48:
        table[PLAIN_SIZE, index] = int64(value & uint64(0xFFFFFFFF))
    elif tag == 0x58:
        table[BATCH, index] = to_int32(value)
    elif tag == 0x60:
        table[EVENT_TIME, index] = int64(value)
    elif tag == 0x88:
        _flag(table, index, BASE64_KEY, value != uint64(0))
    elif tag == 0xA0:
        table[FLAGS, index] |= MARKER
    elif tag == 0xC8:
        _flag(table, index, NULL_VALUE, value != uint64(0))
    elif tag == 0xD8:
        _flag(table, index, _SEVERAL, to_int32(value) > 1)


def scan_metadata(block: EntryBlock) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """Say of each entry whether it is encrypted or a chunk, and when it was published (milliseconds).

    An entry that cannot be read is neither, published at 0; `column_builder` then reports what is wrong.
    """
    table = np.zeros((METADATA_ROWS, len(block)), np.int64)
    table[:BLOCK_ROWS] = block.table
    at = 0
    while at < len(block):
        at = read_metadata(block.data, table, at, len(block))
        if at < len(block):
            table[FLAGS, at] = table[PUBLISH_TIME, at] = 0
            at += 1
    return table[FLAGS] & (ENCRYPTED | CHUNK) != 0, table[PUBLISH_TIME]
