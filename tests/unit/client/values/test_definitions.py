"""What is registered for a class is what the official Python client and Java's client register for the same one."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, NotRequired, TypedDict

import pytest
from google.protobuf.timestamp_pb2 import Timestamp
from pulsar import schema as official  # type: ignore[import-untyped]  # the official client carries no types

from magnetar import schema
from tests.support.schema_records import Model, Shirt, declared


@pytest.mark.parametrize("in_order", [False, True])
@pytest.mark.parametrize("kind", ["AvroSchema", "JsonSchema"])
def test_records_have_the_official_definition(kind: str, in_order: bool) -> None:
    """Byte for byte; fields are sorted only if asked for, required and default are honoured (rule 10.15)."""
    theirs = getattr(official, kind)(declared(official, in_order=in_order)).schema_info()
    ours = getattr(schema, kind)(declared(schema, in_order=in_order)).schema_info()
    assert (ours.schema(), ours.name(), ours.type.name) == (theirs.schema(), theirs.name(), theirs.schema_type().name)


def test_other_schemas_have_the_official_definition() -> None:
    """Of text and of protobuf messages too (rule 10.14)."""
    for theirs, ours in (
        (official.StringSchema(), schema.StringSchema()),
        (official.ProtobufNativeSchema(Timestamp), schema.ProtobufNativeSchema(Timestamp)),
    ):
        assert ours.schema_info().schema() == theirs.schema_info().schema()
    assert schema.BytesSchema().schema_info().registered() is None


JAVA = (
    '{"type":"record","name":"Shirt","namespace":"Golden","fields":[{"name":"colour","type":["null",{"type":"enum",'
    '"name":"Colour","symbols":["RED","BLUE"]}],"default":null},{"name":"done","type":"boolean"},{"name":"item","type":'
    '["null",{"type":"record","name":"Item","fields":[{"name":"count","type":"int"},{"name":"sku","type":["null",'
    '"string"],"default":null}]}],"default":null},{"name":"name","type":["null","string"],"default":null},{"name":'
    '"number","type":"long"},{"name":"price","type":["null","double"],"default":null},{"name":"tags","type":["null",'
    '{"type":"map","values":"string"}],"default":null}]}'
)
"""What Schema.AVRO(Shirt.class).getSchemaInfo() of pulsar-client 4.0.8 printed for the same class, whose fields are
public."""


def test_classes_have_the_definition_of_java() -> None:
    """Byte for byte, in the order of names."""
    assert schema.AvroSchema(Shirt).schema_info().schema() == JAVA
    assert schema.JsonSchema(Shirt).schema_info().schema() == JAVA


def test_a_pair_has_the_definition_of_java() -> None:
    """The registry compares pairs byte by byte; a name is for people (rule 10.13)."""
    info = schema.KeyValueSchema(schema.StringSchema(), schema.Int32Schema()).schema_info()
    assert (info.data, info.name()) == (bytes(8), "KeyValue")
    assert {name: said for name, said in info.properties.items() if not name.endswith(".name")} == {
        "key.schema.type": "STRING", "key.schema.properties": "{}", "value.schema.type": "INT32",
        "value.schema.properties": "{}", "kv.encoding.type": "INLINE",
    }  # fmt: skip


class Typed(TypedDict):
    there: int
    perhaps: NotRequired[str]


def fields(cls: Any) -> dict[str, Any]:
    document = json.loads(schema.AvroSchema(cls).schema_info().schema())
    return {one.pop("name"): one for one in document["fields"]}


def test_annotations_become_types() -> None:
    """As the table of docs/client-schemas.md says."""
    assert fields(Model) == {
        "at": {"type": {"type": "long", "logicalType": "timestamp-millis"}},
        "day": {"type": {"type": "int", "logicalType": "date"}},
        "time": {"type": {"type": "long", "logicalType": "time-micros"}},
        "price": {"type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
        "id": {"type": {"type": "string", "logicalType": "uuid"}},
        "either": {"type": ["long", "string"], "default": 4},
        "maybe": {"type": ["null", "string"]},
        "tags": {"type": {"type": "array", "items": "string"}, "default": []},
        "colour": {"type": {"type": "enum", "name": "Colour", "symbols": ["RED", "BLUE"]}, "default": "BLUE"},
        "small": {"type": "float", "default": 1.5},
    }
    assert fields(Typed) == {"there": {"type": "long"}, "perhaps": {"type": ["null", "string"], "default": None}}


@dataclass
class Odd:
    what: complex = 0j


@dataclass
class Keyed:
    numbers: dict[int, str] = field(default_factory=dict)


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (Odd, r"Odd\.what: no Avro type for complex; take one of bool"),
        (Keyed, r"Keyed\.numbers: keys of an Avro map are str, not int"),
        (int, "int is no dataclass, pydantic model, TypedDict or Record"),
        ("text", "a schema is made of a class, not of 'text'"),
        (None, "give a class or a definition"),
    ],
)
def test_what_has_no_definition_says_why(given: Any, reason: str) -> None:
    """The place, what stands there, and what may."""
    with pytest.raises(schema.ValueTypeError, match=reason):
        schema.AvroSchema(given)


@pytest.mark.parametrize(
    "text", ["", "[", "[]", '["null", "string"]', '{"type": "record"}', '{"type":"record","name":3}', b"\xff"]
)
def test_what_is_no_definition_is_refused(text: Any) -> None:
    """A SchemaError comes at once."""
    with pytest.raises(schema.SchemaError):
        schema.AvroSchema(None, text)
