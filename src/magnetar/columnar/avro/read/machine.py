"""The compiled loop that reads Avro: a small machine over bytes, which fills columns.

`program` makes its code from a writer's and a reader's schema. An instruction has three numbers (operation, node,
argument), a union two and one target per branch. A *node* is a column that is being filled, nested ones included. It
has a row in ``nodes`` (the constants from `FILL` on) and up to three places in one block of memory, the arena: a byte
per value that says whether it is there, the values or the ends of texts and lists, and the bytes of texts.

A record is read whole or not at all: when it does not fit, or a node has no room left, nodes go back to where they
stood before it. Without room the loop stops (`state[NODE]` says which node needs more) and can be called again from
that row; a record that does not fit becomes a null, and is noted in ``bad`` (row, reason, instruction).

All places are addresses (`columnar.kernels.memory`); a position in the bytes that is negative says what is wrong. Bytes
may be damaged or hostile, so every position is checked before it is read, and every number before it is used.
"""

from __future__ import annotations

from magnetar.columnar.avro.read.instructions import (
    BAD,
    BRANCH,
    BYTES_FILL,
    CAPACITY,
    CHILD,
    DATA,
    DEPTH_MAX,
    FILL,
    INSTRUCTION,
    JUMP,
    KIND,
    LAST_LEAF,
    LAST_SKIP,
    LEFT_OVER,
    LIST,
    NEXT,
    NO_ROOM,
    NODE,
    NODES,
    NULL,
    PLAIN,
    STATE_SIZE,
    STRUCT,
    TRUNCATED,
    UNION,
    VALID,
    VARIABLE,
)
from magnetar.columnar.avro.read.leaves import cell, put_cell, read_leaf, read_long, skip_leaf
from magnetar.columnar.kernels.compiled import kernel
from magnetar.columnar.kernels.memory import load8, load32, put, store8, store32, word


@kernel
def _empty(node: int, nodes: int, valid: int) -> int:
    """Append a null, a struct whose fields follow, or a list whose items are there (``valid`` is 1)."""
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
    """Go to the next item of an array or map. ``frame`` is (LIST instruction, items left); -1 left is the end."""
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
    """Read one value by the program from ``ip`` on."""
    frame = stack - 16
    while True:
        op = word(code, ip)
        put(state, INSTRUCTION, ip)
        status = 0
        if op <= LAST_LEAF:
            at = read_leaf(code, ip, at, end, nodes)
            ip += 3
        elif op <= LAST_SKIP:
            at = skip_leaf(code, ip, at, end)
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
    """Save how far all nodes are filled."""
    for node in range(count):
        put(saved, 2 * node, cell(nodes, node, FILL))
        put(saved, 2 * node + 1, cell(nodes, node, BYTES_FILL))


@kernel
def _go_back(nodes: int, count: int, saved: int) -> None:
    """Return all nodes to what `_note` saved."""
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
    """Read values from ``first`` on, and return the row where room was missing, or ``rows``.

    ``offsets`` are int32 into ``data``, one more than there are rows; ``present`` has a byte per row, 0 for a null.
    ``nulls`` is where the instructions for a null begin. ``state`` has `STATE_SIZE` numbers and, after them, room for
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
