"""Values to bytes and back: golden bytes of Java's client, fastavro as the second opinion, and what is no value."""

from __future__ import annotations

import datetime as dt
import io
import json
from typing import Any

import fastavro
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from magnetar import schema
from magnetar.client.values.avro.decoder import AvroDecoder
from magnetar.client.values.avro.encoder import AvroEncoder
from magnetar.schema_definitions.avro import parse
from tests.support.schema_records import Colour, Item, Model, Shirt, declared

MOMENT = dt.datetime(2026, 5, 17, 12, 30, 15, 123456, dt.UTC)
GOLDEN: list[tuple[schema.Schema[Any], Any, str]] = [
    (schema.BooleanSchema(), True, "01"),
    (schema.Int8Schema(), -5, "fb"),
    (schema.Int16Schema(), -300, "fed4"),
    (schema.Int32Schema(), -70_000, "fffeee90"),
    (schema.Int64Schema(), -5_000_000_000, "fffffffed5fa0e00"),
    (schema.FloatSchema(), 1.5, "3fc00000"),
    (schema.DoubleSchema(), -2.25, "c002000000000000"),
    (schema.InstantSchema(), MOMENT, "000000006a09b4d7075bca00"),
    (schema.TimestampSchema(), MOMENT.replace(microsecond=123_000), "0000019e35ea6853"),
    (schema.DateSchema(), MOMENT.date(), "0000019e333b8800"),
    (schema.TimeSchema(), dt.time(12, 30, 15, 123_000), "0000000002aee053"),
    (schema.LocalDateSchema(), dt.date(1969, 12, 30), "fffffffffffffffe"),
    (schema.LocalTimeSchema(), dt.time(12, 30, 15, 123_456), "000028f0e6717000"),
    (schema.LocalDateTimeSchema(), MOMENT.replace(tzinfo=None), "000000000000506e000028f0e6717000"),
    (
        schema.KeyValueSchema(schema.StringSchema(), schema.Int32Schema()),
        schema.KeyValue("key", 7), "000000036b65790000000400000007",
    ),
    (
        schema.KeyValueSchema(schema.StringSchema(), schema.Int32Schema()),
        schema.KeyValue(None, 7), "ffffffff0000000400000007",
    ),
    (
        schema.KeyValueSchema(schema.StringSchema(), schema.Int32Schema()),
        schema.KeyValue("key", None), "000000036b6579ffffffff",
    ),
]  # fmt: skip
"""What pulsar-client 4.0.8 printed for these values."""


@pytest.mark.parametrize(("of", "value", "said"), GOLDEN, ids=lambda one: str(one)[:20])
def test_golden_bytes_of_java(of: schema.Schema[Any], value: Any, said: str) -> None:
    """Both ways; one byte less or more is an error (rules 10.1, 10.13)."""
    assert of.encode(value).hex() == said
    assert of.decode(bytes.fromhex(said)) == value
    for spoilt in (bytes.fromhex(said)[:-1], bytes.fromhex(said) + b"\0"):
        with pytest.raises(schema.SchemaError):
            of.decode(spoilt)


@pytest.mark.parametrize(
    ("of", "value"),
    [
        (schema.StringSchema(), b"x"), (schema.BytesSchema(), "x"), (schema.Int8Schema(), 128),
        (schema.Int8Schema(), True), (schema.Int8Schema(), 1.0), (schema.DoubleSchema(), "1"),
        (schema.TimestampSchema(), dt.datetime(2026, 1, 1)), (schema.LocalDateTimeSchema(), MOMENT),
        (schema.DateSchema(), MOMENT), (schema.StringSchema(), "\ud800"), (schema.FloatSchema(), 1e300),
        (schema.KeyValueSchema(schema.StringSchema(), schema.StringSchema()), "pair"),
    ],
    ids=str,
)  # fmt: skip
def test_what_is_no_value_is_refused(of: Any, value: Any) -> None:
    """Before anything is sent."""
    with pytest.raises(schema.SchemaError):
        of.encode(value)


SHIRT = Shirt(True, 7, "shirt", 2.5, Colour.BLUE, Item(3, "a"), {"size": "L"})


def test_avro_and_json_of_java() -> None:
    """The bytes of a dataclass are Java's for the same class; times, decimals and enums come back as they were."""
    avro, plain = schema.AvroSchema(Shirt), schema.JsonSchema(Shirt)
    assert avro.encode(SHIRT).hex() == "02020102060202610" + "20a73686972740e02000000000000044002020873697a65024c00"
    assert avro.decode(avro.encode(SHIRT)) == SHIRT
    assert plain.decode(b'{"name":"shirt","price":2.5,"number":7,"done":true,"item":{"sku":"a","count":3},'
                        b'"tags":{"size":"L"},"colour":"BLUE","new":1}') == SHIRT  # fmt: skip
    model = Model.model_validate(
        {"at": MOMENT.replace(microsecond=123_000), "day": MOMENT.date(), "time": dt.time(1, 2, 3, 4), "price": "19.90",
         "id": "12345678-1234-5678-1234-567812345678", "either": "x", "maybe": None}
    )  # fmt: skip
    for of in (schema.AvroSchema(Model), schema.JsonSchema(Model)):
        assert of.decode(of.encode(model)) == model


WRITERS: list[Any] = [
    {"type": "record", "name": "R", "fields": [
        {"name": "a", "type": "string"}, {"name": "b", "type": "int"}, {"name": "c", "type": ["null", "double"]},
        {"name": "d", "type": {"type": "array", "items": ["null", "long"]}},
        {"name": "e", "type": {"type": "map", "values": "bytes"}}, {"name": "f", "type": "float"},
        {"name": "g", "type": {"type": "fixed", "name": "F", "size": 2}},
        {"name": "h", "type": {"type": "enum", "name": "E", "symbols": ["X", "Y"]}}, {"name": "i", "type": "boolean"},
        {"name": "j", "type": ["null", "R"]},
    ]},
]  # fmt: skip
LONGS = st.integers(-(1 << 63), (1 << 63) - 1)


@st.composite
def records(draw: st.DrawFn, depth: int = 1) -> dict[str, Any]:
    return {
        "a": draw(st.text(max_size=9)), "b": draw(st.integers(-(1 << 31), (1 << 31) - 1)),
        "c": draw(st.none() | st.floats(allow_nan=False)), "d": draw(st.lists(st.none() | LONGS, max_size=3)),
        "e": draw(st.dictionaries(st.text(max_size=3), st.binary(max_size=4), max_size=2)),
        "f": draw(st.floats(width=32, allow_nan=False)), "g": draw(st.binary(min_size=2, max_size=2)),
        "h": draw(st.sampled_from("XY")), "i": draw(st.booleans()),
        "j": draw(st.none() | records(depth - 1)) if depth else None,
    }  # fmt: skip


@settings(max_examples=25, deadline=None)
@given(records())
def test_fastavro_agrees(value: dict[str, Any]) -> None:
    """The bytes are the same, and are read alike."""
    definition = WRITERS[0]
    ours = schema.AvroSchema(None, definition)
    buffer = io.BytesIO()
    fastavro.schemaless_writer(buffer, fastavro.parse_schema(json.loads(json.dumps(definition))), value)
    assert ours.encode(value) == buffer.getvalue()
    assert ours.decode(buffer.getvalue()) == value


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=40))
def test_no_bytes_break_the_decoder(data: bytes) -> None:
    """They are a value or a SchemaError; what is read is written again."""
    of = schema.AvroSchema(None, WRITERS[0])
    try:
        found = of.decode(data)
    except schema.SchemaError:
        return
    assert of.decode(of.encode(found)) == found or "nan" in repr(found)


def resolved(writer: Any, reader: Any, value: Any) -> Any:
    old, new = parse(json.dumps(writer).encode()), parse(json.dumps(reader).encode())
    return AvroDecoder(old, new).decode(AvroEncoder(old).encode(value))


def record(*fields: tuple[Any, ...]) -> dict[str, Any]:
    """Return a record's definition of names, types and defaults."""
    made = [dict(zip(("name", "type", "default"), one, strict=False)) for one in fields]
    return {"type": "record", "name": "R", "fields": made}


@pytest.mark.parametrize(
    ("writer", "reader", "value", "wanted"),
    [
        ("int", "double", 3, 3.0), ("long", ["null", "float"], 3, 3.0), ("string", "bytes", "é", "é".encode()),
        ("bytes", "string", b"x", "x"), (["null", "int"], "int", 4, 4),
        (record(("a", "int"), ("b", "string")), record(("b", "string"), ("c", "long", 7)), {"a": 1, "b": "x"},
         {"b": "x", "c": 7}),
        (record(("a", {"type": "enum", "name": "E", "symbols": ["X", "Y"]})),
         record(("a", {"type": "enum", "name": "E", "symbols": ["Y"], "default": "Y"})), {"a": "X"}, {"a": "Y"}),
        (record(("a", ["null", "int"])), record(("a", ["int", "null"])), {"a": None}, {"a": None}),
    ],
)  # fmt: skip
def test_resolution(writer: Any, reader: Any, value: Any, wanted: Any) -> None:
    """Promoted, left out, filled in: by the rules that admit the pair to the registry (rule 10.6)."""
    assert resolved(writer, reader, value) == wanted
    assert type(resolved(writer, reader, value)) is type(wanted)


@pytest.mark.parametrize(
    ("writer", "reader", "value", "reason"),
    [
        (["null", "int"], "int", None, "null was written"), ("string", "int", "x", "string was written"),
        (record(("a", "int")), record(("a", "int"), ("b", "int")), {"a": 1}, "field b was not written"),
        (record(("a", {"type": "enum", "name": "E", "symbols": ["X"]})),
         record(("a", {"type": "enum", "name": "E", "symbols": ["Y"]})), {"a": "X"}, "X was written"),
        (record(("a", ["null", record(("b", "int")) | {"name": "I"}])),
         record(("a", ["null", record(("c", "int")) | {"name": "I"}])), {"a": {"b": 1}}, "field c was not written"),
    ],
)  # fmt: skip
def test_what_does_not_resolve_is_never_guessed(writer: Any, reader: Any, value: Any, reason: str) -> None:
    """The value has an error that says what was written."""
    with pytest.raises(schema.SchemaError, match=reason):
        resolved(writer, reader, value)


def test_hostile_lists_are_refused() -> None:
    """A few bytes do not become gigabytes, nor does a number end nowhere."""
    nulls = schema.AvroSchema(None, record(("a", {"type": "array", "items": "null"})))
    assert nulls.decode(b"\x06\x00") == {"a": [None, None, None]}
    for data in (b"\xfe\xff\xff\xff\xff\xff\xff\x7f\x00", b"\xff" * 30, b"\x80\x80\x08" * 4 + b"\x00"):
        with pytest.raises(schema.SchemaError):
            nulls.decode(data)


def test_bytes_behind_a_value_are_an_error() -> None:
    """They were written with another schema, so nothing of it is to be believed."""
    of = schema.AvroSchema(Shirt)
    with pytest.raises(schema.SchemaError, match="1 of 36 bytes follow the value"):
        of.decode(of.encode(SHIRT) + b"\0")


def test_a_derived_record_has_the_fields_of_its_base() -> None:
    """They come first, and values have them."""

    class Base(schema.Record):
        a = schema.String(required=True)

    class Derived(Base):
        b = schema.Long()

    of = schema.AvroSchema(Derived)
    assert [one["name"] for one in Derived.schema()["fields"]] == ["a", "b"]
    assert of.decode(of.encode(Derived(a="x", b=4))) == Derived(a="x", b=4)


def test_wrong_fields_are_named() -> None:
    """The whole way to it, and dicts have the fields of the definition and no others."""
    of = schema.AvroSchema(Shirt)
    with pytest.raises(schema.ValueTypeError, match=r"field item\.sku: string is expected, not int 7"):
        of.encode(Shirt(True, 7, item=Item(3, 7)))  # type: ignore[arg-type]  # on purpose
    given = schema.AvroSchema(None, record(("a", "int"), ("b", ["null", "int"])))
    assert given.decode(given.encode({"a": 1})) == {"a": 1, "b": None}
    for value in ({"b": 1}, {"a": 1, "x": 2}, {"a": 1 << 40}, [1], None):
        with pytest.raises(schema.ValueTypeError):
            given.encode(value)  # type: ignore[arg-type]  # on purpose


def test_records_check_what_they_are_given() -> None:
    """A field takes its type, an enum's member by name or value, and nothing that is no field."""
    made = declared(schema)
    one = made(text="x", small=1, raw="text", colour="BLUE", inner={"x": 4})
    assert (one.colour, one.raw, one.inner.x, one.inner.y) == (Colour.BLUE, b"text", 4, "why")
    assert made(text="x", small=1, raw=b"", colour=2).colour is Colour.BLUE
    for wrong in ({"text": 7}, {"number": True}, {"colour": "PINK"}, {"texts": [1]}, {"counts": {1: 1}}, {"other": 1}):
        with pytest.raises((schema.ValueTypeError, AttributeError)):
            made(**wrong)
    with pytest.raises(AttributeError):
        one.other = 1
