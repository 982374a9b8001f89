"""Values that cannot be read, and Spark's names of Arrow's types."""

from __future__ import annotations

import pyarrow as pa  # type: ignore[import-untyped]  # publishes no types
import pytest

from magnetar.columnar.sql_types import sql_columns
from magnetar.columnar.values import Binary, Text, UndecodableError, ValueDecoder
from magnetar.model.errors import InvalidValueError

VALUES = pa.array([b"a", b"\xff", None], pa.binary())
RUNS = [(3, None)]


def test_binary_and_text_give_the_values_themselves() -> None:
    decoder = ValueDecoder(Binary())
    assert [column.to_pylist() for column in decoder.decode(VALUES, RUNS)] == [[b"a", b"\xff", None]]


def test_an_unreadable_value_fails_or_is_null_or_is_shown() -> None:
    with pytest.raises(UndecodableError, match="value=binary") as raised:
        ValueDecoder(Text(), "fail").decode(VALUES, RUNS)
    assert raised.value.row == 1
    assert [column.to_pylist() for column in ValueDecoder(Text(), "null").decode(VALUES, RUNS)] == [["a", None, None]]
    shown = ValueDecoder(Text(), "column")
    value, error, raw = (column.to_pylist() for column in shown.decode(VALUES, RUNS))
    assert value == ["a", None, None]
    assert error[1].startswith("no UTF-8 text")
    assert (error[0], error[2], raw) == (None, None, [None, b"\xff", None])
    assert shown.schema.names == ["value", "__decodeError", "__rawValue"]
    readable = [column.to_pylist() for column in shown.decode(VALUES[:1], [(1, None)])]
    assert readable == [["a"], [None], [None]]


def test_arrow_types_have_spark_names() -> None:
    nested = pa.struct([pa.field("a`b", pa.list_(pa.int8())), pa.field("m", pa.map_(pa.string(), pa.decimal128(9, 2)))])
    schema = pa.schema([pa.field("n", nested), pa.field("t", pa.timestamp("us", tz="UTC"))])
    assert sql_columns(schema) == "`n` struct<`a``b`:array<tinyint>,`m`:map<string,decimal(9,2)>>, `t` timestamp"
    with pytest.raises(InvalidValueError, match="no counterpart"):
        sql_columns(pa.schema([pa.field("x", pa.uint64())]))
