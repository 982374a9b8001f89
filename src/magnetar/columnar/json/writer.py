"""Writes columns as JSON values by polars, a line per row; moments and dates are numbers, as their Avro schema says."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import polars
import pyarrow as pa  # type: ignore[import-untyped]  # publishes no types
import pyarrow.compute as pc  # type: ignore[import-untyped]  # the same

from magnetar.model.errors import InvalidValueError

_END_OF_LINE = 10


def check_json(columns: Any) -> None:
    """Check a pa.Schema or the fields of a struct. Raises InvalidValueError for types that JSON does not have."""
    for one in columns:
        _as_written(one.type, one.name)


def _as_written(arrow: Any, name: str) -> Any:
    if pa.types.is_timestamp(arrow):
        return pa.int64()
    if pa.types.is_date(arrow):
        return pa.int32()
    if pa.types.is_list(arrow):
        return pa.list_(_as_written(arrow.value_type, name))
    if pa.types.is_struct(arrow):
        return pa.struct([pa.field(one.name, _as_written(one.type, f"{name}.{one.name}")) for one in arrow])
    if pa.types.is_binary(arrow) or pa.types.is_decimal(arrow) or pa.types.is_map(arrow):
        raise InvalidValueError(
            f"column {name!r} is {arrow}, which is not written as JSON; make it a string or a struct, or write "
            "to_json(...) with schema=string"
        )
    return arrow


def write_json(columns: dict[str, Any], present: Any) -> Any:
    """Return the values as pa.BinaryArray; ``present`` (NDArray[bool]) is false where a value is null.

    Raises InvalidValueError for NaN and infinities, which JSON has no numbers for.
    """
    for name, column in columns.items():
        _check_finite(column, name)
    plain = {name: _plain(column, _as_written(column.type, name)) for name, column in columns.items()}
    out = io.BytesIO()
    polars.DataFrame({name: polars.from_arrow(column) for name, column in plain.items()}).write_ndjson(out)
    written = np.frombuffer(out.getvalue(), np.uint8)
    # In JSON a line's end inside a string is escaped.
    lines = np.flatnonzero(written == _END_OF_LINE)
    ends = np.zeros(len(present) + 1, np.int32)
    ends[1:] = lines + 1
    values = pa.Array.from_buffers(pa.binary(), len(present), [None, pa.py_buffer(ends), pa.py_buffer(written)])
    return pc.binary_slice(values, 0, -1).take(pa.array(np.arange(len(present)), mask=~present))


def _check_finite(column: Any, name: str) -> None:
    if pa.types.is_floating(column.type):
        if pc.any(pc.invert(pc.is_finite(column))).as_py():
            raise InvalidValueError(
                f"column {name!r} has NaN or an infinity, which is no number of JSON; make it null, or write "
                "it with schema=avro"
            )
    elif pa.types.is_list(column.type):
        _check_finite(column.flatten(), name)
    elif pa.types.is_struct(column.type):
        for field, child in zip(column.type, column.flatten(), strict=True):
            _check_finite(child, f"{name}.{field.name}")


def _plain(column: Any, arrow: Any) -> Any:
    """Return the column with moments as numbers, also inside lists and structs."""
    if column.type == arrow:
        return column
    if pa.types.is_timestamp(column.type):
        return column.cast(pa.timestamp("us", column.type.tz)).cast(pa.int64())
    if pa.types.is_list(arrow):
        valid, ends = column.buffers()[:2]
        items = _plain(column.values, arrow.value_type)
        return pa.Array.from_buffers(arrow, len(column), [valid, ends], column.null_count, column.offset, [items])
    if pa.types.is_struct(arrow):
        children = [_plain(column.field(index), field.type) for index, field in enumerate(arrow)]
        return pa.StructArray.from_arrays(children, fields=list(arrow), mask=column.is_null())
    return column.cast(arrow)
