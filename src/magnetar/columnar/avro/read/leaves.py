"""Avro values that hold no others, read by kernels: numbers, texts, fixed bytes, decimals.

A position that is negative says what is wrong. Every position is checked before it is read, and every number before it
is used, because the bytes may be damaged or hostile.
"""

from __future__ import annotations

from typing import Final

from magnetar.columnar.avro.read.instructions import (
    BIG_DECIMAL,
    BOOLEAN,
    BYTES,
    BYTES_BASE,
    BYTES_CAPACITY,
    BYTES_FILL,
    CAPACITY,
    DATA,
    DECIMAL,
    DECIMAL_FIXED,
    DOUBLE,
    ENUM,
    FILL,
    FLOAT,
    FLOAT_DOUBLE,
    INT,
    LENGTH,
    LONG,
    LONG_DOUBLE,
    LONG_FLOAT,
    LONG_VARINT,
    LOST_SYMBOL,
    MANY_DIGITS,
    MILLIS,
    NO_BOOLEAN,
    NO_ROOM,
    NO_TEXT,
    NODE_COLUMNS,
    RANGE,
    SKIP_BYTES,
    SKIP_VARINT,
    SYMBOL,
    TEXT,
    TRUNCATED,
    VALID,
)
from magnetar.columnar.kernels.compiled import kernel
from magnetar.columnar.kernels.memory import (
    copied,
    load8,
    load32,
    load64,
    load_float,
    put,
    store8,
    store32,
    store_double,
    store_float,
    word,
)

_MILLIS_MAX: Final = 9_223_372_036_854_775
_INT_MAX: Final = 2_147_483_647


@kernel
def cell(nodes: int, node: int, column: int) -> int:
    """Read a number of the table of nodes."""
    return word(nodes, node * NODE_COLUMNS + column)


@kernel
def put_cell(nodes: int, node: int, column: int, value: int) -> None:
    """Write a number into the table of nodes."""
    put(nodes, node * NODE_COLUMNS + column, value)


@kernel
def read_long(at: int, end: int) -> tuple[int, int]:
    """Read a zigzag varint: the number and the position after it, or what is wrong."""
    value = 0
    for index in range(10):
        if at >= end:
            return 0, TRUNCATED
        byte = load8(at)
        at += 1
        value |= (byte & 0x7F) << (7 * index)
        if byte < 128:
            if index == 9 and byte > 1:
                return 0, LONG_VARINT
            return ((value >> 1) & 0x7FFFFFFFFFFFFFFF) ^ -(value & 1), at
    return 0, LONG_VARINT


@kernel
def is_text(at: int, end: int) -> bool:
    """Whether the bytes are UTF-8."""
    while at < end:
        byte = load8(at)
        if byte < 0x80:
            at += 1
            continue
        low, high = 0x80, 0xBF
        if 0xC2 <= byte <= 0xDF:
            more = 1
        elif 0xE0 <= byte <= 0xEF:
            more = 2
            if byte == 0xE0:
                low = 0xA0
            elif byte == 0xED:
                high = 0x9F
        elif 0xF0 <= byte <= 0xF4:
            more = 3
            if byte == 0xF0:
                low = 0x90
            elif byte == 0xF4:
                high = 0x8F
        else:
            return False
        if at + more >= end or load8(at + 1) < low or load8(at + 1) > high:
            return False
        for place in range(at + 2, at + more + 1):
            if load8(place) & 0xC0 != 0x80:
                return False
        at += more + 1
    return True


@kernel
def _varint_leaf(code: int, ip: int, at: int, end: int, slot: int, fill: int) -> int:
    """Read a value that is written as a varint into the place of its width."""
    op = word(code, ip)
    value, at = read_long(at, end)
    if at < 0:
        return at
    if op == LONG:
        put(slot, fill, value)
    elif op == INT:
        if value > _INT_MAX or value < -_INT_MAX - 1:
            return RANGE
        store32(slot + (fill << 2), value)
    elif op == MILLIS:
        if value > _MILLIS_MAX or value < -_MILLIS_MAX:
            return RANGE
        put(slot, fill, value * 1000)
    elif op == LONG_FLOAT:
        store_float(slot + (fill << 2), float(value))
    elif op == LONG_DOUBLE:
        store_double(slot + (fill << 3), float(value))
    else:
        table = word(code, ip + 2)
        if value < 0 or value >= word(code, table):
            return SYMBOL
        index = word(code, table + 1 + value)
        if index < 0:
            return LOST_SYMBOL
        store32(slot + (fill << 2), index)
    return at


@kernel
def _fixed_leaf(op: int, at: int, end: int, slot: int, fill: int) -> int:
    """Read a boolean, a float or a double."""
    if op == BOOLEAN:
        if at >= end:
            return TRUNCATED
        if load8(at) > 1:
            return NO_BOOLEAN
        store8(slot + fill, load8(at))
        return at + 1
    if op == DOUBLE:
        if end - at < 8:
            return TRUNCATED
        put(slot, fill, load64(at))
        return at + 8
    if end - at < 4:
        return TRUNCATED
    if op == FLOAT:
        store32(slot + (fill << 2), load32(at))
    else:
        store_double(slot + (fill << 3), load_float(at))
    return at + 4


@kernel
def _decimal(at: int, size: int, slot: int, fill: int) -> int:
    """Turn big-endian two's complement of any size into little-endian of sixteen bytes."""
    filler = 255 if size > 0 and load8(at) >= 128 else 0
    for place in range(at, at + size - 16):
        if load8(place) != filler:
            return BIG_DECIMAL
    if size > 16 and (load8(at + size - 16) >= 128) != (filler == 255):
        return BIG_DECIMAL
    base = slot + fill * 16
    for index in range(16):
        store8(base + index, load8(at + size - 1 - index) if index < size else filler)
    return at + size


@kernel
def _is_below(at: int, low: int, high: int) -> bool:
    """Whether sixteen little-endian bytes are a number that is nearer to zero than one of two words."""
    first, second = load64(at), load64(at + 8)
    if second < 0:
        first, second = -first, ~second + (1 if first == 0 else 0)
    # Words are compared as if they had no sign.
    turn = -(1 << 63)
    return second ^ turn < high ^ turn or (second == high and first ^ turn < low ^ turn)


@kernel
def _span_leaf(code: int, ip: int, at: int, end: int, nodes: int) -> int:
    """Read bytes: texts, fixed, decimals."""
    op, node, size = word(code, ip), word(code, ip + 1), word(code, ip + 2)
    table = size
    if op == DECIMAL_FIXED:
        size = word(code, table)
    if op in (BYTES, TEXT, DECIMAL):
        size, at = read_long(at, end)
        if at < 0:
            return at
        if size < 0:
            return LENGTH
    if size > end - at:
        return TRUNCATED
    slot, fill = cell(nodes, node, DATA), cell(nodes, node, FILL)
    if op in (DECIMAL, DECIMAL_FIXED):
        at = _decimal(at, size, slot, fill)
        if at >= 0 and not _is_below(slot + fill * 16, word(code, table + 1), word(code, table + 2)):
            return MANY_DIGITS
        return at
    start = cell(nodes, node, BYTES_FILL)
    if start + size > cell(nodes, node, BYTES_CAPACITY):
        return NO_ROOM
    seen = copied(at, cell(nodes, node, BYTES_BASE) + start, size)
    if op == TEXT and seen >= 128 and not is_text(at, at + size):
        return NO_TEXT
    put_cell(nodes, node, BYTES_FILL, start + size)
    store32(slot + ((fill + 1) << 2), start + size)
    return at + size


@kernel
def read_leaf(code: int, ip: int, at: int, end: int, nodes: int) -> int:
    """Read one value into its node: the position after it, or what is wrong."""
    op, node = word(code, ip), word(code, ip + 1)
    fill = cell(nodes, node, FILL)
    if fill >= cell(nodes, node, CAPACITY):
        return NO_ROOM
    if op <= ENUM:
        at = _varint_leaf(code, ip, at, end, cell(nodes, node, DATA), fill)
    elif op <= FLOAT_DOUBLE:
        at = _fixed_leaf(op, at, end, cell(nodes, node, DATA), fill)
    else:
        at = _span_leaf(code, ip, at, end, nodes)
    store8(cell(nodes, node, VALID) + fill, 1)
    put_cell(nodes, node, FILL, fill + 1)
    return at


@kernel
def skip_leaf(code: int, ip: int, at: int, end: int) -> int:
    """Return the position after a value that the reader's schema does not have."""
    op, size = word(code, ip), word(code, ip + 2)
    if op in (SKIP_VARINT, SKIP_BYTES):
        size, at = read_long(at, end)
        if at < 0 or op == SKIP_VARINT:
            return at
    if size < 0:
        return LENGTH
    return TRUNCATED if size > end - at else at + size
