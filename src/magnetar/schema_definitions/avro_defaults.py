"""Whether a default value fits its type, by the rules of Apache Avro 1.11: in a union that of the first branch."""

from __future__ import annotations

from typing import Any, assert_never

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

_NUMBERS = frozenset({"int", "long", "float", "double"})


def misfit(value: Any, schema: AvroSchema, depth: int = 0) -> str | None:
    """Say why ``value`` is no default of that type; None if it is one."""
    if isinstance(schema, AvroUnion):
        if not schema.branches:
            return "an empty union has no default"
        return misfit(value, schema.branches[0], depth + 1)
    if isinstance(schema, AvroPrimitive):
        return None if _fits(value, schema.kind) else _no(value, schema)
    if isinstance(schema, AvroEnum):
        return None if value in schema.symbols else _no(value, schema)
    if isinstance(schema, AvroFixed):
        return None if isinstance(value, str) else _no(value, schema)
    if isinstance(schema, AvroArray):
        if not isinstance(value, list):
            return _no(value, schema)
        return _first(misfit(item, schema.items, depth + 1) for item in value)
    if isinstance(schema, AvroMap):
        if not isinstance(value, dict):
            return _no(value, schema)
        return _first(misfit(item, schema.values, depth + 1) for item in value.values())
    if isinstance(schema, AvroRecord):
        if not isinstance(value, dict):
            return _no(value, schema)
        # a record without end needs a default without end, so the value bounds the recursion unless defaults do not
        if depth > 100:
            return f"the default of {describe(schema)} contains itself"
        return _first(_field_misfit(field, value, depth) for field in schema.fields)
    assert_never(schema)


def _field_misfit(field: Any, value: dict[str, Any], depth: int) -> str | None:
    if field.name in value and value[field.name] is not None:
        return misfit(value[field.name], field.type, depth + 1)
    if field.has_default:
        return misfit(field.default, field.type, depth + 1)
    if field.name in value:
        return misfit(None, field.type, depth + 1)
    return f"the default lacks field {field.name}, which has no default either"


def _fits(value: Any, kind: str) -> bool:
    if kind == "null":
        return value is None
    if kind == "boolean":
        return isinstance(value, bool)
    if kind in _NUMBERS:
        return isinstance(value, int | float) and not isinstance(value, bool)
    return isinstance(value, str)


def _no(value: Any, schema: AvroSchema) -> str:
    shown = repr(value)
    return f"default {shown if len(shown) <= 60 else shown[:60] + '...'} is not of type {describe(schema)}"


def _first(problems: Any) -> str | None:
    return next((problem for problem in problems if problem is not None), None)
