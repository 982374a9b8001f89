"""JSON to columns, against Python's own reading of it."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]  # publishes no types
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from magnetar.columnar.avro_writing import document_of
from magnetar.columnar.json_values import Json
from magnetar.columnar.json_writing import check_json, write_json
from magnetar.model.errors import InvalidValueError
from magnetar.schema.avro import parse
from tests.unit.columnar.avro_cases import INTS, LONGS, TEXTS, rows

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
    with pytest.raises(InvalidValueError, match=r"the value|value: union of int, string cannot be told"):
        reader(["int", "string"])
