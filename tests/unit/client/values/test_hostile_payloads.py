"""Payloads that lie, and definitions that ask for too much: an error about the value, and no memory or minutes."""

from __future__ import annotations

import json
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from magnetar.client.errors import SchemaError
from magnetar.client.values.avro.decoder import AvroDecoder
from magnetar.client.values.avro.encoder import AvroEncoder
from magnetar.schema_definitions.avro import parse

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
    for schema in (TREE, NULLS):
        try:
            AvroDecoder(schema, schema).decode(data)
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
    schema = parse(json.dumps(definition).encode())
    assert AvroDecoder(schema, schema).decode(AvroEncoder(schema).encode(b"x")) == b"x"
    with pytest.raises(SchemaError, match="bytes is expected"):
        AvroEncoder(schema).encode(Decimal("1.5"))


def test_a_decimal_of_megabytes_is_a_schema_error() -> None:
    definition = {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}
    schema = parse(json.dumps(definition).encode())
    with pytest.raises(SchemaError, match="a decimal of"):
        AvroDecoder(schema, schema).decode(varint(1 << 20) + bytes(1 << 20))
