"""What clients really send is read without the schema, in a third to a half of the time, and as the schema reads it."""

from __future__ import annotations

from contextlib import suppress
from itertools import product
from typing import NoReturn

import pytest

from magnetar.model.errors import ProtocolError
from magnetar.protocol import codec
from magnetar.protocol import commands as c
from magnetar.protocol.compression import CompressionType
from magnetar.protocol.decoder import Decoder
from magnetar.protocol.entries import (
    BATCH_MESSAGE_MIN,
    EntryMetadata,
    build_entry,
    chunk_of,
    deliver_at,
    messages_in,
    sticky_key_by_protobuf,
)
from magnetar.protocol.frames import with_checksum
from magnetar.protocol.generated import pulsar_pb2 as pb
from magnetar.protocol.sticky_key import sticky_key, sticky_keys
from magnetar.protocol.varints import varint

ENTRY = build_entry(EntryMetadata("p", 0, 1), b"payload")
NUMBERS = (0, 1, 127, 128, 300, 16_383, 16_384, (1 << 21) - 1, 1 << 21, (1 << 63) - 1)
INT32_MAX = (1 << 31) - 1


def _never(*_: object, **__: object) -> NoReturn:
    pytest.fail("the schema was asked")


def _ids() -> list[c.MessageIdData]:
    found = [c.MessageIdData(ledger, entry) for ledger, entry in product(NUMBERS, repeat=2)]
    return found + [
        c.MessageIdData(7, 9, partition, index) for partition, index in product((-1, 0, INT32_MAX), repeat=2)
    ]


SENDS = [
    *(
        c.CommandSend(producer, sequence, messages, None, False, None, False, None, ENTRY)
        for producer, sequence, messages in product(NUMBERS, NUMBERS, (1, 2, 300, INT32_MAX))
    ),
    *(c.CommandSend(1, 2, 3, highest, True, None, True, None, ENTRY) for highest in NUMBERS),
]
ACKS = [
    *(c.CommandAck(consumer, c.AckType.Individual, (one,)) for consumer, one in product(NUMBERS, _ids())),
    *(c.CommandAck(consumer, c.AckType.Cumulative, (_ids()[0],), request_id=consumer) for consumer in NUMBERS),
    c.CommandAck(7, c.AckType.Individual, tuple(_ids()[:10])),
]
MESSAGES = [
    c.CommandMessage(consumer, one, redelivery, (), None, None, ENTRY)
    for consumer, one, redelivery in product((0, 300, NUMBERS[-1]), _ids(), (0, INT32_MAX))
]


@pytest.mark.parametrize("commands", [SENDS, ACKS, MESSAGES], ids=["SEND", "ACK", "MESSAGE"])
def test_a_hot_command_with_its_usual_fields(commands: list[c.Command], monkeypatch: pytest.MonkeyPatch) -> None:
    """One without lists of words, transactions and encryption, whatever its numbers."""
    frames = b"".join(map(codec.encode, commands))
    monkeypatch.setattr(codec, "decode", _never)
    assert Decoder().feed(frames) == commands


FAR, NEAR = c.MessageIdData(300, 5), c.MessageIdData(5, 300)
WRITTEN: dict[str, c.Command] = {
    "a SEND": c.CommandSend(1, 20_000, 1, None, False, None, False, None, ENTRY),
    "a SEND of many": c.CommandSend(300, 7, 9, 200, False, None, True, None, ENTRY),
    "an ACK": c.CommandAck(300, c.AckType.Individual, (NEAR,)),
    "an ACK of many": c.CommandAck(7, c.AckType.Cumulative, (FAR, NEAR, NEAR), request_id=300),
    "a MESSAGE": c.CommandMessage(7, NEAR, 0, (), None, None, ENTRY),
    "a MESSAGE that comes again": c.CommandMessage(300, c.MessageIdData(1 << 20, 5, 3, 4), 200, (), None, None, ENTRY),
}


@pytest.mark.parametrize("written", list(WRITTEN))
def test_a_hot_command_with_any_byte_changed_is_what_the_schema_finds(written: str) -> None:
    """The same command, or none that can be read."""
    frame = codec.encode(WRITTEN[written])
    stop = 8 + int.from_bytes(frame[4:8], "big")
    for at, value in product(range(10, stop), range(256)):
        changed = frame[:at] + bytes((value,)) + frame[at + 1 :]
        found: list[c.Command] = []
        expected: list[c.Command] = []
        with suppress(ProtocolError):
            expected.append(codec.decode(changed[8:stop], frame[stop:]))
        with suppress(ProtocolError):
            found += Decoder().feed(changed)
        assert found == expected, (at, value)


def _with(name: str, place: str, number: int) -> bytes:
    """A command of usual fields, in which one number is another."""
    base = pb.BaseCommand(type=pb.BaseCommand.Type.Value(name))
    inner = getattr(base, name.lower())
    if name == "SEND":
        inner.producer_id, inner.sequence_id, inner.num_messages = 1, 2, 3
    elif name == "ACK":
        inner.consumer_id, inner.ack_type = 1, pb.CommandAck.Individual
        inner.message_id.add(ledgerId=1, entryId=2)
    else:
        inner.consumer_id, inner.message_id.ledgerId, inner.message_id.entryId = 1, 2, 3
    holder, _, field = place.rpartition(".")
    if holder:
        inner = inner.message_id[0] if name == "ACK" else inner.message_id
    setattr(inner, field, number)
    return base.SerializeToString()


@pytest.mark.parametrize(
    ("name", "place", "bits"),
    [
        *(("SEND", place, 63) for place in ("producer_id", "sequence_id", "highest_sequence_id")),
        *(("ACK", place, 63) for place in ("consumer_id", "request_id", "id.ledgerId", "id.entryId")),
        *(("MESSAGE", place, 63) for place in ("consumer_id", "id.ledgerId", "id.entryId")),
        ("MESSAGE", "redelivery_count", 31),
    ],
)
def test_a_number_that_is_negative_to_apache_pulsar_is_what_the_schema_finds(name: str, place: str, bits: int) -> None:
    """Its languages have no unsigned numbers: what is read by hand ends where they do."""
    for number in (0, (1 << bits) - 1, 1 << bits, (1 << bits) + 1, (2 << bits) - 1):
        body = _with(name, place, number)
        frame = (len(body) + 4 + len(ENTRY)).to_bytes(4, "big") + len(body).to_bytes(4, "big") + body + ENTRY
        assert Decoder().feed(frame) == [codec.decode(body, ENTRY)], number


@pytest.mark.parametrize("number", [INT32_MAX, INT32_MAX + 1, INT32_MAX + 2])
def test_a_count_of_messages_or_a_place_in_a_batch_above_32_bits_is_what_the_schema_finds(number: int) -> None:
    for written, most in (
        (WRITTEN["a SEND of many"], b"\x18\x09"), (WRITTEN["a MESSAGE that comes again"], b"\x18\x03"),
        (WRITTEN["a MESSAGE that comes again"], b"\x20\x04"),
    ):  # fmt: skip
        whole = codec.encode(written)
        body = whole[8 : 8 + int.from_bytes(whole[4:8], "big")]
        assert body.count(most) == 1
        # protobuf's own writer refuses such a number: the lengths around it are made to fit by hand
        longer = _longer(body, body.index(most) + 1, varint(number))
        frame = (len(longer) + 4 + len(ENTRY)).to_bytes(4, "big") + len(longer).to_bytes(4, "big") + longer + ENTRY
        assert Decoder().feed(frame) == [codec.decode(longer, ENTRY)]


def _longer(body: bytes, at: int, number: bytes) -> bytes:
    """The command with another number at a place, and the lengths of what holds it."""
    changed = bytearray(body[:at] + number + body[at + 1 :])
    more = len(number) - 1
    changed[3] += more
    if body[4] == 0x08 and body[2] == 0x4A:  # a MESSAGE: the number stands in its id
        id_at = body.index(b"\x12", 5)
        changed[id_at + 1] += more
    return bytes(changed)


KEYED = [
    EntryMetadata("p" * name, sequence, publish_time, partition_key="k" * key)
    for name, sequence, publish_time, key in product((0, 1, 127), (-1, 0, 127, 128), (-1, 0, 127, 1 << 41), (0, 1, 127))
]
WITH_SIZES = [
    EntryMetadata(
        "p", 7, 1 << 41, partition_key="k", compression=packed, uncompressed_size=size, num_messages_in_batch=count
    )
    for packed, size, count in product((CompressionType.NONE, CompressionType.ZSTD), (0, 127, 5 << 20), (None, 1, 1000))
]


@pytest.mark.parametrize("metadata", [KEYED, WITH_SIZES], ids=["alone", "with sizes behind it"])
def test_the_key_of_an_entry(metadata: list[EntryMetadata], monkeypatch: pytest.MonkeyPatch) -> None:
    """One that stands where all clients write it, behind the producer's name, the sequence id and the time."""
    monkeypatch.setattr("magnetar.protocol.sticky_key.sticky_key_by_protobuf", _never)
    for one, payload in product(metadata, (b"", b"payload")):
        assert sticky_key(build_entry(one, payload)).decode() == one.partition_key


CHANGED = build_entry(
    EntryMetadata("p", 300, 1 << 41, partition_key="k", uncompressed_size=5, num_messages_in_batch=2), b""
)


@pytest.mark.parametrize("at", range(len(CHANGED)))
def test_the_key_of_an_entry_with_any_byte_changed_is_what_the_schema_finds(at: int) -> None:
    """Also where a byte before or behind it is missing, or is there twice."""
    before, behind = CHANGED[:at], CHANGED[at + 1 :]
    for changed in [before + bytes((value,)) + behind for value in range(256)]:
        assert sticky_key(changed) == sticky_key_by_protobuf(changed)
    for size in (len(CHANGED) - 11, len(CHANGED) - 9):
        head = CHANGED[:6] + size.to_bytes(4, "big")
        changed = (head + CHANGED[10:at] + CHANGED[at : at + 1] * (size - len(CHANGED) + 11) + behind)[: size + 10]
        assert sticky_key(changed) == sticky_key_by_protobuf(changed)


@pytest.mark.parametrize("size", range(7, 13))
def test_a_number_before_the_key_of_an_entry_has_ten_bytes_at_most(size: int) -> None:
    """One of more is no number, and the entry none that can be read (rule 5.6.1)."""
    number = b"\x80" * (size - 1) + b"\x01"
    for sequence_id, publish_time in ((number, b"\x05"), (b"\x05", number)):
        metadata = b"\x0a\x01p\x10" + sequence_id + b"\x18" + publish_time + b"\x32\x01k"
        entry = with_checksum(len(metadata).to_bytes(4, "big") + metadata)
        assert sticky_key(entry) == sticky_key_by_protobuf(entry) == (b"k" if size <= 10 else b"NONE_KEY")


def test_a_name_and_a_key_of_128_bytes_are_read_to_their_ends() -> None:
    """Their lengths have two bytes: who takes the first for all of it finds other fields in the rest."""
    name = EntryMetadata("p" * 127 + "\x10", 0x18, 0x32, partition_key="k" * 49)
    assert sticky_key(build_entry(name, b"")) == b"k" * 49
    size, more = b"\x40", b"\x05" + b"\x40\x80\x01" * 21
    key = EntryMetadata("p", 1, 5, partition_key="k" * 127 + size.decode(), schema_version=more)
    assert sticky_key(build_entry(key, b"")) == b"k" * 127 + size


def test_what_an_entry_does_not_say(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of most entries a search tells that they have no time of delivery, are no chunk, and how many messages they hold,
    whatever their payload looks like."""
    monkeypatch.setattr("magnetar.protocol.entries.parse", _never)
    for size, count in product((0, 300, 70_000), (1, 2, 127, 128)):
        metadata = EntryMetadata("p", 0, 1, properties=(("pad", "x" * size),), num_messages_in_batch=count)
        entry = build_entry(metadata, b"\x98\x01\x05\xd2\x01\x01u" + bytes(count * BATCH_MESSAGE_MIN))
        assert deliver_at(entry) == 0
        assert chunk_of(entry) is None
        assert messages_in(entry, count) == count
        assert messages_in(entry, 1) == 1


def _keyed(number: int, key: str = "", producer: str = "p", count: int | None = None) -> bytes:
    metadata = EntryMetadata(
        producer, number, (1 << 41) + number, partition_key=key or f"{number:04}", num_messages_in_batch=count
    )
    return build_entry(metadata, b"payload" * (number % 3))


@pytest.mark.parametrize("count", [None, 1, 300])
def test_keys_of_entries_that_are_laid_out_alike_are_read_together(
    count: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One entry says where the keys of all of them stand."""
    entries = [_keyed(number, producer="pq"[number % 2], count=count) for number in range(1000, 1100)]
    wanted = [f"{number:04}".encode() for number in range(1000, 1100)]
    monkeypatch.setattr("magnetar.protocol.sticky_key.sticky_key", _never)
    assert sticky_keys(entries) == wanted


def test_keys_of_entries_of_several_sizes_keep_their_order() -> None:
    """Some sizes occur often, others once, and one has an entry that has to be asked of the schema."""
    entries = [_keyed(number, f"key-{number * number % 1017}", "p" * (number % 3 + 1)) for number in range(90, 290)]
    entries[50:50] = [b"", build_entry(EntryMetadata("p", 7, 1, ordering_key=b"o"), b""), _keyed(1, "k" * 140)]
    assert sticky_keys(entries) == list(map(sticky_key_by_protobuf, entries))
    assert sticky_keys([]) == []


@pytest.mark.parametrize("at", range(len(CHANGED)))
def test_keys_of_entries_with_any_byte_of_one_changed_are_what_the_schema_finds(at: int) -> None:
    """Wherever it is among those that are laid out as it was."""
    for value in range(256):
        changed = CHANGED[:at] + bytes((value,)) + CHANGED[at + 1 :]
        entries = [CHANGED] * 8
        entries[value % 8] = changed
        assert sticky_keys(entries) == list(map(sticky_key_by_protobuf, entries))


def test_keys_of_entries_whose_payload_would_be_their_metadata() -> None:
    """What an entry lacks of its metadata is not made up for by the next one's bytes."""
    short = [CHANGED[:-1]] * 8
    assert sticky_keys(short) == [b"NONE_KEY"] * 8
    assert sticky_keys([*short, CHANGED + b"payload"]) == [b"NONE_KEY"] * 8 + [b"k"]
