"""Definitions that are refused before anything is compared."""

from __future__ import annotations

import base64
import json
import time

import pytest
from google.protobuf import descriptor_pb2, wrappers_pb2
from hypothesis import given
from hypothesis import strategies as st

from magnetar.model.errors import IncompatibleSchemaError, InvalidSchemaDataError, ServerError
from magnetar.model.schemas import SchemaDefinition, SchemaType, SchemaVersion
from magnetar.schema_definitions import key_value
from magnetar.schema_definitions.compatibility import require_follows_latest
from magnetar.schema_definitions.strategies import CompatibilityStrategy
from magnetar.schema_definitions.validation import DATA_BYTES_MAX, require_valid

RECORD = b'{"type":"record","name":"R","fields":[{"name":"a","type":"int"}]}'
EMPTY_TYPES = [
    kind.name
    for kind in SchemaType
    if SchemaType.BOOLEAN <= kind <= SchemaType.LOCAL_DATE_TIME and kind is not SchemaType.KEY_VALUE
]


def refused(kind: SchemaType, data: bytes = b"", **properties: str) -> str:
    given = {name.replace("_", "."): value for name, value in properties.items()}
    with pytest.raises(InvalidSchemaDataError) as caught:
        require_valid(SchemaDefinition(kind, data, given))
    assert caught.value.code is ServerError.IncompatibleSchema
    assert caught.value.status == 422
    return str(caught.value)


@pytest.mark.parametrize("name", EMPTY_TYPES)
def test_primitives_have_no_data(name: str) -> None:
    require_valid(SchemaDefinition(SchemaType[name]))
    text = "Invalid schema definition data for primitive schemas :length of schema data should be zero, but 3 bytes is"
    assert refused(SchemaType[name], b"abc") == f"{text} found"


def test_what_string_and_bytes_schemas_may_hold() -> None:
    for kind, data in ((SchemaType.STRING, b""), (SchemaType.STRING, b"null"), (SchemaType.NONE, b"x")):
        require_valid(SchemaDefinition(kind, data))
    assert refused(SchemaType.STRING, b"abc") == "Invalid schema definition data for string schema : 'abc'"


@pytest.mark.parametrize("name", ["AUTO", "AUTO_CONSUME", "AUTO_PUBLISH"])
def test_types_of_clients(name: str) -> None:
    assert refused(SchemaType[name]) == f"Schema {name} is a client-side schema type"


def test_avro_and_what_is_described_by_it() -> None:
    for kind in (SchemaType.AVRO, SchemaType.JSON, SchemaType.PROTOBUF):
        require_valid(SchemaDefinition(kind, RECORD))
        text = refused(kind, b"{bad")
        assert text.startswith(f"Invalid schema definition data for {kind.name} schema caused by not JSON: ")
    assert refused(SchemaType.AVRO, b'["int"]') == "Avro schema typed [UNION] is not supported"
    require_valid(SchemaDefinition(SchemaType.JSON, b'{"type":"object","id":"urn:x"}'))
    refused(SchemaType.AVRO, b'{"type":"object","id":"urn:x"}')
    for wrong in (b'{"type":"foo"}', b'{"type":{"type":"string"}}', b"5", b"{}"):
        refused(SchemaType.JSON, wrong)


def test_a_giant_is_refused_before_it_is_read() -> None:
    text = refused(SchemaType.AVRO, b" " * (DATA_BYTES_MAX + 1))
    assert "its size: 1048577 bytes, magnetar takes 1048576" in text


def test_the_largest_is_read_and_compared_in_bearable_time() -> None:
    fields = ",".join(f'{{"name":"f{i}","type":["null","string"],"default":null}}' for i in range(16_000))
    data = b'{"type":"record","name":"R","fields":[%s]}' % fields.encode()
    assert DATA_BYTES_MAX * 0.8 < len(data) < DATA_BYTES_MAX
    started = time.process_time()
    definition = SchemaDefinition(SchemaType.AVRO, data)
    require_valid(definition)
    other = SchemaDefinition(SchemaType.AVRO, data.replace(b'"R"', b'"Q"'))
    require_follows_latest(SchemaVersion(0, definition, 0), other, CompatibilityStrategy.FULL)
    assert time.process_time() - started < 5


def test_a_pair_is_valid_if_both_parts_are() -> None:
    """The definition of a pair is taken apart into those of its key and value (rule 10.13)."""
    pair = key_value.join(b"", RECORD)
    require_valid(SchemaDefinition(SchemaType.KEY_VALUE, pair, {"value.schema.type": "AVRO"}))
    minus = b"\xff\xff\xff\xff" + pair[4:]
    assert key_value.split(SchemaDefinition(SchemaType.KEY_VALUE, minus)).key.data == b""
    assert refused(SchemaType.KEY_VALUE, key_value.join(b"", b"{"), value_schema_type="AVRO").startswith(
        "Invalid schema definition data for AVRO schema caused by not JSON"
    )
    assert "KEY_VALUE schema caused by 0 bytes where the length" in refused(SchemaType.KEY_VALUE)
    assert "should have 9 bytes, 1 are there" in refused(SchemaType.KEY_VALUE, b"\0\0\0\x09x")
    assert "1 bytes follow the value's schema" in refused(SchemaType.KEY_VALUE, key_value.join(b"", b"") + b"x")
    assert "'NOPE', which is no schema type" in refused(SchemaType.KEY_VALUE, pair, key_schema_type="NOPE")
    assert "a pair inside a pair" in refused(SchemaType.KEY_VALUE, pair, key_schema_type="KEY_VALUE")


@given(st.binary(max_size=40))
def test_any_bytes_are_a_pair_or_refused(data: bytes) -> None:
    definition = SchemaDefinition(SchemaType.KEY_VALUE, data)
    try:
        key, value = key_value.split(definition)
    except InvalidSchemaDataError:
        return
    assert len(key.data) + len(value.data) + 8 == len(data)
    assert data.endswith(value.data)


def test_pairs_as_text() -> None:
    """Pairs are shown and taken as JSON text over REST (rule 10.16)."""
    text = '{"key":"","value":{"type":"record","name":"R","fields":[{"name":"a","type":"int"}]}}'
    data = key_value.from_text(text)
    assert data == key_value.join(b"", RECORD)
    assert key_value.to_text(SchemaDefinition(SchemaType.KEY_VALUE, data)) == text
    for wrong in ("{", "[]", "{}", '{"key":""}'):
        with pytest.raises(InvalidSchemaDataError, match="expected"):
            key_value.from_text(wrong)


def native(root: str = "google.protobuf.StringValue", **changes: object) -> SchemaDefinition:
    files = descriptor_pb2.FileDescriptorSet()
    wrappers_pb2.DESCRIPTOR.CopyToProto(files.file.add())
    document = {
        "fileDescriptorSet": base64.b64encode(files.SerializeToString()).decode(),
        "rootMessageTypeName": root,
        "rootFileDescriptorName": "google/protobuf/wrappers.proto",
        **changes,
    }
    return SchemaDefinition(SchemaType.PROTOBUF_NATIVE, json.dumps(document).encode())


def test_protobuf_native() -> None:
    """A ProtobufNative schema needs its descriptors and the name of the root message (rule 10.14)."""
    require_valid(native())
    for definition, says in (
        (native("x.Y"), "rootMessageTypeName 'x.Y' is not defined"),
        (native(rootMessageTypeName=None), "no text rootMessageTypeName"),
        (native(rootFileDescriptorName="nope"), "is not among the files"),
        (native(fileDescriptorSet="!!!"), "is not base64"),
        (native(fileDescriptorSet="AAAA"), "is not a google.protobuf.FileDescriptorSet"),
        (native(fileDescriptorSet=""), "is not among the files"),
        (SchemaDefinition(SchemaType.PROTOBUF_NATIVE, b"abc"), "not JSON"),
        (SchemaDefinition(SchemaType.PROTOBUF_NATIVE, b"[]"), "a JSON object"),
    ):
        text = refused(definition.type, definition.data)
        assert text.startswith("deserialize ProtobufNative Schema failed caused by ")
        assert says in text


def test_protobuf_files_may_come_in_any_order_and_must_be_complete() -> None:
    files = descriptor_pb2.FileDescriptorSet()
    files.file.add(name="b.proto", dependency=["a.proto"]).message_type.add(name="B").field.add(
        name="a", number=1, label=1, type=11, type_name=".A"
    )
    files.file.add(name="a.proto").message_type.add(name="A")
    encoded = base64.b64encode(files.SerializeToString()).decode()
    require_valid(native("B", fileDescriptorSet=encoded, rootFileDescriptorName="b.proto"))
    del files.file[1]
    encoded = base64.b64encode(files.SerializeToString()).decode()
    missing = native("B", fileDescriptorSet=encoded, rootFileDescriptorName="b.proto")
    assert "deserialize ProtobufNative" in refused(missing.type, missing.data)


def test_a_root_message_stays() -> None:
    require_follows_latest(SchemaVersion(0, native(), 0), native(extra=1), CompatibilityStrategy.FULL)
    with pytest.raises(IncompatibleSchemaError) as caught:
        require_follows_latest(
            SchemaVersion(0, native(), 0), native("google.protobuf.Int32Value"), CompatibilityStrategy.FULL
        )
    assert str(caught.value) == (
        "Protobuf root message change is not allowed under the 'FULL' strategy. Original message name: "
        "'google.protobuf.StringValue', new message name: 'google.protobuf.Int32Value'."
    )
