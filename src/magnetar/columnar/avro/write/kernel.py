"""The loop that writes Avro: the counterpart of `avro.read.machine`, from Arrow's buffers to the bytes of records.

Instructions have three numbers (operation, node, argument), an option five. A *node* is an Arrow array; its row in
``nodes`` says where its buffers are. A value is at the same index in all arrays of a record; inside a list the index
runs over the list's items. When the output is full the loop stops before the record that did not fit.
"""

from __future__ import annotations

from typing import Final

from magnetar.columnar.kernels.compiled import kernel
from magnetar.columnar.kernels.memory import copied, load8, load32, load64, put, store8, store32, store64, word

OPTION: Final = 0
REQUIRED: Final = 1
BRANCH: Final = 2
INT: Final = 3
LONG: Final = 4
MILLIS: Final = 5
BOOLEAN: Final = 6
FOUR: Final = 7
EIGHT: Final = 8
BYTES: Final = 9
FIXED: Final = 10
DECIMAL: Final = 11
DECIMAL_FIXED: Final = 12
LIST: Final = 13
NEXT: Final = 14
END: Final = 15

VALID: Final = 0
"""Address of the bitmap, 0 if nothing is null."""
OFFSET: Final = 1
DATA: Final = 2
ENDS: Final = 3
NODE_COLUMNS: Final = 4

NO_ROOM: Final = -100
NULL: Final = -1
SIZE: Final = -2
SYMBOL: Final = -3

FRAME: Final = 24
DEPTH_MAX: Final = 64
_LONGEST: Final = 10


@kernel
def place(nodes: int, node: int, column: int) -> int:
    """Read a number of the table of nodes."""
    return word(nodes, node * NODE_COLUMNS + column)


@kernel
def is_null(nodes: int, node: int, index: int) -> bool:
    """Whether the value is null by its bitmap."""
    bits = place(nodes, node, VALID)
    at = index + place(nodes, node, OFFSET)
    return bits != 0 and (load8(bits + (at >> 3)) >> (at & 7)) & 1 == 0


@kernel
def write_long(at: int, value: int) -> int:
    """Write a zigzag varint and return where it ends. There must be room for `_LONGEST`."""
    left = (value << 1) ^ (value >> 63)
    while left & ~127:
        store8(at, (left & 127) | 128)
        left = (left >> 7) & 0x01FFFFFFFFFFFFFF
        at += 1
    store8(at, left)
    return at + 1


@kernel
def signed32(value: int) -> int:
    """Return the number with its sign, from four bytes that were loaded without it."""
    return value - ((value & 0x80000000) << 1)


@kernel
def _number(op: int, nodes: int, node: int, index: int, at: int) -> int:
    """Write a value of a fixed size."""
    index += place(nodes, node, OFFSET)
    data = place(nodes, node, DATA)
    if op == INT:
        value = signed32(load32(data + 4 * index))
        return SYMBOL if value < 0 and place(nodes, node, ENDS) else write_long(at, value)
    if op == LONG:
        return write_long(at, load64(data + 8 * index))
    if op == MILLIS:
        return write_long(at, load64(data + 8 * index) // 1000)
    if op == BOOLEAN:
        store8(at, (load8(data + (index >> 3)) >> (index & 7)) & 1)
        return at + 1
    if op == FOUR:
        store32(at, load32(data + 4 * index))
        return at + 4
    store64(at, load64(data + 8 * index))
    return at + 8


@kernel
def _span(op: int, nodes: int, node: int, size: int, index: int, at: int, limit: int) -> int:
    """Write bytes with their length, or of a fixed length."""
    ends = place(nodes, node, ENDS) + 4 * (index + place(nodes, node, OFFSET))
    start = load32(ends)
    length = load32(ends + 4) - start
    if op == FIXED and length != size:
        return SIZE
    if length + _LONGEST > limit - at:
        return NO_ROOM
    if op == BYTES:
        at = write_long(at, length)
    copied(place(nodes, node, DATA) + start, at, length)
    return at + length


@kernel
def _decimal(nodes: int, node: int, size: int, index: int, at: int) -> int:
    """Write 16 little-endian bytes as big-endian ones: as few as hold the number (``size`` 0), or ``size`` of them."""
    data = place(nodes, node, DATA) + 16 * (index + place(nodes, node, OFFSET))
    filler = 255 if load8(data + 15) >= 128 else 0
    needed = 16
    while needed > 1 and load8(data + needed - 1) == filler and (load8(data + needed - 2) >= 128) == (filler == 255):
        needed -= 1
    length = needed if size == 0 else size
    if needed > length:
        return SIZE
    if size == 0:
        at = write_long(at, length)
    for step in range(length):
        byte = length - 1 - step
        store8(at + step, load8(data + byte) if byte < 16 else filler)
    return at + length


@kernel
def _list(code: int, ip: int, nodes: int, frame: int, index: int, at: int) -> int:
    """Begin a list: write its count, and note in the frame where it ends; the first item is -1 if it is empty."""
    node = word(code, ip + 1)
    ends = place(nodes, node, ENDS) + 4 * (index + place(nodes, node, OFFSET))
    start, stop = load32(ends), load32(ends + 4)
    put(frame, 0, index)
    put(frame, 1, stop)
    put(frame, 2, start if stop > start else -1)
    return write_long(at, stop - start)


@kernel
def _record(code: int, nodes: int, row: int, at: int, limit: int, stack: int, state: int) -> int:
    """Write one record and return where it ends, or what is wrong (the instruction is in ``state``)."""
    ip, index, frame = 0, row, stack
    while True:
        op, node = word(code, ip), word(code, ip + 1)
        put(state, 0, ip)
        if limit - at < 2 * _LONGEST:
            return NO_ROOM
        if op == OPTION:
            null = is_null(nodes, node, index)
            at = write_long(at, word(code, ip + 2) if null else word(code, ip + 3))
            ip = word(code, ip + 4) if null else ip + 5
            continue
        if op == END:
            return at
        ip += 3
        if op == REQUIRED:
            if is_null(nodes, node, index):
                return NULL
        elif op == BRANCH:
            at = write_long(at, node)
        elif op == LIST:
            at = _list(code, ip - 3, nodes, frame, index, at)
            if word(frame, 2) < 0:
                ip = word(code, ip - 1)
            else:
                index = word(frame, 2)
                frame += FRAME
        elif op == NEXT:
            index += 1
            if index < word(frame - FRAME, 1):
                ip = word(code, ip - 1)
            else:
                frame -= FRAME
                index = word(frame, 0)
                at = write_long(at, 0)
        elif op <= EIGHT:
            at = _number(op, nodes, node, index, at)
        elif op <= FIXED:
            at = _span(op, nodes, node, word(code, ip - 1), index, at, limit)
        elif limit - at < word(code, ip - 1) + 3 * _LONGEST:
            return NO_ROOM
        else:
            at = _decimal(nodes, node, word(code, ip - 1), index, at)
        if at < 0:
            return at


@kernel
def encode(
    code: int, nodes: int, present: int, first: int, rows: int, out: int, filled: int, room: int, ends: int, state: int
) -> int:
    """Write rows from ``first`` on into ``out`` from ``filled`` on, and return the row where it stopped, or ``rows``.

    ``state`` has the instruction and what is wrong there (`NO_ROOM`: the output is full), and room for the stack.
    """
    at = out + filled
    for row in range(first, rows):
        if load8(present + row):
            done = _record(code, nodes, row, at, out + room, state + 16, state)
            if done < 0:
                put(state, 1, done)
                return row
            at = done
        store32(ends + 4 * (row + 1), at - out)
    return rows
