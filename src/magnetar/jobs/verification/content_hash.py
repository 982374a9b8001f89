"""A 64-bit hash of a message's content: equal hashes mean equal messages (but for 1 in 2^64).

The content is key, ordering key, value, event time and properties; where a message stands, when it was published and by
whom are not part of it, so a message and its replica have one hash. The order of properties does not matter. The hashes
are made by a kernel from the Arrow buffers; sums of them (modulo 2^64) are the digests that `comparison` compares.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]  # publishes no types

from magnetar.columnar.kernels.compiled import kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

COLUMNS: Final = ("__key", "__orderingKey", "__eventTime", "__messageProperties")
"""Metadata columns that the hashes are made of, besides the value."""

_MULTIPLIER: Final = np.uint64(0x9E3779B97F4A7C15)
_MIXER: Final = np.uint64(0xD6E8FEB86659FD93)
_NULL: Final = np.uint64(0xA0761D6478BD642F)


def content_hashes(batch: Any) -> NDArray[np.uint64]:
    """Return one hash per row of a record batch that has ``value`` and `COLUMNS`."""
    out = np.zeros(batch.num_rows, np.uint64)
    for salt, name in enumerate(("value", "__key", "__orderingKey"), 1):
        _add(out, _byte_columns(batch.column(name)), salt)
    times = batch.column("__eventTime").cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
    _add_numbers(out, times.astype(np.int64), np.uint64(4))
    pairs = batch.column("__messageProperties")
    if len(pairs.keys):
        inner = np.zeros(len(pairs.keys), np.uint64)
        _add(inner, _byte_columns(pairs.keys), 5)
        _add(inner, _byte_columns(pairs.items), 6)
        _add_groups(out, inner, _offsets(pairs))
    return out


def _byte_columns(column: Any) -> tuple[Any, Any, Any]:
    """Return bytes, offsets and validity of a binary or string column."""
    data = column.buffers()[2]
    values = np.frombuffer(data, np.uint8) if data is not None and data.size else np.zeros(1, np.uint8)
    there = np.asarray(column.is_valid().to_numpy(zero_copy_only=False), np.bool_)
    return values, _offsets(column), there


def _offsets(column: Any) -> Any:
    return np.frombuffer(column.buffers()[1], np.int32)[column.offset : column.offset + len(column) + 1]


def _add(out: NDArray[np.uint64], values: tuple[Any, Any, Any], salt: int) -> None:
    _add_bytes(out, *values, np.uint64(salt))


@kernel
def _mixed(number: Any) -> Any:
    number ^= number >> np.uint64(32)
    number *= _MIXER
    number ^= number >> np.uint64(29)
    number *= _MULTIPLIER
    return number ^ (number >> np.uint64(32))


@kernel
def _add_bytes(out: Any, data: Any, offsets: Any, there: Any, salt: Any) -> None:
    for row in range(len(out)):
        if not there[row]:
            out[row] = _mixed(out[row] ^ _NULL ^ salt)
            continue
        at, end = offsets[row], offsets[row + 1]
        number = np.uint64(end - at) * _MULTIPLIER ^ salt
        while at + 8 <= end:
            word = np.uint64(0)
            for index in range(8):
                word |= np.uint64(data[at + index]) << np.uint64(8 * index)
            number = _mixed(number ^ word)
            at += 8
        word = np.uint64(0)
        for index in range(end - at):
            word |= np.uint64(data[at + index]) << np.uint64(8 * index)
        out[row] = _mixed(out[row] + _mixed(number ^ word))


@kernel
def _add_numbers(out: Any, numbers: Any, salt: Any) -> None:
    for row in range(len(out)):
        out[row] = _mixed(out[row] + _mixed(np.uint64(numbers[row]) ^ salt))


@kernel
def _add_groups(out: Any, inner: Any, offsets: Any) -> None:
    base = offsets[0]
    for row in range(len(out)):
        total = np.uint64(0)
        for pair in range(offsets[row] - base, offsets[row + 1] - base):
            total += inner[pair]
        if offsets[row + 1] > offsets[row]:
            out[row] = _mixed(out[row] + total)
