"""Payloads that lie, and definitions that ask for too much: an error about the value, and no memory or minutes."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any, Final

import pytest
from google.protobuf.struct_pb2 import Struct
from google.protobuf.timestamp_pb2 import Timestamp
from hypothesis import given, settings
from hypothesis import strategies as st

from magnetar import schema
from magnetar.client.errors import SchemaError
from magnetar.client.machines.acknowledgement import BATCH_MAX, ack_set_of, bits_of, ids_in_transaction
from magnetar.client.machines.message_id import MessageId
from magnetar.client.values.avro.decoder import AvroDecoder
from magnetar.client.values.avro.encoder import AvroEncoder
from magnetar.model.errors import InvalidTopicNameError, InvalidValueError, ProtocolError
from magnetar.schema_definitions.avro import parse
from tests.support.schema_records import Item, Model, Shirt, declared

TREE = parse(
    json.dumps(
        {
            "type": "record", "name": "Tree", "fields": [
                {"name": "list", "type": {"type": "array", "items": ["null", "Tree", "string", "long"]}},
                {"name": "map", "type": {"type": "map", "values": ["double", "bytes", "boolean"]}},
                {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
                {"name": "day", "type": {"type": "int", "logicalType": "date"}},
                {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
                {"name": "id", "type": {"type": "string", "logicalType": "uuid"}},
            ],
        }
    ).encode()
)  # fmt: skip
NULLS = parse(json.dumps({"type": "array", "items": {"type": "array", "items": "null"}}).encode())


def varint(number: int) -> bytes:
    zigzag, out = number << 1, bytearray()
    while zigzag > 127:
        out.append(zigzag & 127 | 128)
        zigzag >>= 7
    return bytes([*out, zigzag])


@settings(max_examples=400, deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes_are_a_value_or_a_schema_error(data: bytes) -> None:
    for tree in (TREE, NULLS):
        try:
            AvroDecoder(tree, tree).decode(data)
        except SchemaError:
            pass


@pytest.mark.parametrize(
    "data",
    [
        varint(1 << 62), varint(0) + varint(1 << 62), varint(1) + varint(4) + varint(1 << 40),
        (varint(1) + varint(1)) * 10_000,
    ],
    ids=["count of a list", "count of a map", "length of a text", "depth"],
)  # fmt: skip
def test_a_payload_that_lies_is_a_schema_error(data: bytes) -> None:
    with pytest.raises(SchemaError):
        AvroDecoder(TREE, TREE).decode(data)


def test_lists_within_lists_of_nothing_have_one_bound_together() -> None:
    """4 bytes for 65,536 nulls, 1,000 times, would be gigabytes from a payload of megabytes."""
    inner = varint(60_000) + varint(0)
    with pytest.raises(SchemaError, match="lists of"):
        AvroDecoder(NULLS, NULLS).decode(varint(1_000) + inner * 1_000 + varint(0))
    small = varint(2) + (varint(3) + varint(0)) * 2 + varint(0)
    assert AvroDecoder(NULLS, NULLS).decode(small) == [[None] * 3, [None] * 3]


@pytest.mark.parametrize("precision", [10**9, 10**30])
def test_a_decimal_of_absurd_precision_is_left_plain(precision: int) -> None:
    definition = {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": 10**8}
    tree = parse(json.dumps(definition).encode())
    assert AvroDecoder(tree, tree).decode(AvroEncoder(tree).encode(b"x")) == b"x"
    with pytest.raises(SchemaError, match="bytes is expected"):
        AvroEncoder(tree).encode(Decimal("1.5"))


def test_a_decimal_of_megabytes_is_a_schema_error() -> None:
    definition = {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}
    tree = parse(json.dumps(definition).encode())
    with pytest.raises(SchemaError, match="a decimal of"):
        AvroDecoder(tree, tree).decode(varint(1 << 20) + bytes(1 << 20))


MODEL: Final = schema.JsonSchema(Model)
GOOD: Final[list[tuple[schema.Schema[Any], dict[str, Any]]]] = [
    (
        MODEL,
        {"at": 1, "day": 1, "time": 1, "price": "1.25", "id": f"{0:032}", "maybe": None, "tags": ["a"], "small": 1},
    ),
    (
        schema.JsonSchema(Shirt),
        {
            "done": True,
            "number": 3,
            "price": 1.5,
            "colour": "RED",
            "item": {"count": 1, "sku": "s"},
            "tags": {"a": "b"},
        },
    ),
    (schema.JsonSchema(declared(schema)), {}),
]
NAMES: Final = sorted({field["name"] for one, _ in GOOD for field in json.loads(one.schema_info().data)["fields"]})
LIES: Final = (10**400, -(2**62), 2**31, 1e308, "sNaN", "1e999999999", "Infinity", "RED", "2026-01-02", "\ud800")
SAID: Final = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6) | st.sampled_from(LIES),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=4),
    max_leaves=6,
)


def take(of: schema.Schema[Any], data: bytes) -> None:
    """Decode, and let nothing else out than the documented error."""
    try:
        of.decode(data)
    except SchemaError:
        pass


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=100) | SAID.map(lambda one: json.dumps(one).encode()), st.data())
def test_json_is_a_value_or_a_schema_error(data: bytes, choice: st.DataObject) -> None:
    """Any bytes, any JSON, and what would be a record but for one field."""
    for of, good in GOOD:
        take(of, data)
        name = choice.draw(st.sampled_from(sorted(good) or NAMES))
        take(of, json.dumps(good | {name: choice.draw(SAID)}).encode())


@pytest.mark.parametrize(
    ("name", "lie"), [("small", 10**400), ("at", 2**62), ("at", -(2**62)), ("day", 2**31 - 1)], ids=range(4)
)
def test_a_number_of_json_that_python_has_no_value_for_is_a_schema_error(name: str, lie: int) -> None:
    of, good = GOOD[0]
    assert isinstance(of.decode(json.dumps(good).encode()), Model)
    with pytest.raises(SchemaError, match=f"no JSON of Model: {name}: "):
        of.decode(json.dumps(good | {name: lie}).encode())


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=60), st.binary(max_size=60), st.integers(-3, 2**31 - 1))
def test_protobuf_and_pairs_are_a_value_or_a_schema_error(key: bytes, value: bytes, length: int) -> None:
    for of in (schema.ProtobufNativeSchema(Struct), schema.ProtobufSchema(Timestamp)):
        take(of, value)
    pair = schema.KeyValueSchema(schema.StringSchema(), schema.JsonSchema(Item))
    for said in (length, len(key)):
        take(pair, said.to_bytes(4, "big", signed=True) + key + len(value).to_bytes(4, "big") + value)
    take(pair, key)


LONG: Final = st.integers(0, 2**63 - 1)
INT: Final = st.integers(-(2**31), 2**31 - 1)
PLACE: Final = st.tuples(LONG, LONG)
IDS: Final = st.builds(
    lambda *of, **more: MessageId(*of, **more).serialize(), INT, LONG, LONG, INT, batch_size=INT,
    chunks=st.just(()) | st.tuples(PLACE, PLACE),
)  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=60) | IDS, st.none() | st.text(max_size=20))
def test_an_id_of_any_bytes_is_one_or_a_documented_error(data: bytes, topic: str | None) -> None:
    try:
        found = MessageId.deserialize(data, topic)
    except (ProtocolError, InvalidTopicNameError):
        return
    assert MessageId.deserialize(found.serialize()) == found and str(found) and found <= found
    for cumulative in (False, True):
        try:
            ids_in_transaction(found, cumulative=cumulative)
        except InvalidValueError:
            assert found.batch_size > BATCH_MAX or found.batch_index() >= found.batch_size


def test_an_id_of_an_absurd_batch_is_no_minutes_in_a_transaction() -> None:
    for index, size in ((5, 2**31 - 1), (2**31 - 1, 10)):
        with pytest.raises(InvalidValueError, match="no message of a batch of"):
            ids_in_transaction(MessageId(-1, 1, 1, index, batch_size=size), cumulative=False)


@given(st.integers(0, 2**200))
def test_ack_sets_are_words_and_back(bits: int) -> None:
    words = ack_set_of(bits)
    assert bits_of(words) == bits and all(-(2**63) <= one < 2**63 for one in words)
    assert len(words) == max((bits.bit_length() + 63) // 64, 1)


@pytest.mark.parametrize(
    "nothing",
    ["null", {"type": "fixed", "name": "F", "size": 0}, {"type": "record", "name": "R", "fields": []}],
    ids=["null", "fixed", "record"],
)
def test_as_many_values_of_nothing_as_there_are_bytes_count_too(nothing: Any) -> None:
    """A list within a list that was no longer than the rest of the payload did not count: 24 KB became 48 million
    values, and 200 KB all memory."""
    tree = parse(json.dumps({"type": "array", "items": {"type": "array", "items": nothing}}).encode())
    inner = varint(8_000) + varint(0)
    with pytest.raises(SchemaError, match="lists of"):
        AvroDecoder(tree, tree).decode(varint(8_000) + inner * 8_000 + varint(0))
