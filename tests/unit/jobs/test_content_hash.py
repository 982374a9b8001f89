"""Hashes of contents are equal for equal messages, and different as soon as any part of the content differs."""

from __future__ import annotations

from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]  # publishes no types
from hypothesis import given, settings
from hypothesis import strategies as st

from magnetar.jobs.verification.content_hash import content_hashes

BYTES = st.one_of(st.none(), st.binary(max_size=20))
ROW = st.tuples(
    BYTES, BYTES, BYTES, st.integers(0, 5), st.dictionaries(st.text(max_size=3), st.text(max_size=3), max_size=3)
)
MAP = pa.map_(pa.string(), pa.string())


def batch_of(rows: list[Any]) -> pa.RecordBatch:
    kinds = (pa.binary(), pa.binary(), pa.binary(), pa.timestamp("us", tz="UTC"), MAP)
    columns: list[Any] = [list(column) for column in zip(*rows, strict=True)] if rows else [[] for _ in kinds]
    columns[4] = [list(one.items()) for one in columns[4]]
    columns[3] = [one * 1000 or None for one in columns[3]]
    return pa.RecordBatch.from_arrays(
        [pa.array(column, kind) for column, kind in zip(columns, kinds, strict=True)],
        names=["value", "__key", "__orderingKey", "__eventTime", "__messageProperties"],
    )


@settings(deadline=None)
@given(st.lists(ROW, max_size=8))
def test_hashes_are_equal_exactly_if_the_messages_are(rows: list[Any]) -> None:
    numbers = content_hashes(batch_of(rows)).tolist()
    for row, number in zip(rows, numbers, strict=True):
        alone = content_hashes(batch_of([row])).tolist()
        assert alone == [number]
        turned = (*row[:4], dict(reversed(row[4].items())))
        assert content_hashes(batch_of([turned])).tolist() == [number]
    distinct = {repr((*row[:4], sorted(row[4].items()))) for row in rows}
    assert len(set(numbers)) == len(distinct)


def test_a_part_moved_between_key_and_value_changes_the_hash() -> None:
    rows = [
        (b"ab", b"c", None, 0, {}),
        (b"a", b"bc", None, 0, {}),
        (b"", None, None, 0, {}),
        (None, b"", None, 0, {}),
        (b"\0", None, None, 0, {}),
        (b"\0\0", None, None, 0, {}),
        (b"", b"", b"", 0, {"a": "b"}),
        (b"", b"", b"", 0, {"ab": ""}),
    ]
    assert len(set(content_hashes(batch_of(rows)).tolist())) == len(rows)
