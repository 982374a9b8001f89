"""Commands of thousands of ids in smaller ones: the same ids in the same order, and borders to the byte."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from magnetar.model.errors import ProtocolError
from magnetar.protocol import codec
from magnetar.protocol import commands as c
from magnetar.protocol.unparsed_commands import PART_IDS, parts_of
from magnetar.protocol.varints import varint

ACK, REDELIVER = 10, 20
ID_BYTES_MAX = 64 << 10
REST_BYTES_MAX = 1 << 10
PIECE_BYTES = 16 << 10


def field(number: int, value: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(value)) + value


def one_id(ledger: int, entry: int = 0, words: int = 0) -> bytes:
    """A message id; ``words`` of an ack set make it ten bytes longer each."""
    return b"\x08" + varint(ledger) + b"\x10" + varint(entry) + (b"\x28" + b"\xff" * 9 + b"\x01") * words


def ack(*parts: bytes, kind: bytes = b"\x10\x00") -> c.UnparsedCommand:
    inner = b"\x08\x07" + kind + b"".join(parts)
    return c.UnparsedCommand(ACK, b"\x08\x0a" + field(ACK, inner))


def ack_id(value: bytes) -> bytes:
    return field(3, value)


def commands(lengthy: c.UnparsedCommand) -> list[c.CommandAck | c.CommandRedeliverUnacknowledgedMessages]:
    return [piece for piece in parts_of(lengthy) if piece is not None]


def acks(lengthy: c.UnparsedCommand) -> list[c.CommandAck]:
    found = commands(lengthy)
    return [piece for piece in found if isinstance(piece, c.CommandAck)]


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 3 * PART_IDS + 2), st.sampled_from([None, 0, 5]), st.booleans())
def test_the_ids_are_those_of_the_whole_and_the_request_goes_with_the_last(
    count: int, request: int | None, redelivery: bool
) -> None:
    ids = tuple(c.MessageIdData(i % 7, i) for i in range(count))
    if redelivery:
        whole = codec.encode(c.CommandRedeliverUnacknowledgedMessages(7, ids))
    else:
        whole = codec.encode(c.CommandAck(7, c.AckType.Individual, ids, request_id=request))
    got = commands(c.UnparsedCommand(REDELIVER if redelivery else ACK, whole[8:]))
    assert [one for piece in got for one in piece.message_ids] == list(ids)
    assert all(piece.consumer_id == 7 for piece in got)
    assert [len(piece.message_ids) for piece in got[:-1]] == [PART_IDS] * (len(got) - 1)
    assert len(got) == max(1, -(-count // PART_IDS))
    if not redelivery:
        requests = [piece.request_id for piece in got if isinstance(piece, c.CommandAck)]
        assert requests == [None] * (len(got) - 1) + [request]


def test_an_id_may_have_so_many_bytes_and_not_one_more() -> None:
    words = (ID_BYTES_MAX - 100) // 11
    base = one_id(1, 1, words)
    for size in (ID_BYTES_MAX - 1, ID_BYTES_MAX, ID_BYTES_MAX + 1):
        padding = size - len(ack_id(base)) - 2
        # an unknown field, of exactly what is missing
        whole = ack_id(base + field(15, bytes(padding)))
        assert len(whole) == size
        if size <= ID_BYTES_MAX:
            (got,) = acks(ack(whole))
            assert got.message_ids[0].entry == 1
        else:
            with pytest.raises(ProtocolError, match=f"a message id of {size} bytes, at most {ID_BYTES_MAX}"):
                acks(ack(ack_id(one_id(1)), whole))


def test_a_part_ends_after_the_id_with_which_it_is_large() -> None:
    """A part is never larger than the bound and one id."""
    each = ack_id(one_id(1, 1, 90))
    got = acks(ack(each * 60))
    fitting = PIECE_BYTES // len(each)
    assert [len(piece.message_ids) for piece in got[:-1]] == [fitting] * (60 // fitting)
    assert sum(len(piece.message_ids) for piece in got) == 60
    even = ack_id(one_id(1) + field(15, bytes(120)))
    assert len(even) == 128
    assert [len(piece.message_ids) for piece in acks(ack(even * 129))] == [128, 1]


def test_beside_the_ids_there_may_be_so_many_bytes_and_not_one_more() -> None:
    inside = 4
    for size in (REST_BYTES_MAX - 1, REST_BYTES_MAX, REST_BYTES_MAX + 1):
        other = field(15, bytes(size - inside - 3))
        assert inside + len(other) == size
        if size <= REST_BYTES_MAX:
            assert len(acks(ack(ack_id(one_id(1)), other))) == 1
        else:
            with pytest.raises(ProtocolError, match="with more than ids in it"):
                acks(ack(ack_id(one_id(1)), other))


def test_what_stands_between_ids_is_said_with_all_of_them() -> None:
    """Fields come in any order: a transaction named after the first ids counts for these as well."""
    txn = b"\x30\x05\x38\x06"
    got = acks(ack(ack_id(one_id(1)), b"\x40\x09", ack_id(one_id(2)), txn, ack_id(one_id(3))))
    assert [(piece.message_ids[0].ledger, len(piece.message_ids)) for piece in got] == [(1, 1), (2, 1), (3, 1)]
    assert {piece.txn for piece in got} == {got[0].txn}
    assert got[0].txn is not None
    assert [piece.request_id for piece in got] == [None, None, 9]


def test_a_cumulative_ack_of_several_ids_acknowledges_none() -> None:
    """An ack with a single id acknowledges that one."""
    cumulative = b"\x10\x01"
    (got,) = acks(ack(ack_id(one_id(5)), kind=cumulative))
    assert [one.ledger for one in got.message_ids] == [5]
    (got,) = acks(ack(ack_id(one_id(5)), ack_id(one_id(6)), b"\x40\x09", kind=cumulative))
    assert (got.message_ids, got.request_id) == ((), 9)


def test_it_stops_every_thousand_ids_for_the_event_loop() -> None:
    """It stops in the first pass, and once for each part that is checked before any is given out."""
    each = ack_id(one_id(1))
    for count in (999, 1000, 3000):
        got = list(parts_of(ack(each * (count - 2))))
        begun = next(i for i, piece in enumerate(got) if piece is not None)
        assert begun == count // 1000 + -(-(count - 2) // PART_IDS)
        assert None not in got[begun:]


@pytest.mark.parametrize(
    "tail",
    [
        b"\x1a\x05\x08\x01", b"\x1a", b"\x1a\xff", b"\x78" + b"\xff" * 10 + b"\x01", b"\x7b", b"\x7d\x00\x00\x00",
        b"\x79" + bytes(7), b"\x1a\x01\xff", b"\x2a" + b"\x80" * 10 + b"\x00",
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_refused_before_anything_is_given_out(tail: bytes) -> None:
    lengthy = ack(ack_id(one_id(1)) * 600, tail)
    got = []
    with pytest.raises(ProtocolError):
        got += [piece for piece in parts_of(lengthy) if piece is not None]
    assert got == []


def test_unknown_numbers_of_a_fixed_size_are_skipped() -> None:
    for other in (b"\x7d" + b"\xff" * 4, b"\x79" + b"\xff" * 8, b"\x78" + b"\xff" * 9 + b"\x01"):
        got = acks(ack(other, ack_id(one_id(1)) * (PART_IDS + 1)))
        assert [len(piece.message_ids) for piece in got] == [PART_IDS, 1]


def test_a_body_that_is_not_one_command_is_refused() -> None:
    body = ack(ack_id(one_id(1))).body
    assert len(body) < 128, "its length is one byte"
    longer = body[:3] + bytes([body[3] + 1]) + body[4:]
    for wrong in (
        longer,
        body + b"\x40\x05",
        b"\x10" + body[1:],
        b"\x08\x0b" + body[2:],
        body + b"\x00",
        body[:-1],
        body[:2] + b"\x5a" + body[3:],
    ):
        with pytest.raises(ProtocolError):
            acks(c.UnparsedCommand(ACK, wrong))


@pytest.mark.parametrize("wire", [3, 4, 6, 7])
def test_a_field_whose_end_nobody_knows_is_refused(wire: int) -> None:
    with pytest.raises(ProtocolError, match=f"wire type {wire}"):
        commands(ack(ack_id(one_id(1)), varint(5 << 3 | wire)))


@pytest.mark.parametrize("cut", [b"\xa1\x01" + bytes(7), b"\xa5\x01" + bytes(3), b"\xa2\x01\x03ab"])
def test_a_value_that_is_cut_off_is_refused(cut: bytes) -> None:
    with pytest.raises(ProtocolError, match="cut off"):
        commands(ack(ack_id(one_id(1)), cut))


@pytest.mark.parametrize("body", [b"\x08\x0a\xd2", b"\x08\x0a\x52\x80"])
def test_a_head_that_does_not_end_is_refused(body: bytes) -> None:
    with pytest.raises(ProtocolError, match="does not end"):
        commands(c.UnparsedCommand(ACK, body))


def test_a_tag_that_does_not_end_is_refused() -> None:
    with pytest.raises(ProtocolError, match="does not end"):
        commands(ack(ack_id(one_id(1)), b"\xa0"))
