"""The loop that reads Avro: a small machine over bytes, compiled, which fills columns.

`avro_program` makes its code from a writer's and a reader's schema. An instruction has three numbers (operation, node,
argument), a union two and one target per branch. A *node* is a column that is being filled, nested ones included. It
has a row in ``nodes`` (the constants from `FILL` on) and up to three places in one block of memory, the arena: a byte
per value that says whether it is there, the values or the ends of texts and lists, and the bytes of texts.

A record is read whole or not at all: when it does not fit, or a node has no room left, nodes go back to where they
stood before it. Without room the loop stops (`state[NODE]` says who needs more) and can be called again from that row;
a record that does not fit becomes a null, and is noted in ``bad`` (row, reason, instruction).

All places are addresses (`columnar.kernels.memory`); a position in the bytes that is negative says what is wrong. Bytes
come from anybody, so every position is checked before it is read, and every number before it is used.
"""

from __future__ import annotations

from typing import Final

from magnetar.columnar.kernels.compiled import kernel
from magnetar.columnar.kernels.memory import (
    load8,
    load32,
    load64,
    load_float,
    store8,
    store32,
    store64,
    store_double,
    store_float,
)

# Instructions: numbers first, which are read from a varint.
INT: Final = 0
LONG: Final = 1
MILLIS: Final = 2
LONG_FLOAT: Final = 3
LONG_DOUBLE: Final = 4
ENUM: Final = 5
BOOLEAN: Final = 6
FLOAT: Final = 7
DOUBLE: Final = 8
FLOAT_DOUBLE: Final = 9
BYTES: Final = 10
TEXT: Final = 11
FIXED: Final = 12
DECIMAL: Final = 13
DECIMAL_FIXED: Final = 14
LAST_LEAF: Final = 14
SKIP_VARINT: Final = 20
SKIP_FIXED: Final = 21
SKIP_BYTES: Final = 22
LAST_SKIP: Final = 22
STRUCT: Final = 30
NULL: Final = 31
UNION: Final = 32
JUMP: Final = 33
LIST: Final = 34
NEXT: Final = 35
END: Final = 36

# Columns of the table of nodes.
FILL: Final = 0
CAPACITY: Final = 1
VALID: Final = 2
DATA: Final = 3
KIND: Final = 4
CHILD: Final = 5
BYTES_BASE: Final = 6
BYTES_CAPACITY: Final = 7
BYTES_FILL: Final = 8
NODE_COLUMNS: Final = 9

# Kinds of nodes, as far as a null has to be written for them.
PLAIN: Final = 0
VARIABLE: Final = 1
NESTED: Final = 2

# Where things stand in ``state``.
INSTRUCTION: Final = 0
NODE: Final = 1
BAD: Final = 2
NODES: Final = 3
STATE_SIZE: Final = 4

# What is wrong, as negative positions.
TRUNCATED: Final = -1
LONG_VARINT: Final = -2
LENGTH: Final = -3
BRANCH: Final = -4
SYMBOL: Final = -5
NO_TEXT: Final = -6
LEFT_OVER: Final = -7
RANGE: Final = -8
NO_BOOLEAN: Final = -9
BIG_DECIMAL: Final = -10
LOST_SYMBOL: Final = -11
NO_ROOM: Final = -100

DEPTH_MAX: Final = 64
"""Arrays and maps inside each other."""

_MILLIS_MAX: Final = 9_223_372_036_854_775
_INT_MAX: Final = 2_147_483_647


@kernel
def word(table: int, index: int) -> int:
    """Of a table of int64."""
    return load64(table + (index << 3))


@kernel
def put(table: int, index: int, value: int) -> None:
    """Into a table of int64."""
    store64(table + (index << 3), value)


@kernel
def cell(nodes: int, node: int, column: int) -> int:
    """Of the table of nodes."""
    return word(nodes, node * NODE_COLUMNS + column)


@kernel
def put_cell(nodes: int, node: int, column: int, value: int) -> None:
    """Into the table of nodes."""
    put(nodes, node * NODE_COLUMNS + column, value)


@kernel
def read_long(at: int, end: int) -> tuple[int, int]:
    """A zigzag varint and the position behind it, or what is wrong."""
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
    """Whether it is UTF-8."""
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
    """A value that is written as a varint, into the place of its width."""
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
    """A boolean, a float or a double."""
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
    """Big-endian two's complement of any size to little-endian of sixteen bytes."""
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
def copied(source: int, target: int, size: int) -> int:
    """Copy bytes; 128 or more if any of them is."""
    seen = 0
    for index in range(size):
        byte = load8(source + index)
        store8(target + index, byte)
        seen |= byte
    return seen


@kernel
def _span_leaf(code: int, ip: int, at: int, end: int, nodes: int) -> int:
    """Bytes: texts, fixed, decimals."""
    op, node, size = word(code, ip), word(code, ip + 1), word(code, ip + 2)
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
        return _decimal(at, size, slot, fill)
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
def _leaf(code: int, ip: int, at: int, end: int, nodes: int) -> int:
    """One value into its node; the position behind it, or what is wrong."""
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
def _skip(code: int, ip: int, at: int, end: int) -> int:
    """Behind a value that nobody wants."""
    op, size = word(code, ip), word(code, ip + 2)
    if op in (SKIP_VARINT, SKIP_BYTES):
        size, at = read_long(at, end)
        if at < 0 or op == SKIP_VARINT:
            return at
    if size < 0:
        return LENGTH
    return TRUNCATED if size > end - at else at + size


@kernel
def _empty(node: int, nodes: int, valid: int) -> int:
    """A null, a struct whose fields follow, or a list whose items are there (``valid`` is 1)."""
    fill = cell(nodes, node, FILL)
    if fill >= cell(nodes, node, CAPACITY):
        return NO_ROOM
    store8(cell(nodes, node, VALID) + fill, valid)
    kind = cell(nodes, node, KIND)
    if kind != PLAIN:
        stop = cell(nodes, node, BYTES_FILL) if kind == VARIABLE else cell(nodes, cell(nodes, node, CHILD), FILL)
        store32(cell(nodes, node, DATA) + ((fill + 1) << 2), stop)
    put_cell(nodes, node, FILL, fill + 1)
    return 0


@kernel
def _next(frame: int, at: int, end: int) -> int:
    """Sees to the next item of an array or map: ``frame`` is (LIST instruction, items left); -1 left is the end."""
    left = word(frame, 1)
    if left > 0:
        put(frame, 1, left - 1)
        return at
    count, at = read_long(at, end)
    if at >= 0 and count < 0:
        # The size of the block in bytes follows, for those who skip.
        count = -count
        at = read_long(at, end)[1]
    # An item has at least one byte; the program refuses others.
    if at >= 0 and (count < 0 or count > end - at):
        return TRUNCATED
    put(frame, 1, count - 1)
    return at


@kernel
def _record(code: int, ip: int, at: int, end: int, nodes: int, stack: int, state: int) -> int:
    """One value by the program from ``ip`` on."""
    frame = stack - 16
    while True:
        op = word(code, ip)
        put(state, INSTRUCTION, ip)
        status = 0
        if op <= LAST_LEAF:
            at = _leaf(code, ip, at, end, nodes)
            ip += 3
        elif op <= LAST_SKIP:
            at = _skip(code, ip, at, end)
            ip += 3
        elif op <= NULL:
            status = _empty(word(code, ip + 1), nodes, 1 if op == STRUCT else 0)
            ip += 3
        elif op == UNION:
            branch, at = read_long(at, end)
            if at >= 0 and (branch < 0 or branch >= word(code, ip + 1)):
                return BRANCH
            ip = word(code, ip + 2 + branch)
        elif op == JUMP:
            ip = word(code, ip + 1)
        elif op == LIST:
            frame += 16
            put(frame, 0, ip)
            put(frame, 1, 0)
            ip = word(code, ip + 2)
        elif op == NEXT:
            at = _next(frame, at, end)
            start = word(frame, 0)
            if at >= 0 and word(frame, 1) < 0:
                frame -= 16
                put(state, INSTRUCTION, start)
                status = _empty(word(code, start + 1), nodes, 1) if word(code, start + 1) >= 0 else 0
                ip += 3
            else:
                ip = start + 3
        else:
            return at if at == end else LEFT_OVER
        if at < 0:
            return at
        if status < 0:
            return status


@kernel
def _note(nodes: int, count: int, saved: int) -> None:
    """Where all nodes stand."""
    for node in range(count):
        put(saved, 2 * node, cell(nodes, node, FILL))
        put(saved, 2 * node + 1, cell(nodes, node, BYTES_FILL))


@kernel
def _go_back(nodes: int, count: int, saved: int) -> None:
    """To where they stood."""
    for node in range(count):
        put_cell(nodes, node, FILL, word(saved, 2 * node))
        put_cell(nodes, node, BYTES_FILL, word(saved, 2 * node + 1))


@kernel
def decode(
    data: int,
    offsets: int,
    present: int,
    rows: int,
    first: int,
    code: int,
    nulls: int,
    nodes: int,
    state: int,
    bad: int,
) -> int:
    """Values from ``first`` on; the row where it stopped for want of room, or ``rows``.

    ``offsets`` are int32 into ``data``, one more than there are rows; ``present`` has a byte per row, 0 for a null.
    ``nulls`` is where the instructions for a null begin. ``state`` has `STATE_SIZE` numbers and, behind them, room for
    the stack (two for each of `DEPTH_MAX`) and for two numbers per node.
    """
    stack = state + 8 * STATE_SIZE
    saved = stack + 16 * DEPTH_MAX
    count = word(state, NODES)
    for row in range(first, rows):
        _note(nodes, count, saved)
        wrong = failed = 0
        there = load8(present + row) != 0
        if there:
            start, stop = load32(offsets + 4 * row), load32(offsets + 4 * row + 4)
            wrong = min(_record(code, 0, data + start, data + stop, nodes, stack, state), 0)
            if wrong < 0:
                failed = word(state, INSTRUCTION)
                _go_back(nodes, count, saved)
        if (wrong < 0 or not there) and wrong != NO_ROOM and _record(code, nulls, 1, 1, nodes, stack, state) < 0:
            failed, wrong = word(state, INSTRUCTION), NO_ROOM
        if wrong == NO_ROOM:
            _go_back(nodes, count, saved)
            put(state, NODE, word(code, failed + 1))
            return row
        if wrong < 0:
            noted = bad + 24 * word(state, BAD)
            put(noted, 0, row)
            put(noted, 1, wrong)
            put(noted, 2, failed)
            put(state, BAD, word(state, BAD) + 1)
    return rows
