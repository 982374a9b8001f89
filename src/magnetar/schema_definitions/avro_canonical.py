"""When two Avro schemas are the same to the registry: everything but documentation, aliases and spacing (rule 10.4).

As in Apache Avro's equality: names, the order of fields, defaults, sort orders and further attributes count.
"""

from __future__ import annotations

import json
from typing import Any, assert_never

from magnetar.schema_definitions.avro_types import (
    AvroArray,
    AvroEnum,
    AvroField,
    AvroFixed,
    AvroMap,
    AvroPrimitive,
    AvroRecord,
    AvroSchema,
    AvroUnion,
)


def canonical(schema: AvroSchema) -> str:
    """Return a text that is the same for the same schema."""
    return json.dumps(_tree(schema, set()), sort_keys=True)


def _tree(schema: AvroSchema, seen: set[str]) -> Any:
    if isinstance(schema, AvroPrimitive):
        return [schema.kind, schema.props]
    if isinstance(schema, AvroArray):
        return ["array", _tree(schema.items, seen), schema.props]
    if isinstance(schema, AvroMap):
        return ["map", _tree(schema.values, seen), schema.props]
    if isinstance(schema, AvroUnion):
        return ["union", [_tree(branch, seen) for branch in schema.branches]]
    if schema.name in seen:
        return schema.name
    seen.add(schema.name)
    if isinstance(schema, AvroEnum):
        return ["enum", schema.name, schema.symbols, schema.props]
    if isinstance(schema, AvroFixed):
        return ["fixed", schema.name, schema.size, schema.props]
    if isinstance(schema, AvroRecord):
        return ["record", schema.name, [_field(field, seen) for field in schema.fields], schema.props]
    assert_never(schema)


def _field(field: AvroField, seen: set[str]) -> Any:
    default = [field.default] if field.has_default else []
    return [field.name, _tree(field.type, seen), default, field.order, field.props]
