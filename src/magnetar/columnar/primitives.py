"""Values of the primitive schema types, as Pulsar's Java client writes them: big-endian, of one size each.

| schema | bytes | Arrow |
| --- | --- | --- |
| BOOLEAN, INT8, INT16, INT32, INT64, FLOAT, DOUBLE | 1, 1, 2, 4, 8, 4, 8 | the same |
| DATE | milliseconds since 1970, 8 | date32, as in the JVM connector |
| TIMESTAMP | milliseconds since 1970, 8 | timestamp with UTC |
| TIME | milliseconds, 8 | int64 |
| INSTANT | seconds since 1970, 8, and nanoseconds, 4 | timestamp with UTC |
| LOCAL_DATE | days since 1970, 8 | date32 |
| LOCAL_TIME | nanoseconds of the day, 8 | int64 |
| LOCAL_DATE_TIME | days since 1970, 8, and nanoseconds of the day, 8 | timestamp without zone |

Spark has no column for a time of the day yet, hence the two numbers. Timestamps have microseconds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]  # publishes no types
import pyarrow.compute as pc  # type: ignore[import-untyped]  # the same

from magnetar.columnar.byte_columns import offsets_and_bytes
from magnetar.columnar.values import Decoded, Runs, UnreadableValue
from magnetar.model.errors import InvalidValueError
from magnetar.model.schemas import SchemaType

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Raw = NDArray[np.uint8]

_UTC: Final = pa.timestamp("us", tz="UTC")
_DAY_MILLIS: Final = 86_400_000
_DAY_MICROS: Final = 86_400_000_000
_MICROS_MAX: Final = (1 << 63) - 1
_DAYS_MAX: Final = (1 << 31) - 1


class _Kind(NamedTuple):
    size: int
    arrow: Any
    make: Callable[[Raw], NDArray[Any]]
    """Rows of ``size`` bytes to numbers, in the form in which Arrow keeps the type."""
    most: int = 0
    """A value whose first number is larger, or smaller than its negative, has no place in Arrow's type; 0: none is."""


def _numbers(kind: str) -> Callable[[Raw], NDArray[Any]]:
    return lambda raw: raw.view(f">{kind}").reshape(-1).astype(kind)


def _long(raw: Raw, start: int = 0, kind: str = "i8") -> NDArray[Any]:
    width = np.dtype(kind).itemsize
    return np.ascontiguousarray(raw[:, start : start + width]).view(f">{kind}").reshape(-1).astype("i8")


KINDS: Final[dict[SchemaType, _Kind]] = {
    SchemaType.BOOLEAN: _Kind(1, pa.bool_(), lambda raw: raw.reshape(-1) != 0),
    SchemaType.INT8: _Kind(1, pa.int8(), _numbers("i1")),
    SchemaType.INT16: _Kind(2, pa.int16(), _numbers("i2")),
    SchemaType.INT32: _Kind(4, pa.int32(), _numbers("i4")),
    SchemaType.INT64: _Kind(8, pa.int64(), _numbers("i8")),
    SchemaType.FLOAT: _Kind(4, pa.float32(), _numbers("f4")),
    SchemaType.DOUBLE: _Kind(8, pa.float64(), _numbers("f8")),
    SchemaType.DATE: _Kind(
        8, pa.date32(), lambda raw: (_long(raw) // _DAY_MILLIS).astype("i4"), _DAYS_MAX * _DAY_MILLIS
    ),
    SchemaType.TIME: _Kind(8, pa.int64(), _numbers("i8")),
    SchemaType.TIMESTAMP: _Kind(8, _UTC, lambda raw: _long(raw) * 1000, _MICROS_MAX // 1000),
    SchemaType.INSTANT: _Kind(
        12,
        _UTC,
        lambda raw: _long(raw) * 1_000_000 + _long(raw, 8, "i4") // 1000,
        # The nanoseconds may be anything that 4 bytes are, which is less than three seconds.
        _MICROS_MAX // 1_000_000 - 3,
    ),
    SchemaType.LOCAL_DATE: _Kind(8, pa.date32(), lambda raw: _long(raw).astype("i4"), _DAYS_MAX),
    SchemaType.LOCAL_TIME: _Kind(8, pa.int64(), _numbers("i8")),
    SchemaType.LOCAL_DATE_TIME: _Kind(
        16,
        pa.timestamp("us"),
        lambda raw: _long(raw) * _DAY_MICROS + _long(raw, 8) // 1000,
        # The time of the day may be anything that 8 bytes are, which is less than 300 years.
        _MICROS_MAX // _DAY_MICROS - 300 * 366,
    ),
}


_WRITTEN: Final[dict[SchemaType, str]] = {
    SchemaType.BOOLEAN: "u1",
    SchemaType.INT8: "i1",
    SchemaType.INT16: "i2",
    SchemaType.INT32: "i4",
    SchemaType.INT64: "i8",
    SchemaType.FLOAT: "f4",
    SchemaType.DOUBLE: "f8",
    SchemaType.DATE: "i8",
    SchemaType.TIMESTAMP: "i8",
    SchemaType.LOCAL_DATE: "i8",
}
WRITABLE: Final = tuple(_WRITTEN)


def write_primitives(type_: SchemaType, column: Any, name: str = "value") -> Any:
    """Return a column as values (pa.BinaryArray). Raises InvalidValueError if its type does not fit."""
    kind, raw = KINDS[type_], np.dtype(_WRITTEN[type_])
    try:
        whole = column.cast(kind.arrow)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise InvalidValueError(f"column {name!r} is {column.type}, which is no {type_.name}: {error}") from None
    if pa.types.is_date(kind.arrow):
        whole = whole.cast(pa.int32())
    elif not pa.types.is_floating(kind.arrow):
        whole = whole.cast(pa.int64() if pa.types.is_timestamp(kind.arrow) else kind.arrow)
    zero = False if pa.types.is_boolean(whole.type) else 0
    numbers = pc.fill_null(whole, zero).to_numpy(zero_copy_only=False).astype(raw if raw.kind != "u" else "u1")
    if type_ is SchemaType.DATE:
        numbers = numbers * _DAY_MILLIS
    elif type_ is SchemaType.TIMESTAMP:
        numbers = numbers // 1000
    there = whole.is_valid().to_numpy(zero_copy_only=False)
    data = np.ascontiguousarray(numbers[there]).astype(raw.newbyteorder(">")).view(np.uint8)
    ends = np.zeros(len(whole) + 1, np.int32)
    np.cumsum(there * kind.size, out=ends[1:])
    bitmap = pa.py_buffer(np.packbits(there, bitorder="little"))
    return pa.Array.from_buffers(pa.binary(), len(whole), [bitmap, pa.py_buffer(ends), pa.py_buffer(data)])


class Primitives:
    """Reads values of one of `KINDS`; implements `magnetar.columnar.values.Values`."""

    needs_keys = False
    record = False

    def __init__(self, type_: SchemaType) -> None:
        self._type = type_
        self._kind = KINDS[type_]
        self.schema: Any = pa.schema([pa.field("value", self._kind.arrow)])

    def read(self, values: Any, runs: Runs, keys: Any = None) -> Decoded:
        """Decode ``values``; one of another size does not fit."""
        size, arrow, make, most = self._kind
        ends, data = offsets_and_bytes(values)
        there = values.is_valid().to_numpy(zero_copy_only=False)
        fits = there & (np.diff(ends) == size)
        starts = ends[:-1][fits]
        dense = len(starts) * size == len(data)
        raw = data.reshape(-1, size) if dense else data[starts[:, None] + np.arange(size)]
        far = np.zeros(len(values), np.bool_)
        if most:
            first = _long(raw)
            far[fits] = (first > most) | (first < -most)
        numbers = make(raw)
        if not fits.all():
            found = np.zeros(len(values), numbers.dtype)
            found[fits] = numbers
            numbers = found
        column = pa.array(numbers, mask=~fits | far)
        unreadable = [
            UnreadableValue(
                int(row),
                f"a {self._type.name} that is further from 1970 than a {arrow} can be"
                if far[row]
                else f"{ends[row + 1] - ends[row]} bytes are no {self._type.name}, which has {size}",
            )
            for row in np.flatnonzero(there & ~fits | far)
        ]
        return Decoded([column.cast(arrow) if column.type != arrow else column], unreadable)
