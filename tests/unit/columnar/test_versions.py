"""Values of several writers: those whose schema has another type are not read, and the others stay in their places."""

from __future__ import annotations

import json

import pyarrow as pa  # type: ignore[import-untyped]  # publishes no types

from magnetar.columnar.json.reader import Json
from magnetar.model.schemas import SchemaDefinition, SchemaType
from magnetar.schema_definitions.avro import parse

SCHEMA = parse(json.dumps({"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]}).encode())
OURS, OTHER = (0).to_bytes(8, "big"), (1).to_bytes(8, "big")
VALUES = pa.array([b'{"a":1}', b'{"a":2}', None, b'{"a":4}', b'{"a":5}'], pa.binary())
RUNS = [(1, OURS), (2, OTHER), (1, OURS), (1, None)]


def writers(version: bytes) -> SchemaDefinition:
    return SchemaDefinition(SchemaType.JSON if version == OURS else SchemaType.AVRO, b"")


def test_values_of_another_type_have_a_reason_and_no_columns() -> None:
    found = Json(SCHEMA, writers, "version 0").read(VALUES, RUNS)
    assert found.columns[0].to_pylist() == [1, None, None, 4, 5]
    ((row, reason, new_schema),) = found.unreadable
    assert (row, new_schema) == (1, True)
    assert reason == "schema version 1 cannot be read as version 0: it is AVRO (rule: the type must stay)"


def test_without_a_registry_every_value_is_read() -> None:
    found = Json(SCHEMA).read(VALUES, RUNS)
    assert found.columns[0].to_pylist() == [1, 2, None, 4, 5]
    assert not found.unreadable
