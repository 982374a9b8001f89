"""Pushed filters do what SQL does, row by row; what they say of windows and topics never loses a row."""

from __future__ import annotations

import datetime as dt
import operator
from collections.abc import Callable
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]  # publishes no types
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from magnetar.client.read_position import START, ReadPosition
from magnetar.spark.source.planning.pushed_filters import Window, understood
from magnetar.spark.source.planning.range_filter import window_bounds

UTC = dt.UTC
SCHEMA = pa.schema(
    [
        ("__key", pa.binary()),
        ("__topic", pa.string()),
        ("__ledgerId", pa.int64()),
        ("__entryId", pa.int64()),
        ("__publishTime", pa.timestamp("us", tz="UTC")),
        ("price", pa.float64()),
    ]
)


def moment(ms: int) -> dt.datetime:
    return dt.datetime(2013, 1, 1, tzinfo=UTC) + dt.timedelta(milliseconds=ms)


def make(name: str, column: str, value: Any = None, negated: bool = False) -> Any:
    kind = type(name, (), {"attribute": (column,), "value": value})
    return type("Not", (), {"child": kind()})() if negated else kind()


VALUES = {
    "__key": st.binary(max_size=2),
    "__topic": st.text("ab", max_size=3),
    "__ledgerId": st.integers(0, 4),
    "__entryId": st.integers(0, 4),
    "__publishTime": st.integers(0, 4).map(moment),
}
rows = st.fixed_dictionaries({name: st.none() | values for name, values in VALUES.items()})
TRUTHS: dict[str, Callable[[Any, Any], Any]] = {
    "EqualTo": operator.eq,
    "GreaterThan": operator.gt,
    "GreaterThanOrEqual": operator.ge,
    "LessThan": operator.lt,
    "LessThanOrEqual": operator.le,
    "StringStartsWith": str.startswith,
    "StringEndsWith": str.endswith,
    "StringContains": str.__contains__,
}
COMPARED = ("EqualTo", "EqualNullSafe", "GreaterThan", "GreaterThanOrEqual", "LessThan", "LessThanOrEqual")


@st.composite
def filters(draw: st.DrawFn) -> Any:
    column = draw(st.sampled_from(list(VALUES)))
    names = [*COMPARED, "In", "IsNull", "IsNotNull"]
    if column == "__topic":
        names += ["StringStartsWith", "StringEndsWith", "StringContains"]
    name = draw(st.sampled_from(names))
    value = draw(VALUES[column])
    if name == "In":
        value = draw(st.lists(st.none() | VALUES[column], min_size=1, max_size=3))
    return make(name, column, value, draw(st.booleans()))


def sql(one: Any, row: dict[str, Any]) -> bool | None:
    """SQL's truth of one filter: the naive model."""
    if type(one).__name__ == "Not":
        truth = sql(one.child, row)
        return None if truth is None else not truth
    name, have, value = type(one).__name__, row[one.attribute[0]], one.value
    if name in ("IsNull", "IsNotNull"):
        return (have is None) == (name == "IsNull")
    if name == "EqualNullSafe":
        return bool(have == value)
    if have is None:
        return None
    if name == "In":
        return True if have in [one for one in value if one is not None] else (None if None in value else False)
    return bool(TRUTHS[name](have, value))


NULLS = [dict.fromkeys(VALUES), {**dict.fromkeys(VALUES), "__ledgerId": 1}]


@example(NULLS, [make("In", "__ledgerId", [2], negated=True)])
@example(NULLS, [make("In", "__ledgerId", [2, None], negated=True)])
@example(
    [dict.fromkeys(VALUES, None) | {"__entryId": 1, "__ledgerId": 0, "__publishTime": moment(0)}],
    [make("IsNotNull", "__entryId", 0)],
)
@settings(deadline=None)
@given(st.lists(rows, max_size=8), st.lists(filters(), max_size=3))
def test_rows_are_those_that_sql_keeps(table: list[dict[str, Any]], given_filters: list[Any]) -> None:
    pushed, left = understood(given_filters, SCHEMA)
    assert left == []
    table = [{**row, "price": 1.0} for row in table]
    kept = [row for row in table if all(sql(one, row) is True for one in given_filters)]
    batch = pa.RecordBatch.from_pylist(table, SCHEMA)
    assert pushed.rows(batch).to_pylist() == kept
    for row in kept:
        if None in (row["__ledgerId"], row["__entryId"], row["__publishTime"]):
            continue
        ms = int(row["__publishTime"].timestamp() * 1000)
        assert pushed.window.keeps(row["__ledgerId"], row["__entryId"], ms)
        start, end = window_bounds(pushed.window)
        assert start <= ReadPosition(row["__ledgerId"], row["__entryId"]) < end


def test_a_window_is_what_the_filters_allow() -> None:
    pushed, _ = understood(
        [
            make("EqualTo", "__ledgerId", 7),
            make("GreaterThan", "__entryId", 3),
            make("LessThanOrEqual", "__entryId", 9),
            make("GreaterThanOrEqual", "__publishTime", moment(5)),
            make("LessThan", "__publishTime", moment(8)),
        ],
        SCHEMA,
    )
    base = int(moment(0).timestamp() * 1000)
    assert pushed.window == Window(7, 7, 4, 9, base + 5, base + 7)
    assert window_bounds(pushed.window) == (ReadPosition(7, 4), ReadPosition(7, 10))
    nothing, _ = understood([make("EqualTo", "__ledgerId", 7), make("EqualTo", "__ledgerId", 8)], SCHEMA)
    assert window_bounds(nothing.window) == (START, START)


@pytest.mark.parametrize(
    "one",
    [
        make("EqualTo", "price", 1.0),
        make("EqualTo", "nowhere", 1),
        make("EqualTo", "__ledgerId", "seven"),
        make("GreaterThan", "__ledgerId", 1 << 70),
        make("StringContains", "__key", b"x"),
        make("Sounds", "__topic", "like"),
        type("EqualTo", (), {"attribute": ("a", "b"), "value": 1})(),
    ],
)
def test_what_is_not_understood_stays_with_spark(one: Any) -> None:
    pushed, left = understood([one], SCHEMA)
    assert (pushed.conditions, left) == ((), [one])


def test_topics_without_a_wanted_row_are_left_out() -> None:
    names = [f"persistent://public/default/t-partition-{number}" for number in range(3)]
    schema = pa.schema([("__partition", pa.int32()), ("__topic", pa.string()), ("value", pa.string())])

    def kept(*filters: Any) -> list[int]:
        pushed, left = understood(filters, schema)
        assert left == []
        return [number for number, name in enumerate(names) if pushed.keeps_topic(name)]

    assert kept(make("EqualTo", "value", "x")) == [0, 1, 2]
    assert kept(make("In", "__partition", [0, 2, None])) == [0, 2]
    assert kept(make("EqualTo", "__topic", names[1], negated=True)) == [0, 2]
    assert kept(make("StringEndsWith", "__topic", "-2"), make("GreaterThan", "__partition", 0)) == [2]
