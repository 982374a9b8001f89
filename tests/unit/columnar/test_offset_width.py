"""Rows with 64-bit offsets become the entries that they would be with 32 bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]  # publishes no types
import pytest

from magnetar.columnar.entries.message_columns import message_columns
from magnetar.columnar.entries.packer import Packer
from magnetar.columnar.json.writer import write_json
from magnetar.columnar.offset_width import with_32_bit_offsets
from magnetar.model.errors import InvalidValueError

VALUES = [b"abc", b"defg", None, b"x"]
KEYS = ["k", None, "key", ""]
PAIRS = [[("a", "b")], None, [], [("cc", "dd"), ("e", "f")]]


def batch_of(value: Any, text: Any) -> Any:
    return pa.RecordBatch.from_pydict(
        {
            "value": pa.array(VALUES, value),
            "__key": pa.array(KEYS, text),
            "__messageProperties": pa.array(PAIRS, pa.map_(text, text)),
            "rest": pa.array([[{"t": "x"}], None, [], [{"t": None}]], pa.list_(pa.struct([("t", text)]))),
        }
    )


def entries(batch: Any) -> list[bytes]:
    rows = message_columns(batch.column(0), batch.column(1), None, batch.column(2))
    return [one.entry for one in Packer("p").pack(1, rows, np.arange(4), np.arange(4))]


def test_columns_with_64_bit_offsets_pack_to_the_same_entries() -> None:
    small, large = batch_of(pa.binary(), pa.string()), batch_of(pa.large_binary(), pa.large_string())
    assert with_32_bit_offsets(small) is small
    assert with_32_bit_offsets(large).equals(small)
    assert with_32_bit_offsets(large.slice(1, 2)).equals(small.slice(1, 2))
    assert entries(with_32_bit_offsets(large)) == entries(small)


def test_a_packer_reads_no_offsets_that_are_none_of_its() -> None:
    with pytest.raises(InvalidValueError, match="large_binary"):
        entries(batch_of(pa.large_binary(), pa.string()))


def test_lists_of_one_size_are_lists() -> None:
    """polars' Array, which numpy's vectors become: as JSON its moments were texts where the definition says numbers,
    NaN was null, and bytes in it were a panic of polars."""
    numbers = [[1.5, 2.5], None, [float("nan"), None]]
    inside = [None if one is None else {"t": one} for one in numbers]
    for inner in (pa.list_(pa.float64()), pa.list_(pa.float64(), 2)):
        batch = pa.RecordBatch.from_pydict(
            {"a": pa.array(numbers, inner), "b": pa.array(inside, pa.struct([("t", inner)]))}
        )
        found = with_32_bit_offsets(batch.slice(1))
        assert found.schema.field("a").type == pa.list_(pa.float64())
        assert found.column("b").field("t").slice(1).flatten().null_count == 1
        with pytest.raises(InvalidValueError, match="NaN"):
            write_json({"a": found.column("a")}, np.ones(2, np.bool_))
