"""Avro schemas and values for hypothesis, and what a value must look like in Arrow's Python form."""

from __future__ import annotations

import io
import itertools
import json
from typing import Any, NamedTuple

import fastavro
import pyarrow as pa  # type: ignore[import-untyped]  # publishes no types
from hypothesis import strategies as st

from magnetar.columnar.avro.read.reader import Avro
from magnetar.schema_definitions.avro import parse


class Case(NamedTuple):
    """A type with a way to draw values: each as fastavro wants it and as Arrow shows it."""

    schema: Any
    values: st.SearchStrategy[tuple[Any, Any]]


NAMES = itertools.count()
INTS = st.integers(-(2**31), 2**31 - 1)
LONGS = st.integers(-(2**63), 2**63 - 1)
DOUBLES = st.floats(allow_nan=False)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)


def _same(schema: Any, values: st.SearchStrategy[Any]) -> Case:
    return Case(schema, values.map(lambda one: (one, one)))


def primitives() -> st.SearchStrategy[Case]:
    return st.sampled_from(
        [
            _same("boolean", st.booleans()),
            _same("int", INTS),
            _same("long", LONGS),
            _same("float", st.floats(width=32, allow_nan=False)),
            _same("double", DOUBLES),
            _same("bytes", st.binary(max_size=6)),
            _same("string", TEXTS),
        ]
    )


def enums() -> st.SearchStrategy[Case]:
    def make(symbols: list[str]) -> Case:
        return _same({"type": "enum", "name": f"E{next(NAMES)}", "symbols": symbols}, st.sampled_from(symbols))

    return st.lists(st.sampled_from(["A", "B", "C", "D"]), min_size=1, unique=True).map(make)


def fixed() -> st.SearchStrategy[Case]:
    def make(size: int) -> Case:
        schema = {"type": "fixed", "name": f"F{next(NAMES)}", "size": size}
        return _same(schema, st.binary(min_size=size, max_size=size))

    return st.integers(1, 20).map(make)


def optional(case: Case) -> Case:
    """Null or something, in either order."""
    values = st.one_of(st.just((None, None)), case.values)
    order = ["null", case.schema] if len(json.dumps(case.schema)) % 2 else [case.schema, "null"]
    return Case(order, values)


def arrays(case: Case) -> Case:
    values = st.lists(case.values, max_size=3).map(lambda found: ([one for one, _ in found], [two for _, two in found]))
    return Case({"type": "array", "items": case.schema}, values)


def maps(case: Case) -> Case:
    values = st.dictionaries(TEXTS, case.values, max_size=3).map(
        lambda found: ({key: one for key, (one, _) in found.items()}, [(key, two) for key, (_, two) in found.items()])
    )
    return Case({"type": "map", "values": case.schema}, values)


def record(cases: list[Case]) -> Case:
    schema = {
        "type": "record",
        "name": f"R{next(NAMES)}",
        "fields": [{"name": f"f{index}", "type": case.schema} for index, case in enumerate(cases)],
    }
    values = st.tuples(*(case.values for case in cases)).map(
        lambda found: (
            {f"f{index}": one for index, (one, _) in enumerate(found)},
            {f"f{index}": two for index, (_, two) in enumerate(found)},
        )
    )
    return Case(schema, values)


def union_of_three() -> Case:
    """Null, string, or an array of int: a struct of members."""

    def members(text: Any, numbers: Any) -> dict[str, Any]:
        return {"member0": text, "member1": numbers}

    return Case(
        ["null", "string", {"type": "array", "items": "int"}],
        st.one_of(
            st.just((None, None)),
            TEXTS.map(lambda one: (one, members(one, None))),
            st.lists(INTS, max_size=3).map(lambda one: (one, members(None, one))),
        ),
    )


def types(depth: int) -> st.SearchStrategy[Case]:
    """Any type, nested at most ``depth`` deep."""
    leaves = st.one_of(primitives(), enums(), fixed())
    if not depth:
        return leaves
    inner = types(depth - 1)
    bare = st.one_of(leaves, inner.map(arrays), inner.map(maps), st.lists(inner, min_size=1, max_size=3).map(record))
    return st.one_of(bare, leaves.map(optional), st.builds(union_of_three), st.lists(inner, min_size=1).map(record))


def written(schema: Any, *values: Any) -> Any:
    """Return the values as messages hold them, as fastavro writes them; a value that is bytes already stays."""
    known = fastavro.parse_schema(schema)
    found = []
    for value in values:
        out = io.BytesIO()
        fastavro.schemaless_writer(out, known, value)
        found.append(out.getvalue())
    return pa.array(found, pa.binary())


def avro(schema: Any, **options: Any) -> Avro:
    """A reader of a schema that is given as JSON's Python form."""
    return Avro(parse(json.dumps(schema).encode()), **options)


def rows(schema: Any, columns: list[Any]) -> list[dict[str, Any]]:
    """Checked and in Python's form."""
    for column in columns:
        column.validate(full=True)
    found: list[dict[str, Any]] = pa.RecordBatch.from_arrays(columns, schema=schema).to_pylist()
    return found
