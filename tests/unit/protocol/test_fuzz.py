"""Any bytes give commands or one ProtocolError, the same whole and byte by byte: the decoder does no I/O, as in h11."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from magnetar.model.errors import ProtocolError
from magnetar.protocol import codec
from magnetar.protocol.commands import Command, CommandFlow, CommandPing
from magnetar.protocol.decoder import Decoder, MalformedBytesError
from tests.support.command_strategies import commands

LIMIT = 1 << 16


def decode(chunks: list[bytes]) -> tuple[list[Command], str | None]:
    """Commands and the error's text; anything but our own error escapes and fails the test."""
    decoder = Decoder(LIMIT)
    found: list[Command] = []
    for chunk in chunks:
        try:
            found += decoder.feed(chunk)
        except MalformedBytesError as error:
            return found + error.decoded, str(error)
    return found, None


def same_both_ways(data: bytes) -> tuple[list[Command], str | None]:
    whole = decode([data])
    # repr: a double may be NaN, which equals nothing.
    assert repr(decode([data[i : i + 1] for i in range(len(data))])) == repr(whole)
    assert repr(decode([data[i : i + 7] for i in range(0, len(data), 7)])) == repr(whole)
    return whole


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=300))
def test_random_bytes(data: bytes) -> None:
    same_both_ways(data)


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=60), st.sampled_from([b"", b"\x08\x06", b"\x08\x06\x32", b"\x08\x09\x4a", b"\x08\x0a\x52"]))
def test_random_command_in_a_good_frame(tail: bytes, head: bytes) -> None:
    body = head + (bytes([len(tail)]) + tail if len(head) == 3 else tail)
    for entry in (b"", b"\x00\x00\x00\x00payload"):
        frame = (len(body) + 4 + len(entry)).to_bytes(4, "big") + len(body).to_bytes(4, "big") + body + entry
        same_both_ways(frame + codec.encode(CommandPing()))


@settings(max_examples=120, deadline=None)
@given(st.lists(commands, min_size=1, max_size=3), st.data())
def test_mutated_frames(valid: list[Command], data: st.DataObject) -> None:
    stream = bytearray(b"".join(codec.encode(command) for command in valid))
    for _ in range(data.draw(st.integers(1, 3))):
        position = data.draw(st.integers(0, len(stream) - 1))
        match data.draw(st.sampled_from(["flip", "set", "drop", "add"])):
            case "flip":
                stream[position] ^= 1 << data.draw(st.integers(0, 7))
            case "set":
                stream[position] = data.draw(st.sampled_from([0, 1, 0x7F, 0x80, 0xFF]))
            case "drop" if len(stream) > 1:
                del stream[position]
            case _:
                stream.insert(position, data.draw(st.integers(0, 255)))
    same_both_ways(bytes(stream))


@settings(max_examples=50, deadline=None)
@given(st.lists(commands, max_size=5), st.integers(1, 50))
def test_any_cutting_gives_the_same_commands(valid: list[Command], step: int) -> None:
    stream = b"".join(codec.encode(command) for command in valid)
    assert decode([stream[i : i + step] for i in range(0, len(stream), step)]) == (valid, None)


def test_good_commands_before_a_bad_one_are_delivered_and_the_decoder_stays_broken() -> None:
    decoder = Decoder()
    with pytest.raises(MalformedBytesError) as caught:
        decoder.feed(
            codec.encode(CommandPing())
            + codec.encode(CommandFlow(1, 2))
            + b"\x00\x00\x00\x00"
            + codec.encode(CommandPing())
        )
    assert caught.value.decoded == [CommandPing(), CommandFlow(1, 2)]
    with pytest.raises(ProtocolError) as again:
        decoder.feed(codec.encode(CommandPing()))
    assert str(again.value) == str(caught.value)
