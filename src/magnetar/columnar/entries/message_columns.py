"""Columns of one record batch made ready for the kernel that packs messages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]  # publishes no types

from magnetar.model.errors import InvalidValueError
from magnetar.protocol.message_keys import key_text

if TYPE_CHECKING:
    from numpy.typing import NDArray

_PRESENT: Final = 1
BASE64_TEXT: Final = 2


class ByteSpans(NamedTuple):
    """A column of bytes as a kernel reads it."""

    data: NDArray[np.uint8]
    ends: NDArray[np.int32]
    """One more than rows; row n is ``data[ends[n]:ends[n + 1]]``."""
    present: NDArray[np.uint8]
    """0: null. Empty: there is no such column."""

    def of(self, row: int) -> bytes | None:
        """Return the bytes of a row, None if it is null or there is no column."""
        if not self.present.size or not self.present[row]:
            return None
        return self.data[self.ends[row] : self.ends[row + 1]].tobytes()


def _array(buffer: Any, kind: str) -> NDArray[Any]:
    """Return a read-only array, like everything that kernels only read."""
    return np.frombuffer(memoryview(buffer if buffer is not None else b"").toreadonly(), kind)


_NO_BYTES: Final = _array(b"", "uint8")
_NO_ENDS: Final = _array(bytes(4), "int32")
_NO_NUMBERS: Final = _array(b"", "int64")
_NO_SPANS: Final = ByteSpans(_NO_BYTES, _NO_ENDS, _NO_BYTES)


def _frozen(array: NDArray[Any]) -> NDArray[Any]:
    array.flags.writeable = False
    return array


def _ends(array: Any, offsets: Any) -> NDArray[np.int32]:
    if offsets is None or not offsets.size:
        return _NO_ENDS
    return _array(offsets, "int32")[array.offset : array.offset + len(array) + 1]


def _present(array: Any) -> NDArray[np.uint8]:
    if not array.null_count:
        return _frozen(np.full(len(array), _PRESENT, np.uint8))
    return _frozen(array.is_valid().to_numpy(zero_copy_only=False).astype(np.uint8))


def spans_of(array: Any) -> ByteSpans:
    """Return the spans of an Arrow array of binary or string; None is a column that is not there."""
    if array is None:
        return _NO_SPANS
    if not (pa.types.is_binary(array.type) or pa.types.is_string(array.type)):
        raise InvalidValueError(f"a column of type {array.type} cannot be packed; see columnar.offset_width")
    _, ends, data = array.buffers()
    return ByteSpans(_array(data, "uint8"), _ends(array, ends), _present(array))


def keys_of(array: Any, *, base64: bool = False) -> ByteSpans:
    """Return the spans of keys as they travel: as base64 if they are no UTF-8 (rules of 3.8), or always."""
    if array is None or (pa.types.is_string(array.type) and not base64):
        return spans_of(array)
    if not base64:
        try:
            array.cast(pa.string())
            return spans_of(array)
        except pa.ArrowInvalid:
            pass
    texts = [None if one is None else key_text(one, base64_always=base64) for one in array.to_pylist()]
    found = spans_of(pa.array([None if one is None else one[0] for one in texts], pa.string()))
    marks = [0 if one is None else BASE64_TEXT if one[1] else _PRESENT for one in texts]
    return found._replace(present=_frozen(np.array(marks, np.uint8)))


class MessageColumns(NamedTuple):
    """Rows that can be packed; each column as long as the others, or empty."""

    values: ByteSpans
    keys: ByteSpans = _NO_SPANS
    ordering_keys: ByteSpans = _NO_SPANS
    event_times: NDArray[np.int64] = _NO_NUMBERS
    """Milliseconds; 0 is none."""
    deliver_at: NDArray[np.int64] = _NO_NUMBERS
    """Milliseconds; 0 is at once."""
    pair_ends: NDArray[np.int32] = _NO_ENDS
    pair_present: NDArray[np.uint8] = _NO_BYTES
    names: ByteSpans = _NO_SPANS
    texts: ByteSpans = _NO_SPANS

    def arrays(self) -> tuple[NDArray[Any], ...]:
        """Return the same columns one after the other, as `batch_kernel.pack_batch` takes them."""
        return (
            *self.values, *self.keys, *self.ordering_keys, self.event_times, self.deliver_at,
            self.pair_ends, self.pair_present, *self.names, *self.texts,
        )  # fmt: skip


def message_columns(
    values: Any,
    keys: Any = None,
    event_times: NDArray[np.int64] | None = None,
    properties: Any = None,
    ordering_keys: Any = None,
    deliver_at: NDArray[np.int64] | None = None,
    *,
    base64_keys: bool = False,
) -> MessageColumns:
    """Prepare Arrow arrays (binary or string; properties map<string, string>) and times in milliseconds."""
    found = MessageColumns(
        spans_of(values),
        keys_of(keys, base64=base64_keys),
        spans_of(ordering_keys),
        _NO_NUMBERS if event_times is None else _frozen(np.ascontiguousarray(event_times)),
        _NO_NUMBERS if deliver_at is None else _frozen(np.ascontiguousarray(deliver_at)),
    )
    if properties is None:
        return found
    return found._replace(
        pair_ends=_ends(properties, properties.buffers()[1]),
        pair_present=_present(properties),
        names=spans_of(properties.keys),
        texts=spans_of(properties.items),
    )
