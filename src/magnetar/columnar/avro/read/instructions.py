"""What the machine that reads Avro understands: instructions, tables, and what may be wrong with a value."""

from __future__ import annotations

from typing import Final

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
MANY_DIGITS: Final = -12
NO_ROOM: Final = -100

DEPTH_MAX: Final = 64
"""Arrays and maps inside each other."""
