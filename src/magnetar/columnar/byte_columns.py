"""The bytes of an Arrow array of values, where they lie."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


def offsets_and_bytes(values: Any) -> tuple[NDArray[np.int32], NDArray[np.uint8]]:
    """Where each value of a pa.BinaryArray begins (and the last ends), and the bytes in which that counts; no copy."""
    _, ends, data = values.buffers()
    count = len(values)
    if not count or ends is None:
        return np.zeros(count + 1, np.int32), np.zeros(0, np.uint8)
    offsets = np.frombuffer(ends, np.int32)[values.offset : values.offset + count + 1]
    octets = np.frombuffer(data, np.uint8) if data is not None and data.size else np.zeros(0, np.uint8)
    return offsets, octets[: offsets[-1]]
