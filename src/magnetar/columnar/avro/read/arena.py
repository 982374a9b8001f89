"""The memory that `machine` fills, and Arrow arrays made of it without copying.

Room that is not used costs address space only, since the system gives pages when they are touched; so everything that
has one value per message is given room for all, and texts as much as the messages have bytes, within reason. Whatever
turns out too small is doubled and the kernel called again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]  # publishes no types

from magnetar.columnar.avro.read import instructions as k
from magnetar.columnar.avro.shape import Shape

if TYPE_CHECKING:
    from numpy.typing import NDArray

_WIDTHS: Final = {"boolean": 1, "int": 4, "enum": 4, "float": 4, "long": 8, "millis": 8, "double": 8, "decimal": 16}
_VARIABLE: Final = ("bytes", "text", "null")
_LISTS: Final = ("list", "map")
_ALIGNED: Final = 64
_ROOMY: Final = 4 << 20
"""Texts get all that could come, if that is not more than this for each."""


class Arena:
    """The buffers of all nodes of a program, in one block of memory."""

    def __init__(self, shapes: list[Shape], parallel: set[int], rows: int, size: int) -> None:
        """``parallel`` are the nodes with one value per row; ``size`` is how many bytes are going to be read."""
        self._shapes = shapes
        self.nodes: NDArray[np.int64] = np.zeros((len(shapes), k.NODE_COLUMNS), np.int64)
        for shape in shapes:
            node = self.nodes[shape.number]
            node[k.CAPACITY] = rows if shape.number in parallel else min(max(4 * rows, 64), max(size, rows, 64))
            if shape.storage in _VARIABLE:
                node[k.KIND] = k.VARIABLE
                node[k.BYTES_CAPACITY] = min(size, max(_ROOMY, 4 * size // len(shapes)))
            elif shape.storage in _LISTS:
                node[k.KIND] = k.NESTED
                node[k.CHILD] = shape.children[0].number
        self._memory = np.zeros(self._lay_out(), np.uint8)
        self._to_addresses(1)

    def _to_addresses(self, sign: int) -> None:
        """Turn offsets into the memory into addresses for the kernel (``sign`` 1), or back (-1)."""
        self.nodes[:, [k.VALID, k.DATA, k.BYTES_BASE]] += sign * self._memory.ctypes.data

    def _lay_out(self) -> int:
        """Give every node its place in the memory, and return how many bytes that takes."""
        size = 0
        for shape in self._shapes:
            node = self.nodes[shape.number]
            for column, needed in (
                (k.VALID, int(node[k.CAPACITY])),
                (k.DATA, _data_size(shape, int(node[k.CAPACITY]))),
                (k.BYTES_BASE, int(node[k.BYTES_CAPACITY])),
            ):
                node[column] = size
                size += -(-needed // _ALIGNED) * _ALIGNED
        return size

    def grow(self, number: int) -> None:
        """Double the room of a node."""
        self._to_addresses(-1)
        before, memory = self.nodes.copy(), self._memory
        node = self.nodes[number]
        node[k.CAPACITY] = 2 * node[k.CAPACITY] + 64
        node[k.BYTES_CAPACITY] *= 2
        self._memory = np.zeros(self._lay_out(), np.uint8)
        for shape in self._shapes:
            old, new = before[shape.number], self.nodes[shape.number]
            for column, used in (
                (k.VALID, int(old[k.FILL])),
                (k.DATA, _data_size(shape, int(old[k.FILL]))),
                (k.BYTES_BASE, int(old[k.BYTES_FILL])),
            ):
                self._memory[new[column] : new[column] + used] = memory[old[column] : old[column] + used]
        self._to_addresses(1)

    def array(self, shape: Shape, children: list[Any]) -> Any:
        """Return a node as an Arrow array; ``children`` are made already."""
        node = self.nodes[shape.number]
        count = int(node[k.FILL])
        valid = self._bytes(int(node[k.VALID]), count)
        nulls = count - int(np.count_nonzero(valid))
        bitmap = pa.py_buffer(np.packbits(valid, bitorder="little")) if nulls else None
        if shape.storage in ("struct", "union"):
            return pa.Array.from_buffers(shape.arrow, count, [bitmap], nulls, 0, children)
        at = int(node[k.DATA])
        data = pa.py_buffer(self._bytes(at, _data_size(shape, count)))
        if shape.storage in _VARIABLE:
            texts = pa.py_buffer(self._bytes(int(node[k.BYTES_BASE]), int(node[k.BYTES_FILL])))
            return pa.Array.from_buffers(shape.arrow, count, [bitmap, data, texts], nulls)
        if shape.storage == "list":
            return pa.Array.from_buffers(shape.arrow, count, [bitmap, data], nulls, 0, children)
        if shape.storage == "map":
            entries = pa.StructArray.from_arrays(children, ["key", "value"])
            return pa.Array.from_buffers(shape.arrow, count, [bitmap, data], nulls, 0, [entries])
        if shape.storage == "enum":
            indices = pa.Array.from_buffers(pa.int32(), count, [bitmap, data], nulls)
            return pa.array(shape.schema.symbols, pa.string()).take(indices)  # type: ignore[union-attr]  # an enum has
        if shape.storage == "boolean":
            data = pa.py_buffer(np.packbits(self._bytes(at, count), bitorder="little"))
        return pa.Array.from_buffers(shape.arrow, count, [bitmap, data], nulls)

    def _bytes(self, start: int, size: int) -> NDArray[np.uint8]:
        first = start - self._memory.ctypes.data
        return self._memory[first : first + size]


def _data_size(shape: Shape, count: int) -> int:
    if shape.storage in _VARIABLE or shape.storage in _LISTS:
        return 4 * (count + 1)
    return _WIDTHS.get(shape.storage, 0) * count
