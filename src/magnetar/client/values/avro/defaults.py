"""Defaults of Avro schemas, which are JSON, as the values that a decoder gives."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from magnetar.client.values.avro.logical_types import logical_type
from magnetar.schema_definitions.avro_types import (
    AvroArray,
    AvroEnum,
    AvroFixed,
    AvroMap,
    AvroPrimitive,
    AvroRecord,
    AvroSchema,
    AvroUnion,
)

Made = Mapping[str, Callable[[Any], Any]]
"""By the full names of records and enums: what makes the application's value of a dict or a symbol."""


def default_value(default: Any, schema: AvroSchema, made: Made | None = None) -> Callable[[], Any]:
    """Return what makes a default anew each time; in a union the first branch counts, as Avro has it."""

    def make() -> Any:
        return _value(default, schema, made or {})

    found = make()
    return make if isinstance(found, list | dict) or made else lambda: found


def _value(default: Any, schema: AvroSchema, made: Made) -> Any:
    if isinstance(schema, AvroUnion):
        return _value(default, schema.branches[0], made)
    if isinstance(schema, AvroArray):
        return [_value(one, schema.items, made) for one in default]
    if isinstance(schema, AvroMap):
        return {key: _value(one, schema.values, made) for key, one in default.items()}
    if isinstance(schema, AvroRecord):
        found = {one.name: _value(default.get(one.name, one.default), one.type, made) for one in schema.fields}
        return made[schema.name](found) if schema.name in made else found
    if isinstance(schema, AvroEnum):
        return made[schema.name](default) if schema.name in made else default
    if default is None:
        return None
    plain = _plain(default, schema)
    logical = logical_type(schema)
    return plain if logical is None else logical.value(plain)


def _plain(default: Any, schema: AvroPrimitive | AvroFixed) -> Any:
    if schema.kind in ("bytes", "fixed"):
        return default.encode("latin-1")
    if schema.kind in ("float", "double"):
        return float(default)
    if schema.kind in ("int", "long") and isinstance(default, float):
        return int(default)
    return default
