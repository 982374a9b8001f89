"""An Avro schema as columns: which Arrow type each part has, and how it is laid out while it is being filled.

| Avro | Arrow |
| --- | --- |
| int, long, float, double, boolean, string, bytes | the same; fixed is binary, enum is string |
| date; timestamp-millis, timestamp-micros; local-timestamp-... | date32; timestamp with UTC; timestamp without zone |
| decimal up to 38 digits | decimal128; larger ones stay binary |
| time-millis, time-micros, uuid, duration | what they are made of |
| array, map, record | list, map, struct |
| union of null and one type | that type |
| union of int and long, or float and double | the larger one |
| any other union | struct of member0, member1, ... of which one is there, as in Spark's own Avro |

Everything can be null. A record that contains itself has no such shape and is refused by name.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa  # type: ignore[import-untyped]  # publishes no types

from magnetar.model.errors import InvalidValueError
from magnetar.schema_definitions.avro_types import (
    AvroArray,
    AvroEnum,
    AvroFixed,
    AvroMap,
    AvroPrimitive,
    AvroRecord,
    AvroSchema,
    AvroUnion,
    describe,
)

UTC_TIME: Final = pa.timestamp("us", tz="UTC")
LOCAL_TIME: Final = pa.timestamp("us")

_PLAIN: Final[dict[str, tuple[str, Any]]] = {
    "boolean": ("boolean", pa.bool_()),
    "int": ("int", pa.int32()),
    "long": ("long", pa.int64()),
    "float": ("float", pa.float32()),
    "double": ("double", pa.float64()),
    "bytes": ("bytes", pa.binary()),
    "string": ("text", pa.string()),
    "null": ("null", pa.string()),
}
_LOGICAL: Final[dict[tuple[str, str], tuple[str, Any]]] = {
    ("int", "date"): ("int", pa.date32()),
    ("long", "timestamp-millis"): ("millis", UTC_TIME),
    ("long", "timestamp-micros"): ("long", UTC_TIME),
    ("long", "local-timestamp-millis"): ("millis", LOCAL_TIME),
    ("long", "local-timestamp-micros"): ("long", LOCAL_TIME),
}
DECIMAL_DIGITS: Final = 38
_WIDER: Final = {frozenset({"int", "long"}): "long", frozenset({"float", "double"}): "double"}


@dataclass(eq=False, slots=True)
class Shape:
    """One column, nested or not, and the part of the schema that it stands for."""

    storage: str
    """boolean, int, long, millis, float, double, decimal, enum, bytes, text, null, list, map, struct or union."""
    arrow: Any
    schema: AvroSchema
    path: str
    children: list[Shape] = field(default_factory=list)
    number: int = -1
    """Its number among the nodes of a program."""

    def walk(self, visit: Callable[[Shape], None]) -> None:
        """Visit this shape and all inside it, parents first."""
        visit(self)
        for child in self.children:
            child.walk(visit)


def shape_of(schema: AvroSchema, path: str = "the value") -> Shape:
    """Return the column of a schema. Raises InvalidValueError if it has none."""
    return _shape(schema, path, ())


def fields_of(schema: AvroSchema) -> list[tuple[str, AvroSchema]]:
    """Return the columns of a value: those of a record, else one called ``value``."""
    if isinstance(schema, AvroRecord):
        return [(one.name, one.type) for one in schema.fields]
    return [("value", schema)]


def is_optional(schema: AvroSchema) -> bool:
    """Whether the schema admits null."""
    return schema.kind == "null" or (
        isinstance(schema, AvroUnion) and any(one.kind == "null" for one in schema.branches)
    )


def _shape(schema: AvroSchema, path: str, around: tuple[int, ...]) -> Shape:
    if isinstance(schema, AvroPrimitive):
        return _primitive(schema, path)
    if isinstance(schema, AvroEnum):
        return Shape("enum", pa.string(), schema, path)
    if isinstance(schema, AvroFixed):
        decimal = decimal_of(schema)
        return Shape("decimal" if decimal else "bytes", decimal or pa.binary(), schema, path)
    if isinstance(schema, AvroArray):
        item = _shape(schema.items, f"{path}[]", around)
        return Shape("list", pa.list_(item.arrow), schema, path, [item])
    if isinstance(schema, AvroMap):
        key = Shape("text", pa.string(), AvroPrimitive("string"), f"{path} (key)")
        value = _shape(schema.values, f"{path}{{}}", around)
        return Shape("map", pa.map_(pa.string(), value.arrow), schema, path, [key, value])
    if isinstance(schema, AvroUnion):
        return _union(schema, path, around)
    if id(schema) in around:
        raise InvalidValueError(
            f"{path}: {describe(schema)} contains itself, which has no columns; read it with value=binary"
        )
    inner = (*around, id(schema))
    children = [_shape(one.type, f"{path}.{one.name}", inner) for one in schema.fields]
    names = [one.name for one in schema.fields]
    return Shape("struct", _struct(names, children), schema, path, children)


def _struct(names: list[str], children: list[Shape]) -> Any:
    return pa.struct([pa.field(name, child.arrow) for name, child in zip(names, children, strict=True)])


def _primitive(schema: AvroPrimitive, path: str) -> Shape:
    logical = schema.props.get("logicalType")
    decimal = decimal_of(schema)
    if decimal is not None:
        return Shape("decimal", decimal, schema, path)
    plain = _PLAIN[schema.kind]
    storage, arrow = _LOGICAL.get((schema.kind, logical), plain) if isinstance(logical, str) else plain
    return Shape(storage, arrow, schema, path)


def decimal_of(schema: AvroSchema) -> Any:
    """Return Arrow's type of a decimal; None if the schema is none, or too large for 128 bits."""
    if not isinstance(schema, AvroPrimitive | AvroFixed) or schema.kind not in ("bytes", "fixed"):
        return None
    precision, scale = schema.props.get("precision"), schema.props.get("scale", 0)
    if schema.props.get("logicalType") != "decimal" or not isinstance(precision, int) or not isinstance(scale, int):
        return None
    return pa.decimal128(precision, scale) if 0 <= scale <= precision <= DECIMAL_DIGITS and precision else None


def _union(schema: AvroUnion, path: str, around: tuple[int, ...]) -> Shape:
    branches = members_of(schema)
    if not branches:
        return Shape("null", pa.string(), schema, path)
    wider = _WIDER.get(frozenset(branch.kind for branch in branches))
    if wider is not None and not any(branch.props for branch in branches if isinstance(branch, AvroPrimitive)):
        return _primitive(AvroPrimitive(wider), path)
    if len(branches) == 1:
        return _shape(branches[0], path, around)
    names = [f"member{index}" for index in range(len(branches))]
    children = [_shape(branch, f"{path}.{name}", around) for name, branch in zip(names, branches, strict=True)]
    return Shape("union", _struct(names, children), schema, path, children)


def members_of(schema: AvroUnion) -> list[AvroSchema]:
    """Return all branches but null."""
    return [branch for branch in schema.branches if branch.kind != "null"]
