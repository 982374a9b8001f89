"""Bytes that no codec of ours writes: texts that are no UTF-8, commands of two types, lengths that lead outside."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from magnetar.model.errors import ProtocolError
from magnetar.protocol import codec
from magnetar.protocol import commands as c
from magnetar.protocol import entries as e
from magnetar.protocol.decoder import SLICE_COMMANDS, Decoder, MalformedBytesError
from magnetar.protocol.frames import BROKER_METADATA_MAGIC, with_checksum
from magnetar.protocol.generated import pulsar_pb2 as pb
from magnetar.protocol.unparsed_commands import parts_of
from magnetar.protocol.varints import varint

PING = codec.encode(c.CommandPing())
ENTRY = e.build_entry(e.EntryMetadata("p", 0, 1), b"payload")
SEND = codec.encode(c.CommandSend(1, 2, 1, None, False, None, False, None, ENTRY))
MESSAGE = codec.encode(c.CommandMessage(1, c.MessageIdData(1, 2), 0, (), None, None, ENTRY, True))


def frame(command: bytes, entry: bytes = b"") -> bytes:
    size = len(command).to_bytes(4, "big")
    return (4 + len(command) + len(entry)).to_bytes(4, "big") + size + command + entry


def command_of(whole: bytes) -> bytes:
    return whole[8 : 8 + int.from_bytes(whole[4:8], "big")]


def test_texts_that_are_no_utf8_are_mended_and_a_key_keeps_its_bytes() -> None:
    """C++ clients send such; the rest of the entry is as it was."""
    whole = e.EntryMetadata(
        "prod", 7, 1, properties=(("aaaa", "bbbb"), ("x", "y")), partition_key="kkkk", replicate_to=("cccc", "west"),
        replicated_from="dddd",
    )  # fmt: skip
    entry = e.build_entry(whole, b"payload")
    for text in (b"prod", b"aaaa", b"bbbb", b"kkkk", b"cccc", b"dddd"):
        entry = entry.replace(text, b"\xff" + text[1:])
    damaged = with_checksum(entry[6:])
    with pytest.raises(ProtocolError):
        e.metadata_of(damaged)
    found = e.mended_metadata_of(damaged)
    assert (found.producer_name, found.replicated_from) == ("\ufffdrod", "\ufffdddd")
    assert found.properties == (("\ufffdaaa", "\ufffdbbb"), ("x", "y"))
    assert found.replicate_to == ("\ufffdccc", "west")
    assert (found.partition_key, found.partition_key_b64_encoded) == (base64.b64encode(b"\xffkkk").decode(), True)
    assert (found.sequence_id, found.publish_time) == (7, 1)
    sound = e.build_entry(whole, b"payload")
    assert e.mended_metadata_of(sound) == e.metadata_of(sound)


@pytest.mark.parametrize("before", [{}, {"partition_key": "k"}, {"event_time": 5}, {"sequence_id": 9}])
@pytest.mark.parametrize("out", [False, True])
def test_the_size_of_a_message_in_a_batch_is_found_wherever_it_stands(before: dict[str, Any], out: bool) -> None:
    """Fields of protobuf may come in any order."""
    metadata = pb.SingleMessageMetadata(payload_size=5, compacted_out=out)
    raw = pb.SingleMessageMetadata(payload_size=0, **before).SerializePartialToString().replace(b"\x18\x00", b"", 1)
    raw += metadata.SerializeToString()
    payload = len(raw).to_bytes(4, "big") + raw + b"12345"
    assert [own for _, _, own in e.cut_batch(payload, 1)] == ([] if out else [b"12345"])


@pytest.mark.parametrize("first", [b"", b"\x0a\x00", b"\x28\x05", b"\x40\x09"])
def test_a_message_of_less_than_nothing_is_refused(first: bytes) -> None:
    raw = first + pb.SingleMessageMetadata(payload_size=-1).SerializeToString()
    with pytest.raises(ProtocolError):
        e.cut_batch(len(raw).to_bytes(4, "big") + raw + b"12345", 1)


@pytest.mark.parametrize("whole", [SEND, MESSAGE])
@pytest.mark.parametrize("behind", [True, False])
def test_a_command_of_two_types_is_refused(whole: bytes, behind: bool) -> None:
    """The last one would count for protobuf, and the first one has said whether an entry follows."""
    command, ping = command_of(whole), command_of(PING)
    both = command + ping if behind else ping + command
    with pytest.raises(MalformedBytesError, match=r"two types|does not stand first or stands there twice"):
        Decoder().feed(frame(both, whole[8 + len(command) :]))


def test_what_a_broker_says_of_an_entry_is_not_longer_than_its_frame() -> None:
    command, entry = command_of(MESSAGE), MESSAGE[8 + len(command_of(MESSAGE)) :]
    said = pb.BrokerEntryMetadata(index=5).SerializeToString()
    for size, refused in ((len(said), False), (len(said) + len(entry) + 1, True), (1 << 30, True)):
        before = BROKER_METADATA_MAGIC.to_bytes(2, "big") + size.to_bytes(4, "big") + said
        if refused:
            with pytest.raises(MalformedBytesError, match="broker entry metadata is longer than its frame"):
                Decoder().feed(frame(command, before + entry))
        else:
            found: Any
            (found,) = Decoder().feed(frame(command, before + entry))
            assert found.broker_metadata.index == 5 and found.entry == ENTRY


@pytest.mark.parametrize("command", [b"", b"\x08"])
@pytest.mark.parametrize("behind", [b"", SEND, command_of(SEND)])
def test_a_command_without_a_type_is_refused_whatever_follows_it(command: bytes, behind: bytes) -> None:
    """Also as the last bytes that have come; what follows is not taken for a part of it."""
    with pytest.raises(MalformedBytesError):
        Decoder().feed(frame(command) + behind)
    with pytest.raises(MalformedBytesError):
        Decoder().feed(frame(command, behind))


@pytest.mark.parametrize("good", [0, 1, SLICE_COMMANDS, 3 * SLICE_COMMANDS + 1])
def test_all_commands_before_bytes_that_are_none_are_handed_over(good: int) -> None:
    """Also those that are read in several slices."""
    with pytest.raises(MalformedBytesError) as refused:
        Decoder().feed(PING * good + frame(b"\x08\x12\xff"))
    assert len(refused.value.decoded) == good


@pytest.mark.parametrize("at", [0, 1, 2])
def test_a_number_that_does_not_end_is_refused_wherever_it_stands_in_a_long_command(at: int) -> None:
    unended = b"\xff" * 11
    inner = b"\x08\x07\x10\x00" + (unended if at == 2 else b"")
    size = unended if at == 1 else varint(len(inner))
    command = c.UnparsedCommand(10, b"\x08\x0a" + (unended if at == 0 else b"\x52") + size + inner)
    with pytest.raises(ProtocolError):
        list(parts_of(command))


@pytest.mark.parametrize("payload", [b"", b"abc", b"\x00\x00\x00"])
def test_a_batch_that_ends_before_its_first_message_is_refused(payload: bytes) -> None:
    with pytest.raises(ProtocolError, match="a batch of 2 ends after 0 messages"):
        e.cut_batch(payload, 2)


def test_a_batch_that_ends_after_its_first_message_says_so() -> None:
    whole = e.join_batch([(e.SingleMessageMetadata(), b"m")])
    for more in (b"", b"\x00", b"\x00\x00\x00"):
        with pytest.raises(ProtocolError, match="a batch of 2 ends after 1 messages"):
            e.cut_batch(whole + more, 2)


def test_a_message_in_a_batch_that_says_nothing_of_itself_has_no_time_no_key_and_no_number() -> None:
    ((_, metadata, _),) = e.cut_batch(e.join_batch([(e.SingleMessageMetadata(), b"m")]), 1)
    raw = pb.SingleMessageMetadata.FromString(metadata)
    assert [field.name for field, _ in raw.ListFields()] == ["payload_size"]
    whole = e.join_batch([(e.SingleMessageMetadata(), b"m")])
    assert e.split_batch(whole, 1) == [(e.SingleMessageMetadata(), b"m")], "and so it is read"
    entry = e.build_entry(e.EntryMetadata("p", 0, 1), b"m")
    assert e.metadata_of(entry) == e.EntryMetadata("p", 0, 1)


@pytest.mark.parametrize("cut", [1, 4, 5, 20, len(SEND) - 1])
def test_bytes_that_are_given_up_are_none_of_the_frame_that_follows(cut: int) -> None:
    decoder = Decoder()
    assert decoder.feed(SEND[:cut]) == []
    assert bytes(decoder.take_held()) == SEND[:cut]
    assert (decoder.held, decoder.missing) == (0, 4)
    assert decoder.feed(PING) == [c.CommandPing()]
