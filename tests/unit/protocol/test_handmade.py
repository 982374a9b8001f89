"""Receipts and message headers made by hand, judged by protobuf."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from magnetar.protocol import codec
from magnetar.protocol.commands import CommandMessage, CommandSendReceipt, MessageIdData
from magnetar.protocol.decoder import Decoder
from magnetar.protocol.handmade_frames.deliveries import Deliveries
from magnetar.protocol.handmade_frames.receipts import Receipts, receipt
from magnetar.protocol.varints import varint
from tests.support.command_strategies import entries, longs

EDGES = [0, 1, 127, 128, 16383, 16384, (1 << 21) - 1, 1 << 21, (1 << 28) - 1, 1 << 28, (1 << 63) - 1, -1]
numbers = st.one_of(st.sampled_from(EDGES), longs)
naturals = st.one_of(st.sampled_from(EDGES[:-1]), st.integers(0, (1 << 40)))


@given(st.integers(0, (1 << 64) - 1))
def test_varint_is_what_protobuf_reads(value: int) -> None:
    frame = b"\x08\x0c\x62" + bytes([len(varint(value)) + 3]) + b"\x08" + varint(value) + b"\x10\x00"
    unsubscribe = codec.decode(frame)
    assert codec.encode(unsubscribe)[8:] == frame


@settings(deadline=None)
@given(numbers, numbers, numbers, numbers, numbers)
def test_a_receipt_is_what_protobuf_writes(producer: int, sequence: int, ledger: int, entry: int, highest: int) -> None:
    """highest_sequence_id is always present, a partition never (rule 3.3.2)."""
    frame = receipt(producer, sequence, ledger, entry, highest)
    expected = CommandSendReceipt(producer, sequence, MessageIdData(ledger, entry), highest)
    assert Decoder().feed(frame) == [expected]
    assert codec.encode(expected) == frame


@settings(deadline=None)
@given(naturals, st.lists(st.tuples(numbers, numbers), max_size=20), naturals)
def test_a_run_of_receipts_is_what_protobuf_writes(ledger: int, ids: list[tuple[int, int]], first: int) -> None:
    receipts = Receipts(7, ledger)
    single = [receipts(sequence, first + i, highest) for i, (sequence, highest) in enumerate(ids)]
    sequences = [sequence for sequence, _ in ids]
    assert receipts.run(sequences, first, [highest for _, highest in ids]) == b"".join(single)
    assert receipts.run(sequences, first) == b"".join(receipts(s, first + i) for i, s in enumerate(sequences))


@pytest.mark.parametrize("first", [0, 100, 16_300, 16_384, (1 << 21) - 50, (1 << 28) - 50, 1 << 40])
@pytest.mark.parametrize("ledger", [0, 37, 1 << 20])
def test_receipts_of_ids_that_count_on(ledger: int, first: int) -> None:
    """Most do; they are made together where all have numbers of one length."""
    receipts = Receipts(37, ledger)
    for entry in (0, 100, 16_300, 1 << 20):
        for count in (1, 2, 20, 200):
            sequences = list(range(first, first + count))
            single = b"".join(receipts(sequence, entry + i) for i, sequence in enumerate(sequences))
            assert receipts.run(sequences, entry) == receipts.run(sequences, entry, [0] * count) == single
            assert receipts.run(sequences[::-1], entry) == b"".join(
                receipts(sequence, entry + i) for i, sequence in enumerate(sequences[::-1])
            )
            highest = [0] * (count - 1) + [first + count]
            assert receipts.run(sequences, entry, highest) == b"".join(
                receipts(sequence, entry + i, highest[i]) for i, sequence in enumerate(sequences)
            )
    assert receipts.run([], 5) == b""


@pytest.mark.parametrize(("sequence", "entry"), [(0, 0), (0, 200), (200, 0), (1 << 40, 5)])
@pytest.mark.parametrize("count", [1, 2, 100])
def test_receipts_of_ids_that_count_on_are_made_together(
    sequence: int, entry: int, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their numbers are not made one by one (docs/decisions/077)."""
    receipts = Receipts(37, 5)
    sequences = range(sequence, sequence + count)
    expected = [receipts(number, entry + i) for i, number in enumerate(sequences)]

    def one_by_one(number: int) -> bytes:
        pytest.fail(f"{number} was made on its own")

    monkeypatch.setattr("magnetar.protocol.handmade_frames.receipts.varint", one_by_one)
    assert receipts.run(sequences, entry) == b"".join(expected)
    assert receipts.run(sequences, entry, [0] * count) == b"".join(expected)


def test_receipts_whose_numbers_change_places_in_length_are_made_anew() -> None:
    """All numbers together are as long as before; which of them is the longer one decides what is written."""
    receipts = Receipts(37, 5)
    for sequence, entry in ((300, 5), (5, 300), (300, 5), (20_000, 5), (5, 20_000)):
        expected = CommandSendReceipt(37, sequence, MessageIdData(5, entry), 0)
        two = [expected, CommandSendReceipt(37, sequence + 1, MessageIdData(5, entry + 1), 0)]
        assert Decoder().feed(receipts.run([sequence, sequence + 1], entry)) == two
        assert Decoder().feed(receipts(entry, sequence)) == [
            CommandSendReceipt(37, entry, MessageIdData(5, sequence), 0)
        ]
        assert Decoder().feed(receipts.run([sequence, sequence + 1], entry, [0, 7])) == [
            expected, two[1]._replace(highest_sequence_id=7)
        ]  # fmt: skip
        assert Decoder().feed(receipts(sequence, entry)) == [expected]


@settings(deadline=None)
@given(
    numbers,
    st.one_of(st.just(-1), st.integers(0, 2**31 - 1)),
    numbers,
    numbers,
    entries,
    st.integers(0, 2**32 - 1),
    st.lists(longs, max_size=5),
    st.one_of(st.none(), longs),
)
def test_a_message_header_is_what_protobuf_writes(
    consumer: int,
    partition: int,
    ledger: int,
    entry: int,
    data: bytes,
    count: int,
    ack_set: list[int],
    epoch: int | None,
) -> None:
    deliveries = Deliveries(consumer, partition)
    for redeliveries, words, known in ((0, [], None), (count, ack_set, epoch), (0, [], epoch)):
        frame = deliveries.header(ledger, entry, len(data), redeliveries, words, known) + data
        message_id = MessageIdData(ledger, entry, partition)
        expected = CommandMessage(consumer, message_id, redeliveries, tuple(words), known, None, data)
        assert Decoder().feed(frame) == [expected]
        assert codec.encode(expected) == frame  # so what stands at its default is absent


@pytest.mark.parametrize("partition", [-1, 0, 1, 127, 128, 2**31 - 1])
def test_the_partition_is_absent_for_a_topic_without_partitions_alone(partition: int) -> None:
    """The first partition is number 0 and said, in every way to write a MESSAGE."""
    message_id = MessageIdData(5, 300, partition)
    plain = codec.encode(CommandMessage(7, message_id, 0, (), None, None, b"entry"))
    again = codec.encode(CommandMessage(7, message_id, 2, (6,), None, None, b"entry"))
    deliveries = Deliveries(7, partition)
    assert deliveries.header(5, 300, 5) + b"entry" == plain
    assert deliveries.header(5, 300, 5, 2, (6,)) + b"entry" == again
    run: list[bytes] = []
    deliveries.frames(5, [300], [b"entry"], run)
    alike: list[bytes] = []
    deliveries.alike(5, 300, [b"entry"], alike)
    assert b"".join(run) == b"".join(alike) == plain


@settings(deadline=None)
@given(
    st.integers(-1, 3),
    naturals,
    naturals,
    st.lists(entries, max_size=6),
    st.lists(st.one_of(st.none(), longs), max_size=3),
)
@example(-1, 5, 100, [b"x"] * 500, [])
@example(2, 5, 16_300, [b"x"] * 500, [])
def test_message_frames_are_what_protobuf_writes(
    partition: int, ledger: int, first: int, batch: list[bytes], epochs: list[int | None]
) -> None:
    deliveries = Deliveries(9, partition)
    for epoch in [None, *epochs]:
        out: list[bytes] = []
        numbers = range(first, first + len(batch))
        deliveries.frames(ledger, numbers, batch, out, epoch)
        assert out[1::2] == batch
        alike: list[bytes] = []
        deliveries.alike(ledger, first, batch, alike)
        plain = Deliveries(9, partition)
        assert alike[::2] == [plain.header(ledger, first, len(entry)) for entry in batch]
        single = Deliveries(9, partition)
        assert out[::2] == [
            single.header(ledger, first + i, len(entry), consumer_epoch=epoch) for i, entry in enumerate(batch)
        ]


@pytest.mark.parametrize(("sequence", "entry"), [(-1, 5), (-5, 5), (5, -1), (5, -3), (-1, -1)])
@pytest.mark.parametrize("count", [1, 2, 9])
def test_receipts_of_negative_ids_that_count_on(sequence: int, entry: int, count: int) -> None:
    """Producers may begin at -1; its number has ten bytes, the next one has one."""
    receipts = Receipts(37, 5)
    found = Decoder().feed(receipts.run(range(sequence, sequence + count), entry))
    assert found == [CommandSendReceipt(37, sequence + i, MessageIdData(5, entry + i), 0) for i in range(count)]
