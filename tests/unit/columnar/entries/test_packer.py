"""A packer gives the very entries of the naive writer, whatever is in a row and however Arrow holds it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]  # publishes no types
import pytest
from hypothesis import given
from hypothesis import strategies as st

from magnetar.columnar.entries.message_columns import MessageColumns, message_columns
from magnetar.columnar.entries.packer import Packer
from magnetar.protocol.compression import CompressionType
from tests.support.batch_writer import BatchWriter, Extras

texts = st.text(max_size=6)
times = st.sampled_from([0, 0, 1, -5, 1_700_000_000_000]) | st.integers(0, 1 << 60)
rows = st.tuples(
    st.none() | st.binary(max_size=30),
    st.none() | st.binary(max_size=6),
    times,
    st.none() | st.lists(st.tuples(texts, st.none() | texts), max_size=3),
    st.none() | st.binary(max_size=6),
    st.sampled_from([0, 0, 0, 0, 7_000]),
)
KINDS = [pa.binary(), pa.binary(), pa.int64(), pa.map_(pa.string(), pa.string()), pa.binary(), pa.int64()]


@pytest.fixture(scope="module", autouse=True)
def compiled() -> None:
    """Outside of what is timed."""
    list(Packer("p").pack(1, message_columns(pa.array([b"x"], pa.binary())), np.arange(1), np.arange(1)))


def columns_of(found: list[Any]) -> list[Any]:
    return [pa.array([row[number] for row in found], kind) for number, kind in enumerate(KINDS)]


def made_ready(columns: list[Any], wanted: list[bool]) -> MessageColumns:
    values, keys, moments, properties, orderings, delays = columns
    return message_columns(
        values,
        keys if wanted[0] else None,
        moments.to_numpy() if wanted[1] else None,
        properties if wanted[2] else None,
        orderings if wanted[3] else None,
        delays.to_numpy() if wanted[4] else None,
    )


@given(
    st.lists(rows, max_size=14),
    st.lists(st.booleans(), min_size=5, max_size=5),
    st.sampled_from(CompressionType),
    st.integers(1, 6),
    st.integers(1, 120),
    st.sampled_from([0, 7, 16]),
    st.integers(0, 3),
    st.data(),
)
def test_entries_are_those_of_the_naive_writer(
    found: list[Any], wanted: list[bool], kind: CompressionType, most: int, size: int, bits: int, cut: int,
    data: st.DataObject,
) -> None:  # fmt: skip
    # A slice of an array has an offset into buffers that hold more than it.
    columns = [column.slice(cut) for column in columns_of(found)]
    found = found[cut:]
    picked = [number for number in range(len(found)) if data.draw(st.booleans())]
    ids = [(5 + 3 * number) << bits for number in range(len(picked))]
    chosen = [found[number] for number in picked]
    limits: dict[str, Any] = {"compression": kind, "max_messages": most, "max_bytes": size, "digest_bits": bits}
    limits["schema_version"] = data.draw(st.none() | st.binary(max_size=8))
    writer, packer = BatchWriter("prodücer", **limits), Packer("prodücer", **limits)
    expected = list(
        writer.pack(
            99,
            [row[0] for row in chosen],
            ids,
            [row[1] for row in chosen] if wanted[0] else None,
            [row[2] for row in chosen] if wanted[1] else None,
            [tuple((name, text or "") for name, text in row[3] or ()) for row in chosen] if wanted[2] else None,
            Extras(
                [row[4] for row in chosen] if wanted[3] else None, [row[5] for row in chosen] if wanted[4] else None
            ),
        )
    )
    packed = list(packer.pack(99, made_ready(columns, wanted), np.array(picked, np.int64), np.array(ids, np.int64)))
    assert packed == expected
    assert packer.digest == writer.digest


def test_a_large_message_makes_room_for_itself() -> None:
    values = [b"a" * 10, b"b" * 5_000_000, b"c", b"d" * 300_000]
    keys = ["k" * 200_000, None, "k", "l"]
    found = list(
        Packer("p").pack(1, message_columns(pa.array(values, pa.binary()), pa.array(keys)), np.arange(4), np.arange(4))
    )
    assert found == list(
        BatchWriter("p").pack(1, values, range(4), [None if key is None else key.encode() for key in keys])
    )


def test_strings_and_no_rows() -> None:
    packer = Packer("p")
    assert not list(packer.pack(1, message_columns(pa.array([], pa.string())), np.arange(0), np.arange(0)))
    found = list(packer.pack(1, message_columns(pa.array(["ü", None], pa.string())), np.arange(2), np.arange(2)))
    assert found == list(BatchWriter("p").pack(1, ["ü".encode(), None], range(2)))
