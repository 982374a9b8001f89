"""Arrow's types in Spark's DDL, for schemas that Spark receives as text."""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa  # type: ignore[import-untyped]  # publishes no types

from magnetar.model.errors import InvalidValueError

_NAMES: Final[dict[Any, str]] = {
    pa.binary(): "binary",
    pa.string(): "string",
    pa.bool_(): "boolean",
    pa.int8(): "tinyint",
    pa.int16(): "smallint",
    pa.int32(): "int",
    pa.int64(): "bigint",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.date32(): "date",
    pa.timestamp("us", tz="UTC"): "timestamp",
    pa.timestamp("us"): "timestamp_ntz",
}


def sql_type(arrow: Any) -> str:
    """Return ``array<struct<`a`:int>>`` and the like. Raises InvalidValueError for types that Spark does not have."""
    if (name := _NAMES.get(arrow)) is not None:
        return name
    if pa.types.is_decimal128(arrow):
        return f"decimal({arrow.precision},{arrow.scale})"
    if pa.types.is_list(arrow):
        return f"array<{sql_type(arrow.value_type)}>"
    if pa.types.is_map(arrow):
        return f"map<{sql_type(arrow.key_type)},{sql_type(arrow.item_type)}>"
    if pa.types.is_struct(arrow):
        return f"struct<{','.join(f'{quoted(field.name)}:{sql_type(field.type)}' for field in arrow)}>"
    raise InvalidValueError(f"Arrow's type {arrow} has no counterpart in Spark")


def quoted(name: str) -> str:
    """Return a column's name quoted, as Spark's DDL takes any name."""
    return f"`{name.replace('`', '``')}`"


def sql_columns(schema: Any) -> str:
    """Return the columns of a whole pa.Schema."""
    return ", ".join(f"{quoted(field.name)} {sql_type(field.type)}" for field in schema)
