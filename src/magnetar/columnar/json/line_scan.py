"""Checks whether a text in the place of a JSON value ends that place: ``{"v": <value>}`` has room for one value.

Arrow's reader, which judges the rest, would take ``{"a": 1}, "w": 3`` there for a value and a field of its own.
"""

from __future__ import annotations

from magnetar.columnar.kernels.compiled import Int32Array, Uint8Array, kernel

_QUOTE, _BACKSLASH, _COMMA = 34, 92, 44
_OPEN, _CLOSE, _OPEN_LIST, _CLOSE_LIST = 123, 125, 91, 93


@kernel
def first_broken_line(ends: Int32Array, data: Uint8Array) -> int:
    """Return the first value that closes what it did not open or has a comma after it; -1 if there is none."""
    for row in range(len(ends) - 1):
        depth = 0
        quoted = False
        at = ends[row]
        while at < ends[row + 1]:
            byte = data[at]
            if quoted:
                if byte == _BACKSLASH:
                    at += 1
                elif byte == _QUOTE:
                    quoted = False
            elif byte == _QUOTE:
                quoted = True
            elif byte in (_OPEN, _OPEN_LIST):
                depth += 1
            elif byte in (_CLOSE, _CLOSE_LIST):
                depth -= 1
                if depth < 0:
                    return row
            elif byte == _COMMA and depth == 0:
                return row
            at += 1
        if quoted or depth:
            return row
    return -1
