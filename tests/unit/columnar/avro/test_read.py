"""Avro to columns, against fastavro: every type, every resolution, and bytes that are no Avro."""

from __future__ import annotations

import datetime as dt
import io
import json
from decimal import Decimal
from typing import Any

import fastavro
import pyarrow as pa  # type: ignore[import-untyped]  # publishes no types
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from magnetar.model.errors import InvalidValueError
from magnetar.model.schemas import SchemaDefinition, SchemaType, version_bytes
from magnetar.schema_definitions.avro import parse
from magnetar.schema_definitions.avro_resolution import incompatibility
from tests.support.avro_cases import Case, avro, optional, primitives, record, rows, types, written

BRIEF = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
RECORD = {"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}, {"name": "b", "type": "string"}]}


def reading(schema: Any, writers: dict[int, Any], kind: SchemaType = SchemaType.AVRO) -> Any:
    definitions = {version_bytes(number): one for number, one in writers.items()}
    return avro(
        schema, writers=lambda version: SchemaDefinition(kind, json.dumps(definitions[version]).encode()), label="given"
    )


@BRIEF
@given(st.data())
def test_what_fastavro_writes_is_read(data: st.DataObject) -> None:
    case = record(data.draw(st.lists(types(2), min_size=1, max_size=4)))
    pairs = data.draw(st.lists(case.values, max_size=5))
    reader = avro(case.schema)
    columns, unreadable = reader.read(written(case.schema, *[one for one, _ in pairs]), [(len(pairs), None)])
    assert not unreadable
    assert rows(reader.schema, columns) == [two for _, two in pairs]


@BRIEF
@given(st.data())
def test_a_value_that_is_no_record(data: st.DataObject) -> None:
    case = data.draw(types(1))
    pairs = data.draw(st.lists(case.values, max_size=3))
    reader = avro(case.schema)
    if isinstance(case.schema, dict) and case.schema["type"] == "record":
        return
    columns, _ = reader.read(written(case.schema, *[one for one, _ in pairs]), [(len(pairs), None)])
    assert rows(reader.schema, columns) == [{"value": two} for _, two in pairs]


def evolved(data: st.DataObject, cases: list[Case]) -> dict[str, Any]:
    """The record's reader: fields dropped, renamed with alias, promoted, added with defaults, in another order."""
    fields: list[dict[str, Any]] = []
    for index, case in enumerate(cases):
        change = data.draw(st.sampled_from(["keep", "drop", "rename", "promote", "optional"]))
        kind = case.schema
        if change == "promote" and isinstance(kind, str):
            wider = {"int": ["long", "float", "double"], "long": ["double"], "float": ["double"], "string": ["bytes"]}
            kind = data.draw(st.sampled_from(wider.get(kind, [kind])))
        if change == "optional" and not isinstance(kind, list):
            kind = ["null", kind]
        name = {"name": f"g{index}", "aliases": [f"f{index}"]} if change == "rename" else {"name": f"f{index}"}
        if change != "drop":
            fields.append({**name, "type": kind})
    fields += [
        {"name": "new", "type": "int", "default": 7},
        {"name": "maybe", "type": ["null", "string"], "default": None},
        {"name": "list", "type": {"type": "array", "items": "string"}, "default": ["x"]},
    ]
    return {"type": "record", "name": "Reader", "fields": data.draw(st.permutations(fields))}


@BRIEF
@given(st.data())
def test_writer_to_reader_as_fastavro_resolves_it(data: st.DataObject) -> None:
    cases = data.draw(st.lists(st.one_of(primitives(), primitives().map(optional), types(1)), min_size=1, max_size=4))
    case = record(cases)
    wanted = evolved(data, cases)
    writer, reader = parse(json.dumps(case.schema).encode()), parse(json.dumps(wanted).encode())
    assume(incompatibility(writer, reader) is None)
    values = written(
        {**case.schema, "name": "Reader"}, *[one for one, _ in data.draw(st.lists(case.values, max_size=4))]
    )
    known = fastavro.parse_schema({**case.schema, "name": "Reader"})
    expected: list[Any] = [
        fastavro.schemaless_reader(io.BytesIO(one.as_py()), known, fastavro.parse_schema(wanted)) for one in values
    ]
    decoder = reading(wanted, {3: case.schema})
    columns, unreadable = decoder.read(values, [(len(values), version_bytes(3))])
    assert not unreadable
    for row in (found := rows(decoder.schema, columns)):
        assert (row["new"], row["maybe"], row["list"]) == (7, None, ["x"])
    simple = [index for index, one in enumerate(cases) if isinstance(one.schema, str)]
    for index in simple:
        for name in (f"f{index}", f"g{index}"):
            if name in decoder.schema.names:
                assert [row[name] for row in found] == pytest.approx([row[name] for row in expected])


def test_a_tombstone_is_null_everywhere_even_in_defaults() -> None:
    wanted = {**RECORD, "fields": [*RECORD["fields"], {"name": "c", "type": "int", "default": 3}]}
    decoder = reading(wanted, {0: RECORD})
    values = pa.array([written(RECORD, {"a": 1, "b": "x"})[0].as_py(), None], pa.binary())
    columns, unreadable = decoder.read(values, [(2, version_bytes(0))])
    assert rows(decoder.schema, columns) == [{"a": 1, "b": "x", "c": 3}, {"a": None, "b": None, "c": None}]
    assert not unreadable


def test_versions_that_alternate_keep_their_order() -> None:
    second = {**RECORD, "fields": [{"name": "b", "type": "string"}, {"name": "a", "type": "int"}]}
    values, runs = [], []
    for number in range(9):
        schema = second if number % 2 else RECORD
        values.append(written(schema, {"a": number, "b": str(number)})[0].as_py())
        runs.append((1, version_bytes(number % 2)))
    values[4] = b"\xff"
    decoder = reading(RECORD, {0: RECORD, 1: second})
    columns, unreadable = decoder.read(pa.array(values, pa.binary()), runs)
    assert [row["a"] for row in rows(decoder.schema, columns)] == [0, 1, 2, 3, None, 5, 6, 7, 8]
    assert [one.row for one in unreadable] == [4]


@BRIEF
@given(st.data())
def test_bytes_that_are_no_avro_do_not_poison_their_neighbours(data: st.DataObject) -> None:
    case = record(data.draw(st.lists(types(2), min_size=1, max_size=3)))
    pairs = data.draw(st.lists(case.values, min_size=1, max_size=4))
    good = written(case.schema, *[one for one, _ in pairs]).to_pylist()
    noise = data.draw(st.lists(st.binary(max_size=40), min_size=1, max_size=4))
    mixed = [one for two in zip(good, noise, strict=False) for one in two] + good[len(noise) :]
    places = [mixed.index(one, index) for index, one in enumerate(good)] if len(set(mixed)) == len(mixed) else []
    reader = avro(case.schema)
    columns, unreadable = reader.read(pa.array(mixed, pa.binary()), [(len(mixed), None)])
    found = rows(reader.schema, columns)
    for place, (_, expected) in zip(places, pairs, strict=False):
        assert found[place] == expected
    for row, reason, _ in unreadable:
        assert set(found[row].values()) == {None}
        assert "does not fit Avro schema given: " in reason
        # What it refuses, fastavro refuses, or has read less than all of it.
        stream = io.BytesIO(mixed[row])
        try:
            fastavro.schemaless_reader(stream, fastavro.parse_schema(case.schema))
        except Exception:
            continue
        assert stream.tell() < len(mixed[row]) or any(
            word in reason for word in ("too large", "boolean", "early", "64")
        )


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (b"\x02", "field b: the value ends too early"),
        (b"\x02\x04a", "field b: the value ends too early"),
        (b"\x02\x03", "field b: a negative length"),
        (b"\x02\x02\xff", "field b: a string is no UTF-8"),
        (b"\x02\x02aX", "bytes are left over"),
        (b"\x80\x80\x80\x80\x80\x01\x02a", "field a: a number is too large"),
        (b"\xff" * 11, "field a: a number of more than 64 bits"),
        (b"", "field a: the value ends too early"),
    ],
)
def test_the_reason_names_field_and_fault(value: bytes, reason: str) -> None:
    (one,) = avro(RECORD).read(pa.array([value], pa.binary()), [(1, None)]).unreadable
    assert reason in one.reason


def test_a_version_that_cannot_be_read_names_field_versions_and_rule() -> None:
    other = {**RECORD, "fields": [{"name": "a", "type": "string"}]}
    decoder = reading(RECORD, {0: RECORD, 5: other})
    values = pa.array([b"\x02\x02x", b"\x02x", None], pa.binary())
    columns, unreadable = decoder.read(values, [(1, version_bytes(0)), (2, version_bytes(5))])
    assert rows(decoder.schema, columns)[0] == {"a": 1, "b": "x"}
    ((row, reason, new_schema),) = unreadable
    assert (row, new_schema) == (1, True)
    assert reason == (
        "schema version 5 cannot be read as given: field a: string was written, the reader has int (rule: a type must "
        "stay or be promoted: int to long, float, double; long to float, double; string to and from bytes)"
    )
    (found,) = reading(RECORD, {1: RECORD}, SchemaType.JSON).read(values[:1], [(1, version_bytes(1))]).unreadable
    assert found.reason.endswith("it is JSON (rule: the type must stay)")


def test_logical_types() -> None:
    logical = {
        "d": ({"type": "int", "logicalType": "date"}, dt.date(1969, 12, 31)),
        "ms": ({"type": "long", "logicalType": "timestamp-millis"}, dt.datetime(2013, 1, 1, 0, 0, 0, 5000, dt.UTC)),
        "us": ({"type": "long", "logicalType": "timestamp-micros"}, dt.datetime(1960, 1, 1, 0, 0, 0, 7, dt.UTC)),
        "local": ({"type": "long", "logicalType": "local-timestamp-millis"}, dt.datetime(2013, 1, 1, 3)),
        "money": ({"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}, Decimal("-1234.50")),
        "fix": (
            {"type": "fixed", "name": "Fx", "size": 20, "logicalType": "decimal", "precision": 38, "scale": 0},
            Decimal(-(10**37)),
        ),
    }
    schema = {"type": "record", "name": "L", "fields": [{"name": n, "type": t} for n, (t, _) in logical.items()]}
    reader = avro(schema)
    expected = {name: value for name, (_, value) in logical.items()}
    columns, unreadable = reader.read(written(schema, expected), [(1, None)])
    assert not unreadable
    assert rows(reader.schema, columns) == [expected]


def test_defaults_of_every_type_and_inside_structs() -> None:
    inner = {"type": "record", "name": "I", "fields": [{"name": "x", "type": "int"}]}
    wider = {"type": "record", "name": "I", "fields": [*inner["fields"], {"name": "y", "type": "long", "default": 9}]}
    old = {
        "type": "record",
        "name": "O",
        "fields": [{"name": "i", "type": {"type": "array", "items": ["null", inner]}}],
    }
    added = [
        ("by", "bytes", "\u00ff", b"\xff"),
        ("m", {"type": "map", "values": "int"}, {"k": 1}, [("k", 1)]),
        (
            "t",
            {"type": "long", "logicalType": "timestamp-millis"},
            1000,
            dt.datetime(1970, 1, 1, 0, 0, 1, tzinfo=dt.UTC),
        ),
        ("r", {**wider, "name": "I2"}, {"x": 4}, {"x": 4, "y": 9}),
        ("u", ["string", "null"], "s", "s"),
        ("w", ["string", "int", "boolean"], "s", {"member0": "s", "member1": None, "member2": None}),
    ]
    fields = [{"name": n, "type": t, "default": d} for n, t, d, _ in added]
    new = {
        "type": "record",
        "name": "O",
        "fields": [{"name": "i", "type": {"type": "array", "items": ["null", wider]}}],
    }
    new["fields"] += fields  # type: ignore[operator]  # it is a list
    decoder = reading(new, {0: old})
    columns, _ = decoder.read(written(old, {"i": [{"x": 1}, None, {"x": 2}]}, {"i": []}), [(2, version_bytes(0))])
    found = rows(decoder.schema, columns)
    assert found[0]["i"] == [{"x": 1, "y": 9}, None, {"x": 2, "y": 9}]
    assert [found[1][name] for name, *_ in added] == [expected for *_, expected in added]


def test_enums_by_symbol_and_lost_ones() -> None:
    def enum(symbols: list[str], **more: str) -> dict[str, Any]:
        kind = {"type": "enum", "name": "E", "symbols": symbols, **more}
        return {"type": "record", "name": "R", "fields": [{"name": "e", "type": kind}]}

    values = written(enum(["A", "B", "C"]), {"e": "C"}, {"e": "B"})
    lost = reading(enum(["C", "A"]), {0: enum(["A", "B", "C"])}).read(values, [(2, version_bytes(0))])
    assert lost.columns[0].to_pylist() == ["C", None]
    assert "lost the symbol" in lost.unreadable[0].reason
    kept = reading(enum(["C", "A"], default="A"), {0: enum(["A", "B", "C"])}).read(values, [(2, version_bytes(0))])
    assert kept.columns[0].to_pylist() == ["C", "A"]


def test_what_has_no_columns_is_refused_by_name() -> None:
    tree = {"type": "record", "name": "T", "fields": [{"name": "next", "type": ["null", "T"]}]}
    with pytest.raises(InvalidValueError, match="record T contains itself"):
        avro(tree)
    nulls = avro({"type": "array", "items": "null"})
    with pytest.raises(InvalidValueError, match="an array of null"):
        nulls.read(pa.array([b"\x02\x00"], pa.binary()), [(1, None)])


def test_texts_and_lists_that_outgrow_their_room() -> None:
    schema = {"type": "array", "items": "string"}
    lists = [["x" * index] * (index % 7) for index in range(300)] + [["long" * 100_000], ["a"] * 5000]
    reader = avro(schema)
    columns, _ = reader.read(written(schema, *lists), [(len(lists), None)])
    assert columns[0].to_pylist() == lists


DECIMAL_KINDS: dict[str, dict[str, Any]] = {
    "bytes": {"type": "bytes"},
    "fixed": {"type": "fixed", "name": "F", "size": 20},
    "short": {"type": "fixed", "name": "F", "size": 3},
}


@pytest.mark.parametrize("kind", DECIMAL_KINDS)
@given(st.integers(1, 38), st.data())
def test_a_decimal_has_as_many_digits_as_its_type(kind: str, precision: int, data: st.DataObject) -> None:
    """Java would fail the whole query for one, in words that do not say which message it is in."""
    schema = {**DECIMAL_KINDS[kind], "logicalType": "decimal", "precision": precision, "scale": 0}
    edge = 10**precision
    near = st.sampled_from([edge, edge - 1, -edge, 1 - edge, 0, -1, 1 << 64, -(1 << 64), (1 << 64) - 1, -(1 << 127)])
    number = data.draw(near | st.integers(-(1 << 127), (1 << 127) - 1))
    size = schema.get("size", 17)
    assume(-(1 << (8 * size - 1)) <= number < 1 << (8 * size - 1))
    raw = number.to_bytes(size, "big", signed=True)
    value = raw if kind != "bytes" else bytes([2 * size]) + raw
    columns, unreadable = avro(schema).read(pa.array([value, value], pa.binary()), [(2, None)])
    wanted = Decimal(number) if abs(number) < edge else None
    assert columns[0].to_pylist() == [wanted, wanted]
    assert [one.row for one in unreadable] == ([] if wanted is not None else [0, 1])
    assert all("more digits than its type" in one.reason for one in unreadable)
