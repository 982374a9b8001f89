"""Texts that entries have in common (producer names, schema versions), numbered by a kernel as they come."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from magnetar.columnar.byte_columns import binary_array, grown
from magnetar.columnar.kernels.compiled import Int32Array, Int64Array, Uint8Array, kernel
from magnetar.columnar.kernels.protobuf_wire import copy, same

if TYPE_CHECKING:
    from numpy.typing import NDArray

_TEXTS: Final = 16
_TEXT_BYTES: Final = 1 << 10


@kernel
def distinct_spans(
    data: Uint8Array,
    table: Int64Array,
    row: int,
    target: int,
    first: int,
    last: int,
    known: Uint8Array,
    known_offsets: Int32Array,
    count: int,
) -> tuple[int, int]:
    """Number the texts ``table[row]`` to ``table[row + 1]`` of entries ``[first, last)`` into ``table[target]``.

    A text that is the same as the one before has its number; -1 is none. How many are known now, and the first entry
    for which there was no room.
    """
    for index in range(first, last):
        start, end = table[row, index], table[row + 1, index]
        if start < 0:
            table[target, index] = -1
            continue
        if count:
            at, stop = known_offsets[count - 1], known_offsets[count]
            if same(data, start, end, known, at, stop):
                table[target, index] = count - 1
                continue
        at = known_offsets[count] if count else 0
        if count + 2 > known_offsets.size or at + end - start > known.size:
            return count, index
        copy(data, start, end, known, at)
        known_offsets[count + 1] = at + end - start
        table[target, index] = count
        count += 1
    return count, last


class DistinctTexts:
    """Texts that entries have in common (producer names, schema versions), numbered as they come."""

    def __init__(self) -> None:
        self.data = np.empty(_TEXT_BYTES, np.uint8)
        self.offsets = np.zeros(_TEXTS, np.int32)
        self.count = 0

    def number(self, stored: NDArray[Any], table: NDArray[Any], row: int, target: int, first: int, last: int) -> None:
        while first < last:
            self.count, first = distinct_spans(
                stored, table, row, target, first, last, self.data, self.offsets, self.count
            )
            if first < last:
                self.data = grown(self.data, int(table[row + 1, first] - table[row, first]))
                self.offsets = grown(self.offsets)

    def array(self) -> Any:
        """The texts as Arrow binary, copied."""
        used = self.offsets[: self.count + 1].copy()
        return binary_array(self.data[: used[-1]].copy(), used)
