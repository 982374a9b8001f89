"""Golden frames, limits, checksums and the cost of large frames (rules of 1.1)."""

from __future__ import annotations

import sys

import pytest

from magnetar.model.errors import ProtocolError, ServerError
from magnetar.protocol import codec, frames
from magnetar.protocol.commands import (
    AckType,
    BrokerEntryMetadata,
    Command,
    CommandAck,
    CommandCloseProducer,
    CommandConnect,
    CommandConnected,
    CommandError,
    CommandFlow,
    CommandMessage,
    CommandPing,
    CommandSend,
    FeatureFlags,
    MessageIdData,
)
from magnetar.protocol.decoder import Decoder, MalformedBytesError

BODY = bytes.fromhex("00000003") + b"abc" + b"123456789"
ENTRY = frames.with_checksum(BODY)

GOLDEN: list[tuple[str, Command]] = [
    ("00000009 00000005 0812 9201 00", CommandPing()),
    ("0000000c 00000008 080b 5a04 0805 1007", CommandFlow(5, 7)),
    ("0000000d 00000009 0802 1205 0a01 78 2015", CommandConnect("x", 21)),
    (
        "00000014 00000010 0803 1a0c 0a01 78 1000 188002 2202 2001",
        CommandConnected("x", 0, 256, FeatureFlags(None, None, None, True)),
    ),
    (
        "00000018 00000014 080e 7210 08ffffffffffffffffff01 1003 1a01 78",
        CommandError(-1, ServerError.AuthenticationError, "x"),
    ),
    ("00000014 00000010 080f 7a0c 0803 10 ffffffffffffffff7f", CommandCloseProducer(3, (1 << 63) - 1)),
    (
        "00000014 00000010 080a 520c 0801 1000 1a06 088001 10ac02",
        CommandAck(1, AckType.Individual, (MessageIdData(128, 300),)),
    ),
]


@pytest.mark.parametrize(("text", "command"), GOLDEN, ids=lambda value: type(value).__name__)
def test_golden_frames(text: str, command: Command) -> None:
    frame = bytes.fromhex(text)
    assert codec.encode(command).hex() == frame.hex()
    assert Decoder().feed(frame) == [command]


def test_checksum_vector() -> None:
    """The CRC32C of "123456789" is 0xE3069283 (rule 1.1.3)."""
    assert frames.with_checksum(b"123456789")[:6] == bytes.fromhex("0e01e3069283")
    assert frames.checksum_holds(ENTRY)
    assert not frames.checksum_holds(ENTRY[:-1] + b"0")
    assert not frames.checksum_holds(ENTRY[:9])


def send_frame(entry: bytes) -> bytes:
    command = bytes.fromhex("0806 3204 0801 1002")
    return (4 + len(command) + len(entry)).to_bytes(4, "big") + len(command).to_bytes(4, "big") + command + entry


def sent(entry: bytes) -> CommandSend:
    (command,) = Decoder().feed(send_frame(entry))
    assert isinstance(command, CommandSend)
    return command


def test_send_golden() -> None:
    assert sent(ENTRY) == CommandSend(1, 2, 1, None, False, None, False, None, ENTRY)


def test_send_without_checksum_gets_one() -> None:
    """A SEND without a checksum is given one (rule 1.1.4)."""
    assert sent(BODY) == sent(ENTRY)
    empty = bytes(4)
    assert sent(empty).entry == frames.with_checksum(empty)


def test_a_wrong_checksum_is_reported_not_raised() -> None:
    """A wrong checksum is reported with the command and raises nothing (rule 1.1.5)."""
    damaged = ENTRY[:-1] + b"0"
    assert not sent(damaged).checksum_ok
    assert sent(damaged).entry == damaged
    absurd_size = ENTRY[:6] + b"\xff" + ENTRY[7:]
    assert not sent(absurd_size).checksum_ok


@pytest.mark.parametrize(
    "entry", [b"", b"\x00", bytes(3), b"\x00\x00\x00\x05abcd", frames.with_checksum(b"\x00\x00\x00\x05abcd")]
)
def test_send_without_an_entry_is_malformed(entry: bytes) -> None:
    with pytest.raises(MalformedBytesError):
        Decoder().feed(send_frame(entry))


def test_message_with_broker_metadata() -> None:
    """Broker entry metadata stand before the entry and outside of its checksum (rule 1.1.6)."""
    command = bytes.fromhex("0809 4a08 0801 1204 0803 1004")
    before = bytes.fromhex("0e02 00000004 0805 1006")
    frame = (4 + len(command) + len(before) + len(ENTRY)).to_bytes(4, "big") + len(command).to_bytes(4, "big")
    frame += command + before + ENTRY
    expected = CommandMessage(1, MessageIdData(3, 4), 0, (), None, BrokerEntryMetadata(5, 6), ENTRY)
    assert Decoder().feed(frame) == [expected]
    assert codec.encode(expected) == frame


def test_frame_limit_counts_the_size_field() -> None:
    """The greatest frame has 5,253,120 bytes with its size field (rule 1.1.7)."""
    assert frames.MAX_FRAME_SIZE == 5_253_120
    fits = send_frame(BODY + bytes(frames.MAX_FRAME_SIZE - len(send_frame(BODY))))
    assert fits[:4] == (5_253_116).to_bytes(4, "big")
    assert len(Decoder().feed(fits)) == 1
    in_pieces = Decoder()
    assert [len(in_pieces.feed(piece)) for piece in (fits[:100], fits[100:-1], fits[-1:])] == [0, 0, 1]
    with pytest.raises(MalformedBytesError, match="larger"):
        Decoder().feed((5_253_117).to_bytes(4, "big"))
    small = Decoder(max_frame_size=20)
    with pytest.raises(MalformedBytesError, match="larger"):
        small.feed(send_frame(BODY))


@pytest.mark.parametrize(
    "text",
    [
        "00000000",
        "00000003",
        "00000004 00000000",
        "00000005 00000002 08",
        "00000006 00000002 0806",
        "00000006 00000002 0863",
    ],
)
def test_malformed_frames(text: str) -> None:
    with pytest.raises(MalformedBytesError):
        Decoder().feed(bytes.fromhex(text) + bytes(8))


def test_text_that_is_not_utf8_is_malformed() -> None:
    frame = codec.encode(CommandError(1, ServerError.UnknownError, "xy"))
    with pytest.raises(MalformedBytesError):
        Decoder().feed(frame.replace(b"xy", b"\xff\xfe"))


def test_whole_frames_are_not_copied() -> None:
    splitter = frames.FrameSplitter()
    data = send_frame(ENTRY)
    ((walked, start, _),) = splitter.feed(data)
    assert walked is data
    assert start == 0
    splitter.keep(data, len(data))
    assert splitter.held == 0


def test_a_small_rest_does_not_keep_a_large_buffer() -> None:
    """A view of 40 KB would keep all of what was read, of which only the 40 KB are counted."""
    begun = (1 << 20).to_bytes(4, "big") + bytes(40_000)
    for before, kept in ((600_000, 0), (100_000, 1)):
        buffer = bytes(before) + begun
        references = sys.getrefcount(buffer)
        splitter = frames.FrameSplitter()
        splitter.keep(buffer, before)
        assert splitter.held == len(begun)
        assert sys.getrefcount(buffer) == references + kept


def test_only_the_unfinished_frame_is_joined() -> None:
    """What follows it in the same chunk is walked where it is."""
    frame = send_frame(ENTRY)
    splitter = frames.FrameSplitter()
    splitter.keep(frame[:10], 0)
    chunk = frame[10:] + frame + frame[:5]
    (joined, rest) = splitter.feed(chunk)
    assert joined == (frame, 0, b"")
    assert rest[0] is chunk
    assert rest[1] == len(frame) - 10


def test_a_large_frame_in_small_chunks_is_joined_once() -> None:
    """Linear: nothing is handed out, so nothing was joined, before the last chunk."""
    frame = send_frame(BODY + bytes(5_000_000))
    splitter = frames.FrameSplitter()
    step = 1000
    ((first, _, _),) = splitter.feed(frame[:step])
    splitter.keep(first, 0)
    for start in range(step, len(frame), step):
        got = splitter.feed(frame[start : start + step])
        if start + step < len(frame):
            assert got == []
        else:
            ((head, _, entry),) = got
            assert head + entry == frame
    with pytest.raises(ProtocolError):
        splitter.keep(b"\xff\xff\xff\xff", 0)
