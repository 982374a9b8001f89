"""Columns of bytes: an Arrow array as its offsets and bytes, without a copy, and back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]  # publishes no types

if TYPE_CHECKING:
    from numpy.typing import NDArray


def offsets_and_bytes(values: Any) -> tuple[NDArray[np.int32], NDArray[np.uint8]]:
    """Return the offsets of a pa.BinaryArray (one more than values) and the bytes they count in, without a copy."""
    _, ends, data = values.buffers()
    count = len(values)
    if not count or ends is None:
        return np.zeros(count + 1, np.int32), np.zeros(0, np.uint8)
    offsets = np.frombuffer(ends, np.int32)[values.offset : values.offset + count + 1]
    values_data = np.frombuffer(data, np.uint8) if data is not None and data.size else np.zeros(0, np.uint8)
    return offsets, values_data[: offsets[-1]]


def binary_array(data: NDArray[np.uint8], offsets: NDArray[np.int32], present: NDArray[np.uint8] | None = None) -> Any:
    """Return Arrow binary over these very buffers."""
    bitmap = None
    if present is not None and not present.all():
        bitmap = pa.py_buffer(np.packbits(present, bitorder="little"))
    return pa.Array.from_buffers(pa.binary(), len(offsets) - 1, [bitmap, pa.py_buffer(offsets), pa.py_buffer(data)])


def grown(array: NDArray[Any], extra: int = 0) -> NDArray[Any]:
    """Return an array twice as long in its last dimension, with what this one held."""
    *outer, room = array.shape
    wider = np.empty((*outer, 2 * room + extra), array.dtype)
    wider[..., :room] = array
    return wider
