"""Primitive values as Pulsar's Java client writes them."""

from __future__ import annotations

import datetime as dt
import struct
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]  # publishes no types
import pytest
from hypothesis import given
from hypothesis import strategies as st

from magnetar.columnar.primitives import KINDS, WRITABLE, Primitives, write_primitives
from magnetar.model.errors import InvalidValueError
from magnetar.model.schemas import SchemaType

DAY = dt.date(1969, 12, 31)
AT = dt.datetime(2013, 1, 1, 10, 15, 0, 123_000, dt.UTC)
MILLIS = 1_357_035_300_123
CASES: list[tuple[SchemaType, bytes, Any]] = [
    (SchemaType.BOOLEAN, b"\x01", True),
    (SchemaType.INT8, b"\xff", -1),
    (SchemaType.INT16, struct.pack(">h", -300), -300),
    (SchemaType.INT32, struct.pack(">i", 1 << 30), 1 << 30),
    (SchemaType.INT64, struct.pack(">q", -(1 << 62)), -(1 << 62)),
    (SchemaType.FLOAT, struct.pack(">f", 1.5), 1.5),
    (SchemaType.DOUBLE, struct.pack(">d", 0.1), 0.1),
    (SchemaType.DATE, struct.pack(">q", -1), DAY),
    (SchemaType.TIME, struct.pack(">q", 5000), 5000),
    (SchemaType.TIMESTAMP, struct.pack(">q", MILLIS), AT),
    (SchemaType.INSTANT, struct.pack(">qi", MILLIS // 1000, 123_000_999), AT),
    (SchemaType.LOCAL_DATE, struct.pack(">q", -1), DAY),
    (SchemaType.LOCAL_TIME, struct.pack(">q", 7), 7),
    (SchemaType.LOCAL_DATE_TIME, struct.pack(">qq", -1, 1_000), dt.datetime(1969, 12, 31, 0, 0, 0, 1)),
]


@pytest.mark.parametrize(("kind", "raw", "expected"), CASES, ids=[kind.name for kind, _, _ in CASES])
def test_each_primitive_type_is_read(kind: SchemaType, raw: bytes, expected: Any) -> None:
    decoder = Primitives(kind)
    values = pa.array([b"other", raw, None, raw, b"", raw], pa.binary())
    whole, unreadable = decoder.read(values, [(6, None)])
    assert whole[0].type == decoder.schema.field("value").type
    assert whole[0].to_pylist() == [None, expected, None, expected, None, expected]
    assert [one.row for one in unreadable] == [0, 4]
    assert unreadable[0].reason == f"5 bytes are no {kind.name}, which has {len(raw)}"
    assert decoder.read(values[3:4], [(1, None)]).columns[0].to_pylist() == [expected]
    assert decoder.read(pa.array([raw, raw], pa.binary()), [(2, None)]).columns[0].to_pylist() == [expected] * 2
    assert decoder.read(values[:0], []).columns[0].to_pylist() == []


LONG_MAX = (1 << 63) - 1
FAR: list[tuple[SchemaType, bytes, bytes]] = [
    (SchemaType.DATE, struct.pack(">q", LONG_MAX), struct.pack(">q", -1 - LONG_MAX)),
    (SchemaType.TIMESTAMP, struct.pack(">q", LONG_MAX), struct.pack(">q", -1 - LONG_MAX)),
    # Java's Instant.MAX, LocalDate.MAX and LocalDateTime.MAX
    (SchemaType.INSTANT, struct.pack(">qi", 31_556_889_864_403_199, 999_999_999), struct.pack(">qi", -(1 << 54), 0)),
    (SchemaType.LOCAL_DATE, struct.pack(">q", 365_241_780_471), struct.pack(">q", -(1 << 31) - 1)),
    (
        SchemaType.LOCAL_DATE_TIME,
        struct.pack(">qq", 365_241_780_471, 86_399_999_999_999),
        struct.pack(">qq", 106_751_991, LONG_MAX),
    ),
]


@pytest.mark.parametrize(("kind", "late", "early"), FAR, ids=[kind.name for kind, *_ in FAR])
def test_a_moment_that_has_no_place_in_the_column_does_not_fit(kind: SchemaType, late: bytes, early: bytes) -> None:
    """Java's largest moments mean "for ever" to some; as 64 bits of microseconds they were moments of long ago."""
    good, expected = next((raw, value) for one, raw, value in CASES if one is kind)
    columns, unreadable = Primitives(kind).read(pa.array([late, good, b"x", early, None], pa.binary()), [(5, None)])
    assert columns[0].to_pylist() == [None, expected, None, None, None]
    assert [one.row for one in unreadable] == [0, 2, 3]
    assert "further from 1970" in unreadable[0].reason and "1 bytes are no" in unreadable[1].reason


@given(
    st.integers(-(1 << 63), LONG_MAX) | st.integers(-5, 5).map(lambda near: LONG_MAX // 1_000_000 + near), st.booleans()
)
def test_an_instant_is_the_moment_it_says_or_does_not_fit(seconds: int, negative: bool) -> None:
    """Its nanoseconds may be more than a second, or less than none, and bring it over the edge."""
    seconds, nanos = (-seconds - 1, -(1 << 31)) if negative else (seconds, (1 << 31) - 1)
    values = pa.array([struct.pack(">qi", seconds, nanos)], pa.binary())
    columns, unreadable = Primitives(SchemaType.INSTANT).read(values, [(1, None)])
    found = columns[0].cast(pa.int64()).to_pylist()
    assert found == ([None] if unreadable else [seconds * 1_000_000 + nanos // 1000])


@pytest.mark.parametrize("kind", WRITABLE, ids=[kind.name for kind in WRITABLE])
def test_what_is_read_is_written_again(kind: SchemaType) -> None:
    raw = next(raw for one, raw, _ in CASES if one is kind)
    if kind is SchemaType.DATE:
        # The column has days, and so has what is written from it.
        raw = struct.pack(">q", -86_400_000)
    values = pa.array([raw, None, raw], pa.binary())
    column = Primitives(kind).read(values, [(3, None)]).columns[0]
    assert write_primitives(kind, column).to_pylist() == [raw, None, raw]
    assert write_primitives(kind, column[1:]).to_pylist() == [None, raw]


def test_a_column_that_does_not_fit() -> None:
    with pytest.raises(InvalidValueError, match="'value' is int64, which is no INT8"):
        write_primitives(SchemaType.INT8, pa.array([1000]))


def test_every_kind_is_here() -> None:
    assert {kind for kind, _, _ in CASES} == set(KINDS)
