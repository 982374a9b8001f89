"""Sizes of numbers and metadata at which the hand-made readers of commands and entries take another path."""

from __future__ import annotations

import dataclasses
import inspect
import re
from enum import IntEnum
from itertools import product
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

import pytest

from magnetar.model.errors import ProtocolError, ServerError
from magnetar.protocol import codec, commands
from magnetar.protocol import commands as c
from magnetar.protocol import entries as e
from magnetar.protocol.batches import BATCH_BYTES_MAX, BATCH_MESSAGES_MAX
from magnetar.protocol.decoder import Decoder, MalformedBytesError
from magnetar.protocol.frames import checksum_holds
from magnetar.protocol.generated import pulsar_pb2 as pb

AROUND = {(1 << bits) + step for bits in (7, 14, 21, 28, 35, 56) for step in (-1, 0, 1)}
LIKE_TAGS = {tag << 7 for tag in (0x08, 0x10, 0x18, 0x1A, 0x20, 0x30, 0x38, 0x40)}
"""Their second byte is what the next field begins with."""
NUMBERS = sorted({0, 1, (1 << 63) - 1} | AROUND | LIKE_TAGS)
SMALL_NUMBERS = [number for number in NUMBERS if number < 1 << 31]
ENTRY = e.build_entry(e.EntryMetadata("p", 0, 1), b"payload")


def decoded(command: c.Command) -> list[c.Command]:
    return Decoder().feed(codec.encode(command))


@pytest.mark.parametrize("ledger", NUMBERS)
def test_ids_of_every_length(ledger: int) -> None:
    """Two bytes, three bytes and more each have a way of their own, also at the very end of an id."""
    ids = [c.MessageIdData(ledger, entry) for entry in NUMBERS]
    ids += [c.MessageIdData(entry, ledger, 0, entry) for entry in SMALL_NUMBERS]
    ids += [c.MessageIdData(ledger, 5, part, index) for part, index in product((-1, 0, 127, 128, 16384), repeat=2)]
    for one in ids:
        ack = c.CommandAck(7, c.AckType.Individual, (one,), request_id=ledger)
        assert decoded(ack) == [ack]
        message = c.CommandMessage(ledger, one, 3, (), None, None, ENTRY)
        assert decoded(message) == [message]
    everything = c.CommandAck(ledger, c.AckType.Individual, tuple(ids))
    assert decoded(everything) == [everything]


def test_a_number_that_is_cut_off_where_the_bytes_end_is_refused() -> None:
    """Nothing behind it is looked at."""
    for ledger, entry in ((5, 300), (300, 5), (5, 20_000)):
        frame = codec.encode(c.CommandAck(7, c.AckType.Individual, (c.MessageIdData(ledger, entry),)))
        with pytest.raises(MalformedBytesError):
            Decoder().feed(frame[:-1] + bytes((frame[-1] | 128,)))


@pytest.mark.parametrize("number", NUMBERS)
def test_sends_of_every_length(number: int) -> None:
    for producer, sequence in ((number, 1), (1, number), (number, number)):
        for command in (
            c.CommandSend(producer, sequence, 1, None, False, None, False, None, ENTRY),
            c.CommandSend(producer, sequence, 2, number, False, None, False, None, ENTRY),
            c.CommandSend(producer, sequence, 1, number, True, None, True, None, ENTRY),
            c.CommandSend(producer, sequence, 1, None, False, c.TxnId(number, sequence), False, None, ENTRY),
        ):
            assert decoded(command) == [command]


@pytest.mark.parametrize("many", SMALL_NUMBERS)
def test_counts_of_every_length(many: int) -> None:
    for command in (
        c.CommandSend(1, 2, many, None, False, None, False, None, ENTRY),
        c.CommandMessage(1, c.MessageIdData(1, 2), many, (), None, None, ENTRY),
        c.CommandFlow(many, many),
    ):
        assert decoded(command) == [command]


@pytest.mark.parametrize("cut", range(1, 24))
def test_an_ack_that_ends_inside_a_number_is_no_ack(cut: int) -> None:
    """Whatever the hand-made path makes of it, it is what the schema makes of it: an error or the same command."""
    whole = codec.encode(
        c.CommandAck(300, c.AckType.Individual, (c.MessageIdData(1 << 20, 1 << 14),), request_id=1 << 14)
    )
    body = whole[8:]
    short = body[: len(body) - cut]
    if len(short) < 4:
        return
    # the lengths inside are those of the whole one: nothing valid is left
    frame = (len(short) + 4).to_bytes(4, "big") + len(short).to_bytes(4, "big") + short
    with pytest.raises(ProtocolError):
        Decoder().feed(frame)


@pytest.mark.parametrize("size", [3, 100, 127, 128, 240, 255, 256, 257, 4000, 65_535, 65_536, 70_000])
def test_what_is_looked_for_in_metadata_is_found_wherever_it_stands(size: int) -> None:
    """The search goes to the end of the metadata, of which three bytes say where it is, and not into the payload."""
    pad = (("pad", "x" * size),)
    payload = b"\xd2\x01\x01u\x98\x01\x05"
    plain = e.build_entry(e.EntryMetadata("p", 0, 1, properties=pad), payload)
    assert e.chunk_of(plain) is None
    assert e.deliver_at(plain) == 0
    late = e.build_entry(e.EntryMetadata("p", 0, 1, properties=pad, deliver_at_time=77), payload)
    assert e.deliver_at(late) == 77
    for number, last in ((0, False), (1, True)):
        metadata = e.EntryMetadata(
            "p", 0, 1, properties=pad, uuid="u", num_chunks_from_msg=2, total_chunk_msg_size=9, chunk_id=number
        )
        assert e.chunk_of(e.build_entry(metadata, payload)) == ("u", last)


@pytest.mark.parametrize("size", [0, 1, 63, 4095, 4096, 4097, 16_384, 65_536, 1_000_000])
def test_a_flip_anywhere_in_an_entry_of_any_size_is_noticed(size: int) -> None:
    entry = e.build_entry(e.EntryMetadata("p", 0, 1), bytes(size))
    assert checksum_holds(entry)
    for at in {0, 1, 2, 5, 6, 9, 10, len(entry) // 2, len(entry) - 1}:
        for bit in (1, 0x80):
            damaged = bytearray(entry)
            damaged[at] ^= bit
            assert not checksum_holds(bytes(damaged))
            if at in {0, 1, 6, 9}:
                continue  # no entry any more: another way to come in, or no frame
            (sent,) = decoded(c.CommandSend(1, 2, 1, None, False, None, False, None, bytes(damaged)))
            assert isinstance(sent, c.CommandSend)
            assert not sent.checksum_ok


# the schema ------------------------------------------------------------------------------------------------------

ENUMS = [
    kind
    for kind in vars(commands).values()
    if isinstance(kind, type) and issubclass(kind, IntEnum) and kind is not IntEnum
] + [ServerError]


def _same(name: str) -> str:
    return name.replace("_", "").lower().replace("boolean", "bool")


HOLDERS: list[Any] = [pb.DESCRIPTOR, *pb.DESCRIPTOR.message_types_by_name.values()]
SCHEMA = [
    {_same(value.name): value.number for value in found.values}
    for holder in HOLDERS
    for found in holder.enum_types_by_name.values()
]


@pytest.mark.parametrize("kind", ENUMS, ids=lambda kind: kind.__name__)
def test_numbers_of_names_are_the_schemas(kind: type[IntEnum]) -> None:
    """Each name of an enum has the number of the protocol definition, those of errors included (rule 1.3.20)."""
    members = {_same(member.name): int(member) for member in kind if member >= 0}
    assert any(members.items() <= found.items() for found in SCHEMA), members


def _simple(hint: Any) -> Any:
    """Some value of that type that is not empty where it can be something."""
    if get_origin(hint) is tuple:
        return ()
    if get_args(hint):
        return None
    if issubclass(hint, IntEnum):
        return max(hint)
    if issubclass(hint, bool | int | str):
        return hint("1")
    if issubclass(hint, bytes):
        return b"1"
    hints = get_type_hints(hint)
    needed = inspect.signature(hint).parameters.values()
    return hint(*[_simple(hints[one.name]) for one in needed if one.default is inspect.Parameter.empty])


@pytest.mark.parametrize("kind", list(codec.NUMBERS), ids=lambda kind: kind.__name__)
def test_what_is_absent_on_the_wire_is_the_default(kind: Any) -> None:
    """A command whose optional fields were taken out of its frame is the command made without them."""
    if not dataclasses.is_dataclass(kind):
        return
    make: Any = kind
    required = {field.name for field in dataclasses.fields(kind) if field.default is dataclasses.MISSING}
    hints = get_type_hints(kind)
    made: Any = make(**{name: _simple(hints[name]) for name in required})
    frame = codec.encode(made)
    raw = pb.BaseCommand.FromString(frame[8 : 8 + int.from_bytes(frame[4:8], "big")])
    inner = next(value for field, value in raw.ListFields() if field.name != "type")
    for field, _ in inner.ListFields():
        if not field.is_required and not field.name.startswith(("txnid", *required)):
            inner.ClearField(field.name)
    assert codec.decode(raw.SerializeToString(), b"", True) == made


@pytest.mark.parametrize("end", [b"\x9c\x81", b"\x1c\x01", b"\x9c\x9c"])
def test_a_send_whose_number_does_not_end_or_is_followed_by_half_a_field_is_none(end: bytes) -> None:
    """What is read by hand for speed is read as strictly as by the schema."""
    frame = codec.encode(c.CommandSend(1, 20_000, 1, None, False, None, False, None, ENTRY, True))
    # as clients write it that leave out how many messages there are: 1
    head = b"\0\0\0\x28\0\0\0\x0c\x08\x06\x32\x08\x08\x01\x10\xa0\x9c\x01\x18\x01"
    assert frame.startswith(head)
    frame = b"\0\0\0\x26\0\0\0\x0a\x08\x06\x32\x06\x08\x01\x10\xa0\x9c\x01" + frame[len(head) :]
    (sent,) = Decoder().feed(frame)
    assert isinstance(sent, c.CommandSend)
    assert sent.sequence_id == 20_000
    with pytest.raises(ProtocolError):
        list(Decoder().feed(frame.replace(b"\x10\xa0\x9c\x01", b"\x10\xa0" + end)))


def test_the_lists_of_a_command_hold_as_many_items_as_are_allowed_and_not_one_more() -> None:
    base = pb.BaseCommand(type=pb.BaseCommand.ACK)
    base.ack.consumer_id, base.ack.ack_type = 1, pb.CommandAck.Individual
    for entry in range(codec.PARTS_MAX):
        base.ack.message_id.add(ledgerId=1, entryId=entry)
    found = codec.decode(base.SerializeToString())
    assert isinstance(found, c.CommandAck) and len(found.message_ids) == codec.PARTS_MAX
    base.ack.message_id.add(ledgerId=1, entryId=0)
    with pytest.raises(ProtocolError, match="at most 10000 are allowed"):
        codec.decode(base.SerializeToString())


def test_a_bulk_senders_batch_is_as_large_as_its_document_says() -> None:
    """Where nobody sets another size, which decides how many entries a table becomes."""
    document = (Path(__file__).parents[3] / "docs" / "spark.md").read_text()
    documented = re.findall(r"batchingMax(?:Messages|Bytes)` \| sink \| .*?, (\d+) \|", document)
    assert [str(BATCH_MESSAGES_MAX), str(BATCH_BYTES_MAX)] == documented
