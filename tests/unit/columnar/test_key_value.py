"""KEY_VALUE, with the key inside the value or beside it."""

from __future__ import annotations

import struct

import pyarrow as pa  # type: ignore[import-untyped]  # publishes no types
from hypothesis import given, settings
from hypothesis import strategies as st

from magnetar.columnar.key_value import KeyValueValues, join_pairs, split_pairs
from magnetar.columnar.primitives import Primitives
from magnetar.columnar.values import Text
from magnetar.model.schemas import SchemaType
from tests.support.avro_cases import avro, rows, written

PART = st.one_of(st.none(), st.binary(max_size=5))
RECORD = {"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]}


def inline(key: bytes | None, value: bytes | None) -> bytes:
    parts = [struct.pack(">i", -1) if one is None else struct.pack(">i", len(one)) + one for one in (key, value)]
    return b"".join(parts)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.one_of(st.none(), st.tuples(PART, PART)), max_size=6), st.integers(0, 2))
def test_pairs_are_taken_apart(pairs: list[tuple[bytes | None, bytes | None] | None], skip: int) -> None:
    values = pa.array([None if one is None else inline(*one) for one in pairs], pa.binary())[skip:]
    keys, found, wrong = split_pairs(values)
    expected = [(None, None) if one is None else one for one in pairs][skip:]
    assert list(zip(keys.to_pylist(), found.to_pylist(), strict=True)) == expected
    assert not wrong


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(PART, PART), max_size=6), st.integers(0, 2))
def test_pairs_are_put_together(pairs: list[tuple[bytes | None, bytes | None]], skip: int) -> None:
    keys, values = (pa.array([one[half] for one in pairs], pa.binary())[skip:] for half in (0, 1))
    expected = [None if one == (None, None) else inline(*one) for one in pairs][skip:]
    assert join_pairs(keys, values).to_pylist() == expected


@settings(max_examples=100, deadline=None)
@given(st.lists(st.binary(max_size=16), max_size=6))
def test_bytes_that_are_no_pairs(values: list[bytes]) -> None:
    keys, found, wrong = split_pairs(pa.array(values, pa.binary()))
    for row, value in enumerate(values):
        if row in wrong:
            assert (keys[row].as_py(), found[row].as_py()) == (None, None)
        else:
            parts = [None if one is None else one for one in (keys[row].as_py(), found[row].as_py())]
            assert len(inline(*parts)) == len(value)


def test_a_part_is_null_by_its_size_of_minus_one_only() -> None:
    null, wrong = struct.pack(">i", -1), struct.pack(">i", -2)
    values = pa.array([null + null, wrong + null, null + wrong, wrong + wrong], pa.binary())
    assert split_pairs(values)[2] == [1, 2, 3]


def test_each_part_by_its_schema() -> None:
    record = written(RECORD, {"a": 5})[0].as_py()
    inside = KeyValueValues(Primitives(SchemaType.INT32), avro(RECORD), separated=False)
    values = pa.array([inline(b"\0\0\0\7", record), None, inline(b"\0", record), inline(None, b""), b"x"], pa.binary())
    columns, unreadable = inside.read(values, [(5, None)])
    nothing = {"key": None, "value": None}
    assert rows(inside.schema, columns) == [{"key": 7, "value": {"a": 5}}, *[nothing] * 4]
    assert [one.row for one in unreadable] == [2, 3, 4]
    assert unreadable[0].reason.startswith("key: 1 bytes are no INT32")
    assert unreadable[1].reason.startswith("value: does not fit Avro")


def test_the_key_beside_the_value() -> None:
    pairs = KeyValueValues(Text(), avro(RECORD), separated=True)
    assert pairs.needs_keys
    values = pa.array([written(RECORD, {"a": 1})[0].as_py(), None], pa.binary())
    columns, unreadable = pairs.read(values, [(2, None)], pa.array([b"k", b"gone"], pa.binary()))
    assert rows(pairs.schema, columns) == [{"key": "k", "value": {"a": 1}}, {"key": "gone", "value": None}]
    assert not unreadable
