"""SENDs and ACKs that are alike are read in one piece, and as they are read one by one."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from crc32c import crc32c

from magnetar.protocol import codec
from magnetar.protocol import commands as c
from magnetar.protocol.decoder import Decoder, MalformedBytesError
from magnetar.protocol.entries import EntryMetadata, build_entry
from magnetar.protocol.frames import CHECKSUM_MAGIC, with_checksum
from magnetar.protocol.varints import varint
from tests.support.alike_frames import ENTRY, ack, as_others_send_it, one_by_one, outcome, raw, send

WIDTHS = [1 << (7 * size) for size in range(1, 9)]
"""Where sequence ids become a byte longer."""


def same(frames: bytes) -> list[c.Command]:
    """What a broker decodes; it is compared with what comes one by one."""
    found = Decoder(from_client=True).feed(frames)
    assert one_by_one(found) == one_by_one(Decoder().feed(frames))
    return found


@pytest.mark.parametrize("width", [0, *WIDTHS])
@pytest.mark.parametrize("producer_id", [0, 127, 128, 16_383])
def test_a_run_for_each_length_of_the_ids(width: int, producer_id: int) -> None:
    numbers = range(max(width - 300, 0), width + 300)
    for made in (
        lambda number: send(number, producer_id=producer_id),
        lambda number: as_others_send_it(number, producer_id),
    ):
        found = same(b"".join(map(made, numbers)))
        runs = [run for run in found if isinstance(run, c.SendRun)]
        assert {run.producer_id for run in runs} == {producer_id}
        assert [number for run in runs for number in run.sequence_ids] == list(numbers)
        lengths = {len(varint(number)) for number in numbers}
        assert len(found) == len(lengths), "nothing came on its own"


@pytest.mark.parametrize("width", [0, *WIDTHS])
@pytest.mark.parametrize(("consumer_id", "ledger"), [(0, 0), (127, 127), (128, 128), (16_383, 1 << 40)])
def test_a_run_of_acks_for_each_length_of_the_ids(width: int, consumer_id: int, ledger: int) -> None:
    numbers = range(max(width - 300, 0), width + 300)
    found = same(b"".join(ack(number, ledger, consumer_id) for number in numbers))
    runs = [run for run in found if isinstance(run, c.AckRun)]
    assert {(run.consumer_id, run.ledger) for run in runs} == {(consumer_id, ledger)}
    assert [number for run in runs for number in run.entries] == list(numbers)
    assert len(found) == len({len(varint(number)) for number in numbers}), "nothing came on its own"


def test_ids_may_jump() -> None:
    numbers = [5, 5, 4, 127, 0, 300, 128, 16_383, 200, 1 << 40, (1 << 42) - 1]
    found = same(b"".join(map(send, numbers)))
    assert [number for run in found if isinstance(run, c.SendRun) for number in run.sequence_ids] == numbers


def test_acked_entries_may_jump() -> None:
    numbers = [5, 5, 4, 127, 0, 300, 128, 16_383, 200, 1 << 40, (1 << 42) - 1]
    found = same(b"".join(map(ack, numbers)))
    assert [number for run in found if isinstance(run, c.AckRun) for number in run.entries] == numbers


@pytest.mark.parametrize(
    "odd",
    [
        codec.encode(c.CommandFlow(1, 2)),
        ack(4, ledger=8),
        ack(4, consumer_id=2),
        codec.encode(c.CommandAck(1, c.AckType.Cumulative, (c.MessageIdData(7, 4),))),
        codec.encode(c.CommandAck(1, c.AckType.Individual, (c.MessageIdData(7, 4, 3, 2),))),
        codec.encode(c.CommandAck(1, c.AckType.Individual, (c.MessageIdData(7, 4, ack_set=(5,), batch_size=9),))),
        codec.encode(c.CommandAck(1, c.AckType.Individual, (c.MessageIdData(7, 4), c.MessageIdData(7, 5)))),
        codec.encode(c.CommandAck(1, c.AckType.Individual, (c.MessageIdData(7, 4),), request_id=5)),
        codec.encode(c.CommandAck(1, c.AckType.Individual, (c.MessageIdData(7, 4),), txn=c.TxnId(1, 2))),
        ack(4, consumer_id=1 << 20),
    ],
    ids=(
        "FLOW", "another ledger", "another consumer", "cumulative", "partition and index", "an ack set", "two ids",
        "a request id", "a transaction", "a large consumer id",
    ),
)  # fmt: skip
def test_an_ack_that_is_not_alike_ends_the_run(odd: bytes) -> None:
    before, after = [ack(number) for number in range(3)], [ack(number) for number in range(3, 6)]
    found = same(b"".join([*before, odd, *after]))
    assert [type(one) for one in found] == [c.AckRun, type(found[1]), c.AckRun]


def test_acks_that_are_alike_and_say_more_come_one_by_one() -> None:
    """A batch index, an answer that is asked for and an id whose fields stand twice are for the usual way."""
    for more in ({"request_id": 5}, {"txn": c.TxnId(1, 2)}):
        one = codec.encode(c.CommandAck(1, c.AckType.Individual, (c.MessageIdData(7, 4),), **more))
        assert [type(command) for command in same(one + one)] == [c.CommandAck, c.CommandAck]
    one = codec.encode(c.CommandAck(1, c.AckType.Individual, (c.MessageIdData(7, 4, 3, 2),)))
    assert [type(command) for command in same(one + one)] == [c.CommandAck, c.CommandAck]
    for fields in (b"\x08\x07\x10\x04\x10\x05", b"\x08\x07\x08\x04\x10\x05", b"\x10\x05\x08\x07"):
        inner = b"\x08\x01\x10\x00\x1a" + bytes((len(fields),)) + fields
        command = b"\x08\x0a\x52" + bytes((len(inner),)) + inner
        frame = (len(command) + 4).to_bytes(4, "big") + len(command).to_bytes(4, "big") + command
        assert [type(one) for one in same(frame + frame)] == [c.CommandAck, c.CommandAck]


def ack_of(*ids: c.MessageIdData, consumer_id: int = 1) -> bytes:
    return codec.encode(c.CommandAck(consumer_id, c.AckType.Individual, ids))


@pytest.mark.parametrize("consumer_id", [0, 127, 128, 1 << 40])
@pytest.mark.parametrize("ledger", [0, 127, 1 << 20])
def test_an_ack_of_many_ids_of_one_ledger_is_a_run(consumer_id: int, ledger: int) -> None:
    """As clients gather them: the numbers ascend, here across every length, or jump."""
    numbers = [*range(100, 150), 5, 200, 3, *range(16_370, 16_390), 0, 1 << 40]
    found = same(ack_of(*(c.MessageIdData(ledger, number) for number in numbers), consumer_id=consumer_id) * 2)
    assert found == [c.AckRun(consumer_id, ledger, numbers)] * 2


@pytest.mark.parametrize("at", [0, 1, 40, 79])
@pytest.mark.parametrize(
    "odd",
    [
        c.MessageIdData(8, 3), c.MessageIdData(7, 3, 0), c.MessageIdData(7, 3, -1, 2),
        c.MessageIdData(7, 3, ack_set=(5,), batch_size=9),
        c.MessageIdData(7, 3, first_chunk=c.MessageIdData(7, 2)),
    ],
    ids=("another ledger", "a partition", "an index", "an ack set", "a first chunk"),
)  # fmt: skip
def test_an_ack_of_many_ids_of_which_one_says_more_is_none(odd: c.MessageIdData, at: int) -> None:
    ids = [c.MessageIdData(7, number) for number in range(100, 180)]
    ids[at] = odd
    (found,) = Decoder(from_client=True).feed(ack_of(*ids))
    assert isinstance(found, c.CommandAck)
    assert [found] == Decoder().feed(ack_of(*ids))


def test_an_ack_of_many_ids_that_asks_for_more_is_none() -> None:
    ids = tuple(c.MessageIdData(7, number) for number in range(80))
    for command in (
        c.CommandAck(1, c.AckType.Individual, ids, request_id=5),
        c.CommandAck(1, c.AckType.Individual, ids, txn=c.TxnId(1, 2)),
        c.CommandAck(1, c.AckType.Individual, ids, validation_error=c.ValidationError.ChecksumMismatch),
        c.CommandAck(1, c.AckType.Cumulative, ids),
    ):
        assert Decoder(from_client=True).feed(codec.encode(command)) == [command]


def test_an_ack_of_many_ids_with_any_byte_changed_is_read_as_before() -> None:
    whole = ack_of(*(c.MessageIdData(7, number) for number in range(120, 140)))
    for at in range(4, len(whole)):
        for value in (0, 1, 7, 8, 0x10, 0x1A, 0x52, 0x7F, 0x80, 0xFF):
            frame = whole[:at] + bytes((value,)) + whole[at + 1 :]
            outcomes: list[list[c.Command] | str] = []
            for from_client in (True, False):
                try:
                    outcomes.append(one_by_one(Decoder(1 << 16, from_client=from_client).feed(frame)))
                except MalformedBytesError as error:
                    outcomes.append(str(error))
            assert outcomes[0] == outcomes[1], (at, value)


def test_two_make_a_run_and_one_does_not() -> None:
    assert [type(one) for one in same(ack(1))] == [c.CommandAck]
    assert [type(one) for one in same(ack(1) + ack(2))] == [c.AckRun]
    assert [type(one) for one in same(send(1))] == [c.CommandSend]
    assert [type(one) for one in same(send(1) + send(2))] == [c.SendRun]
    assert [type(one) for one in same(send(1) + send(2, producer_id=2))] == [c.CommandSend, c.CommandSend]


def test_a_client_gets_them_one_by_one() -> None:
    assert [type(one) for one in Decoder().feed(send(1) + send(2))] == [c.CommandSend, c.CommandSend]
    assert [type(one) for one in Decoder().feed(ack(1) + ack(2))] == [c.CommandAck, c.CommandAck]


@pytest.mark.parametrize(
    "odd",
    [
        codec.encode(c.CommandPing()),
        codec.encode(c.CommandFlow(1, 2)),
        codec.encode(c.CommandSend(1, 7, 5, None, False, None, False, None, ENTRY)),
        codec.encode(c.CommandSend(1, 7, 1, 9, False, None, False, None, ENTRY)),
        codec.encode(c.CommandSend(1, 7, 1, None, True, None, False, None, ENTRY)),
        codec.encode(c.CommandSend(1, 7, 1, None, False, c.TxnId(1, 2), False, None, ENTRY)),
        codec.encode(c.CommandSend(1, 7, 1, None, False, None, True, None, ENTRY)),
        send(7, ENTRY[:-1] + b"!"),
        send(7, build_entry(EntryMetadata("p", 0, 1), bytes(5_000))),
        send(7).replace(ENTRY, ENTRY[6:]).replace(
            (len(send(7)) - 4).to_bytes(4, "big"), (len(send(7)) - 10).to_bytes(4, "big"), 1
        ),
        send(1 << 62, producer_id=1 << 20),
    ],
    ids=(
        "PING", "FLOW", "a batch", "a highest id", "a chunk", "a transaction", "a marker", "a wrong checksum",
        "a large one", "no checksum", "a large producer id",
    ),
)  # fmt: skip
def test_what_is_not_alike_ends_the_run(odd: bytes) -> None:
    before, after = [send(number) for number in range(3)], [send(number) for number in range(3, 6)]
    found = same(b"".join([*before, odd, *after]))
    assert [type(one) for one in found] == [c.SendRun, type(found[1]), c.SendRun]
    assert len(one_by_one(found)) == 7


def test_a_wrong_checksum_is_reported_and_not_lost_in_a_run() -> None:
    found = one_by_one(same(send(1) + send(2) + send(3, ENTRY[:-1] + b"!") + send(4)))
    assert [one.checksum_ok for one in found if isinstance(one, c.CommandSend)] == [True, True, False, True]


def test_a_metadata_size_beyond_the_frame_is_no_part_of_a_run() -> None:
    body = (1 << 20).to_bytes(4, "big") + b"metadata"
    entry = CHECKSUM_MAGIC.to_bytes(2, "big") + crc32c(body).to_bytes(4, "big") + body
    with pytest.raises(MalformedBytesError, match="longer than its frame") as raised:
        Decoder(from_client=True).feed(send(1) + send(2) + send(3, entry) + send(4))
    assert [one.sequence_id for one in one_by_one(raised.value.decoded) if isinstance(one, c.CommandSend)] == [1, 2]


def test_an_unfinished_frame_at_every_byte() -> None:
    frames = b"".join(made(number) for made in (send, as_others_send_it, ack) for number in range(124, 131))
    for cut in range(len(frames)):
        decoder = Decoder(from_client=True)
        found = decoder.feed(frames[:cut])
        found += decoder.feed(frames[cut:])
        assert one_by_one(found) == one_by_one(Decoder().feed(frames)), cut


@pytest.mark.parametrize("made", [send, as_others_send_it, ack])
def test_a_slice_bounds_a_run(made: Callable[[int], bytes]) -> None:
    frames = b"".join(made(number) for number in range(200, 1200))
    decoder = Decoder(from_client=True)
    decoder.slice_bytes = 10 * len(made(200))
    first = one_by_one(decoder.feed_slice(frames))
    assert 10 <= len(first) <= 11
    assert decoder.waiting
    rest: list[c.Command] = []
    while decoder.waiting:
        rest += decoder.more()
    assert one_by_one([*first, *rest]) == Decoder().feed(frames)


def test_a_frame_that_is_too_large_is_one_in_a_run_as_well() -> None:
    small, large = send(1), send(2, build_entry(EntryMetadata("p", 0, 1), bytes(200)))
    for from_client in (True, False):
        decoder = Decoder(len(small) + 100, from_client=from_client)
        with pytest.raises(MalformedBytesError, match="bytes") as raised:
            decoder.feed(small + small + large + small)
        assert len(one_by_one(raised.value.decoded)) == 2


@pytest.mark.parametrize(("metadata", "delayed"), [({}, False), ({"deliver_at_time": 1 << 40}, True)])
def test_it_says_whether_one_may_be_delayed(metadata: dict[str, int], delayed: bool) -> None:
    entry = build_entry(EntryMetadata("p", 0, 1, **metadata), b"payload")  # type: ignore[arg-type]
    (run,) = same(send(1) + send(2, entry) + send(3))
    assert isinstance(run, c.SendRun)
    assert run.may_be_delayed is delayed


@pytest.mark.parametrize("seed", range(20))
def test_any_mixture(seed: int) -> None:
    """Frames in any order and with single bytes changed are read as one by one, errors included."""
    rng = random.Random(seed)
    kinds = [
        lambda number: send(number),
        lambda number: send(number, producer_id=rng.choice((1, 200, 1 << 14))),
        lambda number: as_others_send_it(number),
        lambda number: send(number, build_entry(EntryMetadata("q", number, 1), bytes(rng.randrange(300)))),
        lambda number: ack(number),
        lambda number: ack(number, consumer_id=rng.choice((1, 200, 1 << 14))),
        lambda number: codec.encode(c.CommandPing()),
    ]
    for _ in range(200):
        number = rng.choice((0, 120, 16_380, (1 << 21) - 4, 1 << 28))
        frames = bytearray()
        few = rng.sample(kinds, rng.randrange(1, 5))
        for offset in range(rng.randrange(12)):
            frames += rng.choice(few)(number + offset)
        if rng.random() < 0.7 and frames:
            frames[rng.randrange(len(frames))] = rng.randrange(256)
        outcomes: list[tuple[list[c.Command], str | None]] = []
        for from_client in (True, False):
            try:
                outcomes.append((one_by_one(Decoder(1 << 16, from_client=from_client).feed(bytes(frames))), None))
            except MalformedBytesError as error:
                outcomes.append((one_by_one(error.decoded), str(error)))
        assert outcomes[0] == outcomes[1]


@pytest.mark.parametrize("number", [(1 << 63) - 2, 1 << 63, (1 << 64) - 2])
def test_numbers_of_ten_bytes_are_for_the_usual_way(number: int) -> None:
    """What it makes of ids that Java shows as negative is what a run of them is."""
    producer, consumer = b"\x08\x01\x10" + varint(number), b"\x08\x01\x10\x00"
    one_id = b"\x08\x07\x10" + varint(number)
    ids = b"\x1a" + bytes((len(one_id),)) + one_id
    far = b"\x08" + varint(number) + b"\x10\x00" + (b"\x1a\x04\x08\x07\x10\x05" * 20)
    for body, kind, entry in (
        (producer, b"\x08\x06\x32", ENTRY), (consumer + ids, b"\x08\x0a\x52", b""),
        (consumer + ids * 9, b"\x08\x0a\x52", b""), (far, b"\x08\x0a\x52", b""),
    ):  # fmt: skip
        frames = raw(kind + varint(len(body)) + body, entry) * 3
        assert outcome(frames, from_client=True) == outcome(frames, from_client=False)


def test_metadata_that_fill_the_frame_are_part_of_a_run() -> None:
    empty = with_checksum(bytes(4))
    for entry in (build_entry(EntryMetadata("p", 0, 1), b""), empty):
        (run,) = same(send(1, entry) + send(2, entry))
        assert isinstance(run, c.SendRun)
        assert run.entries == [entry, entry]


@pytest.mark.parametrize("size", [4095, 4096, 4097])
def test_a_frame_of_a_run_has_4096_bytes_at_most(size: int) -> None:
    """Copying a larger one takes longer than reading its command (docs/decisions/077)."""
    small = build_entry(EntryMetadata("p", 0, 1), b"")
    entry = small + bytes(size - len(send(1, small)))
    entry = with_checksum(entry[6:])
    assert len(send(1, entry)) == size
    assert len(same(send(1, entry) * 3)) == (1 if size <= 4096 else 3)
    assert len(same(send(1, small) * 2 + send(1, entry))) == (1 if size <= 4096 else 2)


@pytest.mark.parametrize("made", [send, as_others_send_it, ack])
def test_frames_of_exactly_the_size_that_is_allowed_are_a_run(made: Callable[[int], bytes]) -> None:
    frames = made(1) + made(2)
    assert len(Decoder(len(made(1)), from_client=True).feed(frames)) == 1
    with pytest.raises(MalformedBytesError, match="bytes"):
        Decoder(len(made(1)) - 1, from_client=True).feed(frames)
