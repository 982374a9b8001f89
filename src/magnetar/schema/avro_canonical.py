"""When two Avro schemas are the same to the registry: everything but documentation, aliases and spacing (10.4).

As in Apache Avro's equality: names, the order of fields, defaults, sort orders and further attributes count.
"""

from __future__ import annotations

import json
from typing import Any, assert_never

from magnetar.schema.avro_types import Array, Enum, Field, Fixed, Map, Primitive, Record, Schema, Union


def canonical(schema: Schema) -> str:
    """The same text for the same schema."""
    return json.dumps(_tree(schema, set()), sort_keys=True)


def _tree(schema: Schema, seen: set[str]) -> Any:
    if isinstance(schema, Primitive):
        return [schema.kind, schema.props]
    if isinstance(schema, Array):
        return ["array", _tree(schema.items, seen), schema.props]
    if isinstance(schema, Map):
        return ["map", _tree(schema.values, seen), schema.props]
    if isinstance(schema, Union):
        return ["union", [_tree(branch, seen) for branch in schema.branches]]
    if schema.name in seen:
        return schema.name
    seen.add(schema.name)
    if isinstance(schema, Enum):
        return ["enum", schema.name, schema.symbols, schema.props]
    if isinstance(schema, Fixed):
        return ["fixed", schema.name, schema.size, schema.props]
    if isinstance(schema, Record):
        return ["record", schema.name, [_field(field, seen) for field in schema.fields], schema.props]
    assert_never(schema)


def _field(field: Field, seen: set[str]) -> Any:
    default = [field.default] if field.has_default else []
    return [field.name, _tree(field.type, seen), default, field.order, field.props]
