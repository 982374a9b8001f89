"""Rows to partitions: checked columns, Pulsar's hashes, order kept, nothing lost."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]  # publishes no types
import pytest
from hypothesis import given
from hypothesis import strategies as st

from magnetar.columnar.entries.message_columns import ByteSpans
from magnetar.columnar.row_router import Router, Rows, check_columns
from magnetar.model.errors import InvalidValueError
from magnetar.model.hashing import java_string_hash, murmur3_31

T = "persistent://public/default/t"


def batch(**columns: Any) -> Any:
    return pa.RecordBatch.from_pydict(columns)


@pytest.fixture(scope="module", autouse=True)
def loaded() -> None:
    """Outside of what is timed."""
    assert list(Router(T, lambda _: 2).split(batch(value=["x"], __key=["k"])))


def column(one: Rows, name: str) -> list[Any]:
    """Return a column of the rows that were picked."""
    found = getattr(one.messages, name)
    return [found.of(row) if isinstance(found, ByteSpans) else found[row] for row in one.picked.tolist()]


@given(
    st.lists(st.tuples(st.binary(max_size=3), st.none() | st.text("abcdef", max_size=2)), max_size=30),
    st.integers(1, 5),
    st.booleans(),
)
def test_every_row_goes_to_the_partition_of_its_key_in_order(
    rows: list[tuple[bytes, str | None]], partitions: int, murmur: bool
) -> None:
    """A row goes to the partition of its key, or in turn without one, and keeps its order (rules 6.7.1, 6.7.7)."""
    router = Router(T, lambda _: partitions, murmur=murmur, run=2)
    values, keys = pa.array([v for v, _ in rows], pa.binary()), pa.array([k for _, k in rows], pa.string())
    whole = pa.RecordBatch.from_arrays([values, keys], ["value", "__key"])
    found = [rows for part in (whole.slice(0, 7), whole.slice(7)) for rows in router.split(part)]
    assert router.ordinal == len(rows)
    seen = {}
    for one in found:
        assert one.target == f"{T}-partition-{one.partition}"
        ordinals = one.ordinals.tolist()
        assert ordinals == sorted(ordinals)
        for ordinal, value, key in zip(ordinals, column(one, "values"), column(one, "keys"), strict=True):
            seen[ordinal] = value, None if key is None else key.decode()
            expected = ordinal // 2
            if key is not None:
                expected = murmur3_31(key) if murmur else java_string_hash(key.decode())
            assert one.partition == expected % partitions
    assert [seen[ordinal] for ordinal in range(len(rows))] == rows


def test_a_topic_without_partitions_and_topics_by_column() -> None:
    router = Router(None, lambda topic: 0 if topic.endswith("/a") else 1)
    found = list(router.split(batch(value=["1", "2", "3"], __topic=["a", "x/y/b", "a"])))
    assert [(one.target, one.ordinals.tolist(), column(one, "values")) for one in found] == [
        ("persistent://public/default/a", [0, 2], [b"1", b"3"]),
        ("persistent://x/y/b-partition-0", [1], [b"2"]),
    ]
    with pytest.raises(InvalidValueError, match="every row needs a topic"):
        list(router.split(batch(value=["1"], __topic=pa.array([None], pa.string()))))


def test_times_in_milliseconds_and_properties() -> None:
    moment = dt.datetime(2013, 1, 1, 10, 15, tzinfo=dt.UTC)
    (one,) = Router(T, lambda _: 0).split(
        batch(
            value=pa.array([None, b"x"], pa.binary()),
            __eventTime=pa.array([moment, None], pa.timestamp("us", "UTC")),
            __messageProperties=pa.array([[("a", "1"), ("b", None)], None], pa.map_(pa.string(), pa.string())),
        )
    )
    assert column(one, "values") == [None, b"x"]
    assert column(one, "event_times") == [int(moment.timestamp() * 1000), 0]
    assert (one.messages.names.of(1), one.messages.texts.of(0), one.messages.texts.of(1)) == (b"b", b"1", None)
    assert (one.messages.pair_ends.tolist(), one.messages.pair_present.tolist()) == ([0, 2, 2], [1, 0])
    (one,) = Router(T, lambda _: 0).split(batch(value=["x"], __eventTime=[7]))
    assert column(one, "event_times") == [7]


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("name", ["__eventTime", "__deliverAt"])
def test_a_moment_is_in_its_millisecond_also_before_1970(unit: str, name: str) -> None:
    parts = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}[unit]
    counts = [0, 1, -1, parts - 1, 1 - parts, -parts, 1_577_836_800 * parts + 1, -86_400 * parts - 1]
    times = pa.array([*counts, None], pa.int64()).cast(pa.timestamp(unit, "UTC"))
    (one,) = Router(T, lambda _: 0).split(batch(value=["x"] * len(times), **{name: times}))
    found = column(one, "event_times" if name == "__eventTime" else "deliver_at")
    assert found == [*(count * 1000 // parts for count in counts), 0]


def test_a_key_that_is_no_text_is_routed_by_its_base64() -> None:
    (one,) = Router(T, lambda _: 97).split(batch(value=[b"x"], __key=pa.array([b"\xff\xfe"], pa.binary())))
    assert one.partition == java_string_hash("//4=") % 97


@pytest.mark.parametrize(
    ("types", "topic", "message"),
    [
        ({"a": "int"}, T, r"needs a column 'value'.*to_json"),
        ({"value": "int"}, T, "'value' is int; it can be binary or string"),
        ({"value": "string", "a": "int"}, T, "column 'a' is none of"),
        ({"value": "string"}, None, "give the topic either"),
        ({"value": "string", "__topic": "string"}, T, "give the topic either"),
    ],
)
def test_columns_that_cannot_be_written(types: dict[str, str], topic: str | None, message: str) -> None:
    with pytest.raises(InvalidValueError, match=message):
        check_columns(types, topic)
