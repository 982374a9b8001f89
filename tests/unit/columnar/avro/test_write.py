"""Columns to Avro, against fastavro and our own reader."""

from __future__ import annotations

import io
import json
from typing import Any

import fastavro
import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]  # publishes no types
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from magnetar.columnar.avro.write.writer import AvroWriter, document_of
from magnetar.model.errors import InvalidValueError
from magnetar.schema_definitions.avro import parse
from tests.support.avro_cases import (
    Case,
    arrays,
    avro,
    enums,
    fixed,
    maps,
    optional,
    primitives,
    record,
    rows,
    written,
)

BRIEF = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))


def types(depth: int) -> st.SearchStrategy[Case]:
    """What columns can be written as: no unions of several types."""
    leaves = st.one_of(primitives(), enums(), fixed())
    if not depth:
        return leaves
    inner = types(depth - 1)
    options = st.one_of(leaves, inner.map(arrays), inner.map(maps), st.lists(inner, min_size=1, max_size=3).map(record))
    return st.one_of(options, leaves.map(optional))


@BRIEF
@given(st.data())
def test_what_is_read_is_written_again(data: st.DataObject) -> None:
    case = record(data.draw(st.lists(types(2), min_size=1, max_size=4)))
    pairs = data.draw(st.lists(case.values, max_size=5))
    skip = data.draw(st.integers(0, len(pairs)))
    values = written(case.schema, *[one for one, _ in pairs])
    reader = avro(case.schema)
    columns, _ = reader.read(values, [(len(values), None)])
    writer = AvroWriter(parse(json.dumps(case.schema).encode()), reader.schema.names)
    there = np.ones(len(pairs) - skip, bool)
    # Slices have offsets into their buffers, lists inside them others.
    sliced = {name: column[skip:] for name, column in zip(reader.schema.names, columns, strict=True)}
    again = writer.write(sliced, there)
    known = fastavro.parse_schema(case.schema)
    for value, (_, expected) in zip(again.to_pylist(), pairs[skip:], strict=True):
        fastavro.schemaless_reader(io.BytesIO(value), known)
        found, unreadable = reader.read(pa.array([value], pa.binary()), [(1, None)])
        assert not unreadable
        assert rows(reader.schema, found) == [expected]


def test_a_schema_made_from_columns() -> None:
    nested = pa.struct([pa.field("x", pa.int16()), pa.field("d", pa.decimal128(30, 3))])
    table: dict[str, list[Any]] = {
        "a": [1, None, 3],
        "s": [{"x": 5, "d": "12345.678"}, None, {"x": None, "d": "-0.001"}],
        "m": [[("k", 1.5)], None, []],
        "t": [0, 10**15, None],
        "l": [["x", None], [], None],
    }
    kinds = {
        "a": pa.int8(),
        "s": nested,
        "m": pa.map_(pa.string(), pa.float64()),
        "t": pa.timestamp("us", "UTC"),
        "l": pa.list_(pa.string()),
    }
    schema = pa.schema(list(kinds.items()))
    from decimal import Decimal

    for one in table["s"]:
        if one is not None:
            one["d"] = Decimal(one["d"])
    columns = {name: pa.array(values, kinds[name]) for name, values in table.items()}
    document = document_of(schema)
    values = AvroWriter(parse(json.dumps(document).encode()), list(kinds)).write(columns, np.array([True, True, False]))
    assert values[2].as_py() is None
    known = fastavro.parse_schema(document)
    first: Any = fastavro.schemaless_reader(io.BytesIO(values[0].as_py()), known)
    assert (first["a"], first["s"]["x"], first["s"]["d"], first["m"]) == (1, 5, Decimal("12345.678"), {"k": 1.5})
    reader = avro(document)
    found, unreadable = reader.read(values[:2], [(2, None)])
    assert not unreadable
    expected = [{name: columns[name][row].as_py() for name in kinds} for row in range(2)]
    assert rows(reader.schema, found) == expected


def test_mistakes_are_named() -> None:
    kind = {"type": "enum", "name": "E", "symbols": ["A", "B"]}
    fields = [{"name": "e", "type": kind}, {"name": "o", "type": ["null", "int"], "default": None}]
    schema = parse(json.dumps({"type": "record", "name": "R", "fields": fields}).encode())
    writer = AvroWriter(schema, ["e"])
    there = np.ones(2, bool)
    assert writer.write({"e": pa.array(["B", "A"])}, there).to_pylist() == [b"\x02\x00", b"\x00\x00"]
    with pytest.raises(InvalidValueError, match="row 1: field e is none of the enum's symbols"):
        writer.write({"e": pa.array(["B", "X"])}, there)
    with pytest.raises(InvalidValueError, match="row 0: field e is null, and its type has no null"):
        writer.write({"e": pa.array([None, "X"])}, there)
    with pytest.raises(InvalidValueError, match="'x' is no field of record R"):
        AvroWriter(schema, ["e", "x"])
    with pytest.raises(InvalidValueError, match="no column for field 'e', which cannot be null"):
        AvroWriter(schema, ["o"])
    with pytest.raises(InvalidValueError, match="column 'o' is string, its field is int32"):
        AvroWriter(schema, ["e", "o"]).write({"e": pa.array(["A"]), "o": pa.array(["x"])}, np.ones(1, bool))
    with pytest.raises(InvalidValueError, match="Avro has no type"):
        document_of(pa.schema([pa.field("v", pa.duration("s"))]))
    long = "x" * 5000
    text = AvroWriter(parse(json.dumps(document_of([pa.field("v", pa.string())])).encode()), ["v"])
    grown = text.write({"v": pa.array([long] * 50)}, np.ones(50, bool)).to_pylist()
    assert {len(one) for one in grown} == {5003}
