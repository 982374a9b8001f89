"""SENDs and ACKs in a row are what the schema finds in each of them, whatever bytes they have."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import product

import pytest

from magnetar.model.errors import ProtocolError
from magnetar.protocol import codec
from magnetar.protocol import commands as c
from magnetar.protocol.varints import varint
from tests.support.alike_frames import ENTRY, ack, as_others_send_it, one_by_one, outcome, raw, send


def as_the_schema(frames: bytes) -> tuple[list[c.Command], bool]:
    """What the schema finds in frames whose sizes are right, up to the first that cannot be read."""
    found: list[c.Command] = []
    at = 0
    while at < len(frames):
        end, stop = (base + int.from_bytes(frames[base - 4 : base], "big") for base in (at + 4, at + 8))
        try:
            found.append(codec.decode(frames[at + 8 : stop], frames[stop:end]))
        except ProtocolError:
            return one_by_one(found), True
        at = end
    return one_by_one(found), False


def agree(frames: bytes) -> None:
    found, error = outcome(frames, from_client=True)
    assert (found, error is not None) == as_the_schema(frames), frames.hex()


FEW = bytes((0, 1, 7, 8, 0x0A, 0x10, 0x18, 0x1A, 0x32, 0x52, 0x7F, 0x80, 0x81, 0xFF))
"""Bytes that mean something in these commands, and the borders of a number's bytes."""


@pytest.mark.parametrize("made", [send, as_others_send_it, ack])
@pytest.mark.parametrize("owner", [1, 200])
@pytest.mark.parametrize("first", [5, 300, 1 << 20])
def test_a_frame_with_any_byte_changed_beside_others_is_what_the_schema_finds(
    made: Callable[..., bytes], owner: int, first: int
) -> None:
    """In the first frame, from which a run has its shape, in the second, which has to have it, or in all of them."""
    name = "consumer_id" if made is ack else "producer_id"
    frames = [made(first + more, **{name: owner}) for more in range(3)]
    stop = 8 + int.from_bytes(frames[0][4:8], "big")
    for which, at, value in product(({0}, {1}, {0, 1, 2}), range(8, stop), FEW):
        changed = [frame[:at] + bytes((value,)) + frame[at + 1 :] for frame in frames]
        agree(b"".join(changed[number] if number in which else frames[number] for number in range(3)))


@pytest.mark.parametrize(("begin", "entry"), [(b"\x08\x06\x32", ENTRY), (b"\x08\x0a\x52", b"")], ids=("SEND", "ACK"))
@pytest.mark.parametrize("seed", range(4))
def test_commands_of_any_few_bytes_are_what_the_schema_finds(begin: bytes, entry: bytes, seed: int) -> None:
    """Cut short, with a field twice or numbers that do not end: alone, and several times in a row."""
    rng = random.Random(seed)
    usual = (
        b"\x08\x01",
        b"\x08\x80\x01",
        b"\x10\x05",
        b"\x10\x80\x10",
        b"\x18\x01",
        b"\x10\x00\x1a\x04\x08\x07\x10\x05",
    )
    for _ in range(1500):
        pieces = [rng.choice(usual) if rng.random() < 0.6 else bytes(rng.choices(FEW, k=rng.randrange(1, 4)))]
        while rng.random() < 0.7:
            pieces.append(rng.choice(usual) if rng.random() < 0.6 else bytes(rng.choices(FEW, k=rng.randrange(1, 4))))
        body = b"".join(pieces)[: rng.choice((5, 6, 8, 20))]
        agree(raw(begin + varint(len(body)) + body, entry) * rng.choice((1, 2, 3)))
