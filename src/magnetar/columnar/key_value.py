"""KEY_VALUE (rule 10.13): two schemas in one, as the columns ``key`` and ``value``.

INLINE, both are in the value: ``[u32 size][key][u32 size][value]``, where a size of -1 is null. SEPARATED, the key is
the message's. A part that is a record becomes a struct. Each part is read with its own part of the writer's schema.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]  # publishes no types
import pyarrow.compute as pc  # type: ignore[import-untyped]  # the same

from magnetar.columnar.byte_columns import offsets_and_bytes
from magnetar.columnar.values import Decoded, Runs, UnreadableValue, Values

if TYPE_CHECKING:
    from numpy.typing import NDArray

_MISFIT = "does not fit KEY_VALUE: the sizes of key and value do not add up to the value's"


class KeyValueValues:
    """Reads pairs of key and value; implements `magnetar.columnar.values.Values`."""

    record = False

    def __init__(self, key: Values, value: Values, *, separated: bool) -> None:
        self.needs_keys = separated
        self._parts = (key, value)
        self.schema: Any = pa.schema([pa.field("key", _arrow(key)), pa.field("value", _arrow(value))])

    def read(self, values: Any, runs: Runs, keys: Any = None) -> Decoded:
        """Decode ``values``; one of which either part does not fit is null in both."""
        unreadable: dict[int, UnreadableValue] = {}
        if not self.needs_keys:
            keys, values, wrong = split_pairs(values)
            unreadable = {row: UnreadableValue(row, _MISFIT) for row in wrong}
        columns = []
        for name, part, given in zip(("key", "value"), self._parts, (keys, values), strict=True):
            found, bad = part.read(given, runs, None)
            for one in bad:
                unreadable.setdefault(one.row, one._replace(reason=f"{name}: {one.reason}"))
            columns.append(_column(part, found, given))
        if unreadable:
            gone = np.zeros(len(values), bool)
            gone[list(unreadable)] = True
            rows = pa.array(np.arange(len(values)), mask=gone)
            columns = [column.take(rows) for column in columns]
        return Decoded(columns, [unreadable[row] for row in sorted(unreadable)])


def _arrow(part: Values) -> Any:
    return pa.struct(list(part.schema)) if part.record else part.schema.field(0).type


def _column(part: Values, found: list[Any], given: Any) -> Any:
    if not part.record:
        return found[0]
    return pa.StructArray.from_arrays(found, fields=list(part.schema), mask=given.is_null())


def split_pairs(values: Any) -> tuple[Any, Any, list[int]]:
    """Split INLINE pairs into keys and values (pa.BinaryArrays), and rows that are no such pairs (null in both)."""
    ends, data = offsets_and_bytes(values)
    starts, stops = ends[:-1].astype(np.int64), ends[1:].astype(np.int64)
    there = values.is_valid().to_numpy(zero_copy_only=False)
    fits = there & (stops - starts >= 8)
    key_size = _sizes(data, np.where(fits, starts, 0), fits)
    value_at = starts + 4 + np.maximum(key_size, 0)
    fits &= (key_size >= -1) & (value_at + 4 <= stops)
    value_size = _sizes(data, np.where(fits, value_at, 0), fits)
    fits &= (value_size >= -1) & (value_at + 4 + np.maximum(value_size, 0) == stops)
    keys = _cut(data, starts + 4, key_size, fits)
    found = _cut(data, value_at + 4, value_size, fits)
    return keys, found, [int(row) for row in np.flatnonzero(there & ~fits)]


def join_pairs(keys: Any, values: Any) -> Any:
    """Join keys and values (pa.BinaryArrays) as INLINE pairs; null where both are."""
    parts = (_size_bytes(keys), pc.fill_null(keys, b""), _size_bytes(values), pc.fill_null(values, b""), b"")
    pairs = pc.binary_join_element_wise(*parts)
    return pc.if_else(pc.or_(keys.is_valid(), values.is_valid()), pairs, pa.scalar(None, pa.binary()))


def _size_bytes(parts: Any) -> Any:
    """Return the length of each part as four bytes, -1 for null."""
    sizes = pc.fill_null(pc.binary_length(parts), -1).to_numpy(zero_copy_only=False).astype(">i4")
    ends = np.arange(0, 4 * len(parts) + 1, 4, dtype=np.int32)
    return pa.Array.from_buffers(pa.binary(), len(parts), [None, pa.py_buffer(ends), pa.py_buffer(sizes.tobytes())])


def _sizes(data: NDArray[np.uint8], at: NDArray[np.int64], fits: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Read four bytes, big-endian, with a sign, where ``fits``; else -1."""
    found = np.full(len(at), -1, np.int64)
    places = at[fits]
    four = data[places[:, None] + np.arange(4)] if len(places) else np.zeros((0, 4), np.uint8)
    found[fits] = np.ascontiguousarray(four).view(">i4").reshape(-1)
    return found


def _cut(data: NDArray[np.uint8], at: NDArray[np.int64], sizes: NDArray[np.int64], fits: NDArray[np.bool_]) -> Any:
    """Return spans of the data as one array; null where they do not fit or have a negative size."""
    there = fits & (sizes >= 0)
    lengths = np.where(there, sizes, 0)
    offsets = np.zeros(len(at) + 1, np.int32)
    np.cumsum(lengths, out=offsets[1:])
    # Byte by byte: where each comes from is where its span begins, less where that will begin.
    source = np.repeat(at - offsets[:-1], lengths) + np.arange(offsets[-1])
    spans = np.ascontiguousarray(data[source])
    bitmap = pa.py_buffer(np.packbits(there, bitorder="little"))
    return pa.Array.from_buffers(pa.binary(), len(at), [bitmap, pa.py_buffer(offsets), pa.py_buffer(spans)])
