"""SEND frames made by hand are those that protobuf makes."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from magnetar.protocol import commands as c
from magnetar.protocol.codec import frame_head
from magnetar.protocol.compression import CompressionType
from magnetar.protocol.entries import EntryMetadata, build_entry, build_plain_batch
from magnetar.protocol.handmade_frames.sends import send_head

INT64 = st.integers(0, (1 << 63) - 1)


@given(INT64, INT64, st.integers(1, (1 << 31) - 1), st.none() | INT64, st.binary(max_size=300))
@example(0, 0, 1, None, b"")
@example(0, 0, 1, 0, b"x")
def test_as_protobuf_makes_them(
    producer_id: int, sequence_id: int, messages: int, highest: int | None, entry: bytes
) -> None:
    command = c.CommandSend(producer_id, sequence_id, messages, highest, False, None, False, None, entry)
    assert send_head(producer_id, sequence_id, messages, highest, len(entry)) == frame_head(command)


@given(
    st.text(max_size=20), INT64, st.none() | INT64, st.integers(0, 1 << 62), st.integers(1, 1 << 30),
    st.sampled_from(CompressionType), st.integers(0, (1 << 32) - 1), st.binary(max_size=300),
)  # fmt: skip
@example("", 0, None, 0, 1, CompressionType.NONE, 0, b"")
def test_a_plain_batch_is_built_as_any(
    name: str, first: int, highest: int | None, now_ms: int, count: int, kind: CompressionType, size: int, data: bytes
) -> None:
    metadata = EntryMetadata(
        name, first, now_ms, compression=kind, uncompressed_size=size, num_messages_in_batch=count,
        highest_sequence_id=highest,
    )  # fmt: skip
    assert build_plain_batch(name, (first, highest), now_ms, count, kind, size, data) == build_entry(metadata, data)
