"""Defaults of Avro schemas, which are JSON, as the values that Arrow takes."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any, Final

from magnetar.columnar.avro.shape import Shape, members_of
from magnetar.schema_definitions.avro_types import (
    AvroArray,
    AvroFixed,
    AvroMap,
    AvroPrimitive,
    AvroRecord,
    AvroSchema,
    AvroUnion,
)

_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def default_of(value: Any, schema: AvroSchema, shape: Shape) -> Any:
    """Return the value that Arrow takes for a default; for a union the first branch counts, as Avro has it."""
    if isinstance(schema, AvroUnion):
        first = schema.branches[0]
        if first.kind == "null":
            return None
        if shape.storage == "union":
            index = members_of(schema).index(first)
            return {f"member{index}": default_of(value, first, shape.children[index])}
        return default_of(value, first, shape)
    if isinstance(schema, AvroRecord):
        pairs = zip(schema.fields, shape.children, strict=True)
        return {one.name: default_of(value.get(one.name, one.default), one.type, child) for one, child in pairs}
    if isinstance(schema, AvroArray):
        return [default_of(one, schema.items, shape.children[0]) for one in value]
    if isinstance(schema, AvroMap):
        return [(key, default_of(one, schema.values, shape.children[1])) for key, one in value.items()]
    if isinstance(schema, AvroPrimitive | AvroFixed) and schema.kind in ("bytes", "fixed"):
        return _default_bytes(value, shape)
    return _number(value, schema, shape)


def _default_bytes(text: str, shape: Shape) -> Any:
    raw = text.encode("latin-1")
    if shape.storage != "decimal":
        return raw
    return Decimal(int.from_bytes(raw, "big", signed=True)).scaleb(-shape.arrow.scale)


def _number(value: Any, schema: AvroSchema, shape: Shape) -> Any:
    logical = schema.props.get("logicalType") if isinstance(schema, AvroPrimitive) else None
    if shape.storage == "millis":
        value = int(value) * 1000
    if isinstance(logical, str) and "timestamp-" in logical and shape.storage in ("long", "millis"):
        moment = _EPOCH + dt.timedelta(microseconds=int(value))
        return moment if shape.arrow.tz else moment.replace(tzinfo=None)
    if logical == "date" and shape.storage == "int":
        return dt.date(1970, 1, 1) + dt.timedelta(days=value)
    if shape.storage in ("int", "long") and isinstance(value, float):
        return int(value)
    return value
