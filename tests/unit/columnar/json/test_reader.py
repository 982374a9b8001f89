"""JSON to columns, against Python's own reading of it."""

from __future__ import annotations

import datetime as dt
import enum
import json
from decimal import Decimal
from typing import Any

import numpy as np
import pulsar.schema  # type: ignore[import-untyped]  # publishes no types
import pyarrow as pa  # type: ignore[import-untyped]  # publishes no types
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from magnetar.columnar.avro.write.writer import document_of
from magnetar.columnar.json.reader import Json
from magnetar.columnar.json.writer import check_json, write_json
from magnetar.model.errors import InvalidValueError
from magnetar.model.schemas import SchemaDefinition, SchemaType
from magnetar.schema_definitions.avro import parse
from tests.support.avro_cases import INTS, LONGS, TEXTS, rows

BRIEF = settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))
POINT = {
    "type": "record",
    "name": "P",
    "fields": [{"name": "x", "type": "int"}, {"name": "y", "type": ["null", "long"]}],
}
SCHEMA = {
    "type": "record",
    "name": "R",
    "fields": [
        {"name": "a", "type": "long"},
        {"name": "b", "type": ["null", "string"], "default": None},
        {"name": "c", "type": {"type": "array", "items": ["null", POINT]}},
        {"name": "d", "type": "double"},
        {"name": "e", "type": "boolean", "default": True},
    ],
}
POINTS = st.one_of(st.none(), st.fixed_dictionaries({"x": INTS, "y": st.one_of(st.none(), LONGS)}))
RECORDS: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {
        "a": LONGS,
        "b": st.one_of(st.none(), TEXTS),
        "c": st.lists(POINTS, max_size=3),
        "d": st.floats(allow_nan=False, allow_infinity=False),
        "e": st.booleans(),
    }
)


def reader(schema: Any = None) -> Json:
    return Json(parse(json.dumps(schema or SCHEMA).encode()))


def read(schema: Any, *values: bytes | None) -> tuple[list[dict[str, Any]], list[Any]]:
    decoder = reader(schema)
    columns, unreadable = decoder.read(pa.array(values, pa.binary()), [(len(values), None)])
    return rows(decoder.schema, columns), unreadable


def fits(value: bytes) -> Any:
    """The model: what json makes of a value of `POINT`, None if it is none."""
    try:
        found = json.loads(value)
    except ValueError:
        return None
    if not isinstance(found, dict):
        return None
    for name, size in (("x", 31), ("y", 63)):
        one = found.get(name)
        if one is not None and (type(one) is not int or not -(2**size) <= one < 2**size):
            return None
    return {"x": found.get("x"), "y": found.get("y")}


@BRIEF
@given(st.lists(RECORDS, max_size=6), st.sampled_from([None, 1]), st.booleans())
def test_what_json_writes_is_read(records: list[dict[str, Any]], indent: int | None, ascii_only: bool) -> None:
    values = [json.dumps(one, indent=indent, ensure_ascii=ascii_only).encode() for one in records]
    assert read(SCHEMA, *values) == (records, [])


@BRIEF
@given(
    st.lists(
        st.one_of(
            st.fixed_dictionaries({"x": INTS}, optional={"y": LONGS, "z": TEXTS}).map(
                lambda one: json.dumps(one).encode()
            ),
            st.sampled_from(
                [b"", b"{", b"}", b"{}", b"{}{}", b'{},"v":{}', b'{}}\n{"v":{}', b"5", b'{"x":"1"}', b'{"x":1.5}']
            ),
            st.sampled_from(
                [
                    b"[]",
                    b'{"x":99999999999}',
                    b"\xff",
                    b'{"x":1}, "w": 3',
                    b'{"z":"},{"}',
                    b'{"x":true}',
                    b'{"y":{}}',
                    b'{},"x":"',
                ]
            ),
        ),
        max_size=8,
    )
)
def test_a_value_that_does_not_fit_is_alone(values: list[bytes]) -> None:
    found, unreadable = read(POINT, *values)
    bad = {one.row for one in unreadable}
    for row, value in enumerate(values):
        expected = fits(value)
        assert (row in bad) == (expected is None), value
        assert found[row] == (expected or {"x": None, "y": None})


def test_missing_fields_tombstones_and_defaults() -> None:
    found, unreadable = read(SCHEMA, b'{"a": 1, "other": [1, {"x": 2}]}', None, b'{"e": false}')
    assert not unreadable
    assert found[0] == {"a": 1, "b": None, "c": None, "d": None, "e": True}
    assert set(found[1].values()) == {None}
    assert found[2]["e"] is False


def test_types_that_arrow_does_not_read_and_moments() -> None:
    moment = {"type": "long", "logicalType": "timestamp-millis"}
    fast: dict[str, Any] = {
        "type": "record",
        "name": "M",
        "fields": [{"name": "t", "type": moment}, {"name": "ts", "type": {"type": "array", "items": moment}}],
    }
    at = dt.datetime(1970, 1, 1, 0, 0, 2, tzinfo=dt.UTC)
    expected = {"t": at, "ts": [at]}
    assert read(fast, b'{"t": 2000, "ts": [2000]}', b'{"t": 9999999999999999, "ts": []}')[0][0] == expected
    assert [one.row for one in read(fast, b'{"t": 9999999999999999}', b"{}")[1]] == [0]
    money = {"type": "bytes", "logicalType": "decimal", "precision": 20, "scale": 3}
    slow = {**fast, "fields": [*fast["fields"], {"name": "m", "type": {"type": "map", "values": "int"}}]}
    slow["fields"] += [{"name": "b", "type": "bytes"}, {"name": "n", "type": money}]
    good = b'{"t": 2000, "ts": [2000], "m": {"k": 1}, "b": "AP8=", "n": 12345678901234567.125}'
    found, unreadable = read(slow, good, b'{"m": {"k": "x"}}', None, b'{"n": 1.0001}', b"{")
    assert found[0] == {**expected, "m": [("k", 1)], "b": b"\0\xff", "n": Decimal("12345678901234567.125")}
    assert [one.row for one in unreadable] == [1, 3, 4]
    assert "field m{}: 'x' is no int" in unreadable[0].reason


@pytest.mark.parametrize(
    "bad",
    [b'{"m": ' + b"[" * 200_000, b'{"m": {"k": "\\ud800"}}', b'{"m": {"\\udfff": "v"}}', b'{"s": "\\ud83d"}'],
    ids=["nesting", "half in a value", "half in a key", "half in a text"],
)
def test_no_value_stops_those_that_are_read_one_by_one(bad: bytes) -> None:
    """Python's reader gives up with other errors than that it is no JSON."""
    fields = [{"name": "m", "type": {"type": "map", "values": "string"}}, {"name": "s", "type": "string"}]
    found, unreadable = read({"type": "record", "name": "S", "fields": fields}, b'{"s": "a"}', bad, b'{"s": "b"}')
    assert [one["s"] for one in found] == ["a", None, "b"]
    assert [one.row for one in unreadable] == [1]


def test_columns_are_written_so_that_they_are_read_again() -> None:
    at = dt.datetime(2013, 1, 1, 10, 15, 0, 7, dt.UTC)
    kinds = {
        "t": pa.timestamp("us", "UTC"),
        "d": pa.date32(),
        "s": pa.struct([pa.field("x", pa.int16()), pa.field("ts", pa.list_(pa.timestamp("us", "UTC")))]),
        "v": pa.string(),
    }
    table: dict[str, list[Any]] = {
        "t": [at, None, at],
        "d": [dt.date(1969, 12, 31), None, None],
        "s": [{"x": 1, "ts": [at, None]}, None, {"x": None, "ts": None}],
        "v": ['a"\n', None, "\u00e9"],
    }
    columns = {name: pa.array(values, kinds[name]) for name, values in table.items()}
    values = write_json(columns, np.array([True, False, True]))
    assert values[1].as_py() is None
    assert values[2].as_py().endswith(b"}")
    decoder = reader(document_of(pa.schema(list(kinds.items()))))
    found, unreadable = decoder.read(values, [(3, None)])
    assert not unreadable
    assert rows(decoder.schema, found) == [{name: table[name][row] for name in kinds} for row in range(3)]
    with pytest.raises(InvalidValueError, match=r"column 'm\.b' is binary, which is not written as JSON"):
        check_json([pa.field("m", pa.struct([pa.field("b", pa.binary())]))])


def test_a_union_of_several_types_is_refused() -> None:
    with pytest.raises(InvalidValueError, match=r"the value|value: union of int, string cannot be inferred"):
        reader(["int", "string"])


def record(**fields: Any) -> dict[str, Any]:
    return {"type": "record", "name": "R", "fields": [{"name": name, **kind} for name, kind in fields.items()]}


COLORS = {"type": "enum", "name": "Color", "symbols": ["RED", "GREEN"]}


@pytest.mark.parametrize("slow", [False, True])
def test_an_enum_is_one_of_its_symbols(slow: bool) -> None:
    """Another value than a symbol does not fit, and its neighbours are not affected."""
    more = {"m": {"type": {"type": "map", "values": "int"}, "default": {}}} if slow else {}
    schema = record(
        c={"type": COLORS}, l={"type": {"type": "array", "items": ["null", "Color"]}, "default": []}, **more
    )
    values = [b'{"c": "RED"}', b'{"c": "BLUE"}', None, b'{"c": "GREEN", "l": [null, "RED", "PINK"]}', b'{"l": ["RED"]}']
    found, unreadable = read(schema, *values)
    assert [one["c"] for one in found] == ["RED", None, None, None, None]
    assert [one.row for one in unreadable] == [1, 3] and found[4]["l"] == ["RED"]
    assert "'BLUE' is no symbol of enum Color" in unreadable[0].reason and "'PINK'" in unreadable[1].reason
    # With a default Avro's readers take that.
    schema["fields"][0]["type"] = {**COLORS, "default": "RED"}
    found, unreadable = read(schema, b'{"c": "BLUE"}', b'{"c": "GREEN", "l": ["BLUE"]}')
    assert not unreadable and [one["c"] for one in found] == ["RED", "GREEN"] and found[1]["l"] == ["RED"]


def test_enums_as_the_official_client_writes_them() -> None:
    """A number: the value of the Enum in the program that wrote it, which is in no schema, so that is what is shown."""

    class Light(enum.Enum):
        RED = 1
        GREEN = 2

    class Crossing(pulsar.schema.Record):  # type: ignore[misc]  # publishes no types
        light = Light
        count = pulsar.schema.Integer()

    writer = pulsar.schema.JsonSchema(Crossing)
    values = [writer.encode(Crossing(light=light, count=7)) for light in (Light.GREEN, Light.RED)]
    assert b'"light": 2' in values[0].replace(b'"light":2', b'"light": 2')
    found, unreadable = read(Crossing.schema(), *values, b'{"light": "RED", "count": 8}', b'{"light": true}')
    assert found[:3] == [{"light": "2", "count": 7}, {"light": "1", "count": 7}, {"light": "RED", "count": 8}]
    assert [one.row for one in unreadable] == [3]


@pytest.mark.parametrize(
    ("old", "new", "value", "told"),
    [
        ({"type": "double"}, {"type": "float"}, 0.1, "double"),
        ({"type": "long"}, {"type": "int"}, 1, "long"),
        ({"type": "string"}, {"type": "int"}, "1", "string"),
        ({"type": "int"}, {"type": "double"}, 1, None),
        ({"type": "int"}, {"type": ["null", "long"], "default": None}, 1, None),
    ],
)
def test_old_versions_are_resolved_as_avro_does(old: Any, new: Any, value: Any, told: str | None) -> None:
    """An old value is read by the rule of `onNewSchema`: a double is no float, whatever its digits."""
    versions = {b"\0" * 8: record(x=old), b"\0" * 7 + b"\1": record(x=new)}
    asked: list[bytes] = []

    def lookup(version: bytes) -> SchemaDefinition:
        asked.append(version)
        return SchemaDefinition(SchemaType.JSON, json.dumps(versions[version]).encode())

    decoder = Json(parse(json.dumps(record(x=new)).encode()), lookup, "version 1")
    values = pa.array([b'{"x": %s}' % json.dumps(value).encode()] * 3, pa.binary())
    runs = [(1, b"\0" * 8), (1, None), (1, b"\0" * 8)]
    for _ in range(2):
        columns, unreadable = decoder.read(values, runs)
        if told is None:
            assert not unreadable and columns[0].to_pylist() == [value] * 3
        else:
            ours = [one for one in unreadable if one.new_schema]
            assert [one.row for one in ours] == [0, 2]
            assert (
                ours[0].reason.startswith("schema version 0 cannot be read as version 1: ") and told in ours[0].reason
            )
    assert asked == [b"\0" * 8]


def test_a_field_that_an_old_version_lacks_needs_a_default() -> None:
    old, new = record(x={"type": "int"}), record(x={"type": "int"}, y={"type": "string"})

    def lookup(_: bytes) -> SchemaDefinition:
        return SchemaDefinition(SchemaType.JSON, json.dumps(old).encode())

    values, runs = pa.array([b'{"x": 1}'], pa.binary()), [(1, b"\0" * 8)]
    (found,) = Json(parse(json.dumps(new).encode()), lookup).read(values, runs).unreadable
    assert found.new_schema and "y" in found.reason and "default" in found.reason
    new["fields"][1]["default"] = "none"
    decoded = Json(parse(json.dumps(new).encode()), lookup).read(values, runs)
    assert not decoded.unreadable and [one.to_pylist() for one in decoded.columns] == [[1], ["none"]]


def test_a_schema_of_the_old_form_says_nothing_of_types() -> None:
    """Java clients before 2.1 registered JSON Schema and not Avro; values are read by their fields."""
    lookup = lambda _: SchemaDefinition(SchemaType.JSON, b'{"type": "object", "properties": {}}')  # noqa: E731
    decoded = Json(parse(json.dumps(record(x={"type": "int"})).encode()), lookup).read(
        pa.array([b'{"x": 1}'], pa.binary()), [(1, b"\0" * 8)]
    )
    assert not decoded.unreadable and decoded.columns[0].to_pylist() == [1]


TEXTS_ONLY = {"type": "record", "name": "T", "fields": [{"name": "s", "type": ["null", "string"]}]}
WITH_MAP = {**TEXTS_ONLY, "fields": [*TEXTS_ONLY["fields"], {"name": "m", "type": {"type": "map", "values": "int"}}]}


@pytest.mark.parametrize("schema", [TEXTS_ONLY, WITH_MAP], ids=["at once", "one by one"])
@pytest.mark.parametrize(
    "value",
    [b'{"s":"\xff"}', b'{"s":"\xed\xa0\x80"}', b'\xef\xbb\xbf{"s":"a"}', '{"s":"a"}'.encode("utf-16")],
    ids=["no UTF-8", "half of a pair", "a mark of byte order", "UTF-16"],
)
def test_json_is_utf_8(schema: Any, value: bytes) -> None:
    """Arrow's reader would give the bytes to Spark as a text, and Python's would guess another encoding."""
    found, unreadable = read(schema, b'{"s":"before"}', value, b'{"s":"behind"}')
    assert [one["s"] for one in found] == ["before", None, "behind"]
    assert [one.row for one in unreadable] == [1]


@pytest.mark.parametrize("schema", [TEXTS_ONLY, WITH_MAP], ids=["at once", "one by one"])
def test_of_a_member_that_is_there_twice_the_last_counts(schema: Any) -> None:
    found, unreadable = read(schema, b'{"s":"before"}', b'{"s":"first","s":"last"}')
    assert ([one["s"] for one in found], unreadable) == (["before", "last"], [])


@pytest.mark.parametrize("others", [[], [{"name": "m", "type": {"type": "map", "values": "int"}}]], ids=["", "slowly"])
def test_a_number_that_is_too_large_is_no_infinity(others: list[Any]) -> None:
    schema = {"type": "record", "name": "D", "fields": [{"name": "d", "type": ["null", "double"]}, *others]}
    found, unreadable = read(schema, b'{"d":1e400}', b'{"d":Infinity}', b'{"d":1e300}')
    assert [one["d"] for one in found] == [None, float("inf"), 1e300]
    assert [one.row for one in unreadable] == [0]


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), float("-inf")])
@pytest.mark.parametrize(
    ("wrap", "kind", "name"),
    [
        (lambda one: one, pa.float64(), "d"),
        (lambda one: one, pa.float32(), "d"),
        (lambda one: [1.0, one], pa.list_(pa.float64()), "d"),
        (lambda one: [{"x": one}], pa.list_(pa.struct([pa.field("x", pa.float64())])), "d.x"),
    ],
    ids=["double", "float", "list", "struct"],
)
def test_what_is_no_number_of_json_is_not_written_as_null(bad: float, wrap: Any, kind: Any, name: str) -> None:
    column = pa.array([wrap(1.5), wrap(bad), None], kind)
    with pytest.raises(InvalidValueError, match=f"'{name}' has NaN or an infinity"):
        write_json({"d": column}, np.ones(3, bool))
    # What is not looked at does not count: another slice, and what lies under a null.
    assert len(write_json({"d": column[:1]}, np.ones(1, bool))) == 1


def test_what_lies_under_a_null_is_no_number_that_is_written() -> None:
    inner = pa.array([float("nan"), 1.0], pa.float64())
    column = pa.StructArray.from_arrays([inner], ["x"], mask=pa.array([True, False]))
    assert write_json({"d": column}, np.ones(2, bool)).to_pylist() == [b'{"d":null}', b'{"d":{"x":1.0}}']
