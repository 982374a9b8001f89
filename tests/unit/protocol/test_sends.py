"""SEND frames made by hand are those that protobuf makes."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from magnetar.protocol import commands as c
from magnetar.protocol.codec import frame_head
from magnetar.protocol.sends import send_head

INT64 = st.integers(0, (1 << 63) - 1)


@given(INT64, INT64, st.integers(1, (1 << 31) - 1), st.none() | INT64, st.binary(max_size=300))
@example(0, 0, 1, None, b"")
@example(0, 0, 1, 0, b"x")
def test_as_protobuf_makes_them(
    producer_id: int, sequence_id: int, messages: int, highest: int | None, entry: bytes
) -> None:
    command = c.CommandSend(producer_id, sequence_id, messages, highest, False, None, False, None, entry)
    assert send_head(producer_id, sequence_id, messages, highest, len(entry)) == frame_head(command)
