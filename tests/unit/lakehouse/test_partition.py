"""Partition columns: their text, their values against pyiceberg's own, and rows split by partition."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]  # publishes no types
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyiceberg.transforms import parse_transform
from pyiceberg.types import BinaryType, DateType, IcebergType, LongType, StringType, TimestamptzType

from magnetar.lakehouse.model.partition import PartitionColumn, check, directory, parse, split
from magnetar.model.errors import InvalidValueError

MOMENTS = st.datetimes(dt.datetime(1900, 1, 1), dt.datetime(2100, 1, 1), timezones=st.just(dt.UTC))
COLUMNS: dict[str, tuple[pa.DataType, IcebergType, Any]] = {
    "number": (pa.int64(), LongType(), st.integers(-(2**63), 2**63 - 1)),
    "text": (pa.string(), StringType(), st.text(max_size=8)),
    "bytes": (pa.binary(), BinaryType(), st.binary(max_size=8)),
    "day": (pa.date32(), DateType(), st.dates(dt.date(1900, 1, 1), dt.date(2100, 1, 1))),
    "moment": (pa.timestamp("us", "UTC"), TimestamptzType(), MOMENTS),
}


def test_partition_columns_are_parsed() -> None:
    assert parse("country, day(at), bucket(16, key) ,hour( at )") == (
        PartitionColumn("country"),
        PartitionColumn("at", "day"),
        PartitionColumn("key", "bucket", 16),
        PartitionColumn("at", "hour"),
    )
    assert [str(field) for field in parse("a,bucket(2,b),month(c)")] == ["a", "bucket(2, b)", "month(c)"]


@pytest.mark.parametrize("text", ["week(at)", "bucket(key)", "bucket(0, key)", "a,", "day(at", "a, a"])
def test_text_that_is_no_partitioning_is_refused(text: str) -> None:
    with pytest.raises(InvalidValueError, match="option 'partitionColumns'"):
        parse(text)


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(st.data())
def test_values_are_icebergs(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(list(COLUMNS)))
    kind, iceberg, values = COLUMNS[name]
    temporal = {"day": ["year", "month", "day"], "moment": ["year", "month", "day", "hour"]}.get(name, [])
    transform = data.draw(st.sampled_from(["bucket", *temporal]))
    field = PartitionColumn(name, transform, 7 if transform == "bucket" else 0)
    rows = data.draw(st.lists(st.none() | values, min_size=1, max_size=6))
    batch = pa.RecordBatch.from_pydict({name: pa.array(rows, kind), "row": range(len(rows))})
    check([field], batch.schema, transforms=True)
    theirs = parse_transform("bucket[7]" if transform == "bucket" else transform).transform(iceberg)
    found = {row: value for (value,), part in split(batch, [field]) for row in part.column("row").to_pylist()}
    expected = {row: theirs(_internal(value)) for row, value in enumerate(rows)}
    assert found == expected


def _internal(value: Any) -> Any:
    """Return a value as pyiceberg keeps it."""
    if isinstance(value, dt.datetime):
        return (value - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)) // dt.timedelta(microseconds=1)
    return (value - dt.date(1970, 1, 1)).days if isinstance(value, dt.date) else value


@given(st.lists(st.tuples(st.none() | st.integers(0, 3), st.none() | st.sampled_from("xy")), max_size=40))
def test_every_row_is_in_its_partition_once_and_in_order(rows: list[tuple[int | None, str | None]]) -> None:
    batch = pa.RecordBatch.from_pydict(
        {
            "a": pa.array([a for a, _ in rows], pa.int64()),
            "b": pa.array([b for _, b in rows], pa.string()),
            "row": pa.array(range(len(rows)), pa.int64()),
        }
    )
    naive: dict[tuple[int | None, str | None], list[int]] = {}
    for number, row in enumerate(rows):
        naive.setdefault(row, []).append(number)
    parts = [
        (values, part.column("row").to_pylist())
        for values, part in split(batch, [PartitionColumn("a"), PartitionColumn("b")])
    ]
    assert parts == list(naive.items())


def test_directories_are_hives() -> None:
    schema = pa.schema([("d", pa.date32()), ("c", pa.string()), ("t", pa.timestamp("us", "UTC")), ("f", pa.bool_())])
    fields = parse("d,c,f,hour(t),month(d)")
    assert directory(fields, (15706, "a/b=%", True, 3, -1), schema) == (
        "d=2013-01-01/c=a%2Fb%3D%25/f=true/t_hour=1970-01-01-03/d_month=1969-12/"
    )
    assert directory(parse("c"), (None,), schema) == "c=__HIVE_DEFAULT_PARTITION__/"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nope", "names 'nope'; the columns are a, f, l"),
        ("day(a)", "transforms are Iceberg's"),
        ("f", "column of type double cannot be partitioned so"),
        ("l", "column of type list"),
    ],
)
def test_columns_that_do_not_fit(text: str, message: str) -> None:
    schema = pa.schema([("a", pa.int64()), ("f", pa.float64()), ("l", pa.list_(pa.int8()))])
    with pytest.raises(InvalidValueError, match=message):
        check(parse(text), schema, transforms=False)


def test_a_file_needs_a_column() -> None:
    with pytest.raises(InvalidValueError, match="no column would be left"):
        check(parse("a"), pa.schema([("a", pa.int64())]), transforms=False)
