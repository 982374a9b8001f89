"""The demo's data and its judge: JSON that is the data set, and differences that are found."""

from __future__ import annotations

import json

import pytest
from examples.demo import flights
from examples.demo.run import compare

pytest.importorskip("pyspark")


@pytest.fixture(scope="module")
def table() -> object:
    return flights.load()


def test_messages_are_the_rows(table) -> None:  # type: ignore[no-untyped-def]  # an Arrow table has no type
    assert table.num_rows == 336_776
    some = table.take([0, 1, 838, 336_775])
    made = flights.messages(some).to_pylist()
    for row, message in zip(some.to_pylist(), made, strict=True):
        departure = row.pop("departure")
        row["time_hour"] = row["time_hour"].strftime("%Y-%m-%dT%H:%M:%SZ")
        assert json.loads(message["value"]) == row
        assert message["__key"] == row["tailnum"]
        assert departure == message["__eventTime"]
        # hour and minute are New York's, so only the minutes agree with UTC's.
        assert departure.minute == row["minute"]
    assert any(value is None for value in json.loads(made[3]["value"]).values()), "a cancelled flight has no times"


def test_every_kind_of_difference_is_found(table) -> None:  # type: ignore[no-untyped-def]  # see above
    expected = flights.expected(table)
    assert compare(flights.expected(table), expected) == []
    assert compare(expected.slice(1), expected) == ["19,485 groups instead of 19,486"]
    for name in ("flights", "departure_delay", "hour"):
        column = expected[name].to_pylist()
        column[7] = column[8] if name == "hour" else column[7] + 1
        wrong = expected.set_column(expected.column_names.index(name), name, [column])
        assert compare(wrong, expected) == [f"column {name} differs"]
    totals = flights.totals(expected).to_pylist()
    assert sum(row["flights"] for row in totals) == table.num_rows
    assert sum(row["groups"] for row in totals) == expected.num_rows
