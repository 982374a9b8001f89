"""SENDs of which the entry is cut out by itself: the same commands, however they come, and one copy of the entry."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from magnetar.protocol import codec, frames
from magnetar.protocol.commands import Command, CommandPing, CommandSend, SendRun
from magnetar.protocol.decoder import SLICE_BYTES, Decoder, MalformedBytesError
from magnetar.protocol.frames import LARGE_FROM, MAX_FRAME_SIZE
from magnetar.testing.rawclient import make_entry


def send(number: int, size: int, **fields: object) -> CommandSend:
    entry = make_entry(bytes([number % 251]) * size, producer="p" * 300, sequence_id=number)
    plain = CommandSend(7, number, 1, None, False, None, False, None, entry)
    return plain._replace(**fields)  # type: ignore[arg-type]


def told(found: Sequence[Command]) -> list[object]:
    single = [command for one in found for command in (one.commands() if isinstance(one, SendRun) else (one,))]
    return [tuple(one) if isinstance(one, CommandSend) else one for one in single]


def all_of(decoder: Decoder, pieces: list[bytes], *, view: bool) -> list[Command]:
    """What comes of the pieces; ``view``: each is overwritten once it was given."""
    found: list[Command] = []
    for piece in pieces:
        if view:
            room = bytearray(piece)
            found += decoder.feed_slice(memoryview(room))
            room[:] = b"\xff" * len(room)
        else:
            found += decoder.feed_slice(piece)
        while decoder.waiting:
            found += decoder.more()
    return found


def cut(data: bytes, rng: random.Random) -> list[bytes]:
    most = rng.choice((5, 5_000, 60_000, 300_000, 600_000))
    pieces = []
    while data:
        size = rng.randint(1, most)
        pieces.append(data[:size])
        data = data[size:]
    return pieces


@pytest.mark.parametrize("seed", range(40))
def test_the_same_commands_in_whatever_pieces(seed: int) -> None:
    rng = random.Random(seed)
    sizes = (0, 100, 3_000, LARGE_FROM - 500, LARGE_FROM - 300, LARGE_FROM + 500, 100_000, 100_000, 300_000)
    wanted: list[Command] = []
    for number in range(12):
        wanted.append(
            send(number * rng.choice((1, 1000)), rng.choice(sizes), num_messages=rng.choice((1, 100)))
            if rng.random() < 0.9
            else CommandPing()
        )
    data = b"".join(map(codec.encode, wanted))
    for view in (False, True):
        decoder = Decoder(from_client=True)
        assert told(all_of(decoder, cut(data, rng), view=view)) == told(wanted)
        assert decoder.held == 0


def test_a_whole_large_entry_is_cut_out_of_a_view_and_is_not_copied_again() -> None:
    one = send(1, 100_000)
    frame = codec.encode(one)
    splitter = frames.FrameSplitter()
    large, other = splitter.feed(memoryview(frame + frame + frame[:500]))
    assert large == other == (frame[: -len(one.entry)], 0, one.entry)
    assert (splitter.held, splitter.missing) == (500, len(frame) - 500)
    splitter.take_held()
    large, rest = splitter.feed(memoryview(frame + frame[:9]))
    assert rest == (frame[:9], 0, b"")
    decoder = Decoder(from_client=True)
    decoder._walkable.append(large)
    (found,) = decoder.more()
    assert isinstance(found, CommandSend)
    assert found.entry is large[2]


def test_the_entry_that_came_in_pieces_is_joined_by_itself() -> None:
    one = send(1, 100_000)
    frame = codec.encode(one)
    for view in (False, True):
        splitter = frames.FrameSplitter()
        splitter.keep(frame[:40_000], 0)
        assert not splitter.seen_large
        chunk = frame[40_000:] + frame[:9]
        joined, rest = splitter.feed(memoryview(chunk) if view else chunk)
        assert joined == (frame[: -len(one.entry)], 0, one.entry)
        assert rest[0][rest[1] :] == frame[:9]
        assert splitter.seen_large


@pytest.mark.parametrize("begun", [1, 3, 4, 9, 11, 20])
def test_a_frame_whose_beginning_is_too_short_to_be_known(begun: int) -> None:
    one = send(300, 200_000)
    frame = codec.encode(one)
    for view in (False, True):
        decoder = Decoder(from_client=True)
        assert told(all_of(decoder, [frame[:begun], frame[begun:]], view=view)) == told([one])


def test_a_large_entry_that_was_damaged_is_reported_and_what_follows_is_read() -> None:
    damaged = bytearray(codec.encode(send(1, 100_000)))
    damaged[-5] ^= 1
    decoder = Decoder(from_client=True)
    first, second = all_of(decoder, [bytes(damaged) + codec.encode(send(2, 100_000))], view=True)
    assert isinstance(first, CommandSend)
    assert isinstance(second, CommandSend)
    assert (first.checksum_ok, second.checksum_ok) == (False, True)
    assert (first.sequence_id, second.sequence_id) == (1, 2)


def test_a_large_entry_without_checksum_gets_one() -> None:
    one = send(1, 100_000)
    frame = codec.encode(one)
    bare = one.entry[6:]
    short = (len(frame) - 4 - 6).to_bytes(4, "big") + frame[4 : -len(one.entry)] + bare
    assert told(all_of(Decoder(from_client=True), [short], view=True)) == told([one])


def test_commands_before_a_frame_that_is_too_large_count() -> None:
    decoder = Decoder(from_client=True)
    too_large = (MAX_FRAME_SIZE - 3).to_bytes(4, "big") + b"\0\0\0\x06\x08\x06"
    with pytest.raises(MalformedBytesError, match=f"{MAX_FRAME_SIZE + 1} bytes is larger") as raised:
        all_of(decoder, [codec.encode(send(1, 50_000)) + too_large + bytes(LARGE_FROM)], view=True)
    assert told(raised.value.decoded) == told([send(1, 50_000)])


def test_metadata_longer_than_a_large_frame_ends_the_connection_after_what_came_before() -> None:
    one = send(1, 100_000)
    entry = frames.with_checksum((200_000).to_bytes(4, "big") + bytes(50_000))
    bad = codec.encode(one._replace(entry=entry))
    decoder = Decoder(from_client=True)
    with pytest.raises(MalformedBytesError, match="200000 bytes is longer") as raised:
        all_of(decoder, [codec.encode(one) + bad], view=True)
    assert told(raised.value.decoded) == told([one])


def test_a_slice_of_large_sends_ends_as_others_do() -> None:
    """One call decodes so many bytes, and the rest of the frame that stands there."""
    decoder = Decoder(from_client=True)
    sent = [send(number, 100_000) for number in range(8)]
    first = decoder.feed_slice(memoryview(b"".join(map(codec.encode, sent))))
    assert len(first) == SLICE_BYTES // 100_000 + 1
    second = decoder.more()
    assert len(second) == len(first)
    assert decoder.waiting
    assert told(first + second + decoder.more()) == told(sent)
    assert not decoder.waiting


def test_bytes_that_wait_are_copied_out_of_a_view() -> None:
    room = bytearray(codec.encode(send(1, 100_000)))
    decoder = Decoder(from_client=True)
    decoder.later(memoryview(room))
    room[:] = bytes(len(room))
    assert told(decoder.more()) == told([send(1, 100_000)])


def test_a_command_that_is_too_long_is_refused_in_a_large_frame_as_in_others() -> None:
    """The command of a SEND, its entry aside, has its bound also where the entry is cut out by itself."""
    one = codec.encode(send(1, 100_000))
    command_size = int.from_bytes(one[4:8], "big")
    unknown = b"\xa2\x7d" + b"\x80\x80\x80\x01" + bytes(1 << 21)
    command = one[8 : 8 + command_size] + unknown
    rest = one[8 + command_size :]
    frame = b"".join(
        ((len(command) + len(rest) + 4).to_bytes(4, "big"), len(command).to_bytes(4, "big"), command, rest)
    )
    for view in (False, True):
        with pytest.raises(MalformedBytesError, match=f"a command of {len(command)} bytes, at most"):
            all_of(Decoder(from_client=True), [frame], view=view)
