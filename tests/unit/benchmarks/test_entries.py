"""SEND frames built in bulk are the frames that a client would write one by one."""

from __future__ import annotations

import struct
from itertools import pairwise

import google_crc32c
import numpy as np
import pytest
from benchmarks.load import wire
from benchmarks.load.entries import INDEX_BYTES, Shape, Template, send_run

SHAPES = [Shape(100), Shape(100, keys=1000), Shape(1024, batch=100), Shape(1024, batch=100, keys=1000)]


def frames_of(stream: bytes) -> list[bytes]:
    found, at = [], 0
    while at < len(stream):
        size = wire.HEAD.unpack_from(stream, at)[0] + 4
        found.append(stream[at : at + size])
        at += size
    return found


@pytest.mark.parametrize("shape", SHAPES)
def test_frames_have_valid_checksums_minimal_varints_and_their_number(shape: Shape) -> None:
    # the sequence ids cross both widths at which a varint grows
    sequences = np.array([0, 1, 127, 128, 129, 16383, 16384, 70000], np.int64)
    run = send_run(shape, np.full(len(sequences), 3, np.int64), sequences)
    frames = frames_of(b"".join(run.pieces(0, run.count)))
    assert len(frames) == len(sequences)
    for number, (sequence, frame) in enumerate(zip(sequences.tolist(), frames, strict=True)):
        size = wire.HEAD.unpack_from(frame)[1]
        batch = wire.field(3, shape.batch) if shape.batch > 1 else b""
        assert frame[8 : 8 + size] == wire.command(wire.Command.SEND, wire.field(1, 3), wire.field(2, sequence), batch)
        magic, checksum = struct.unpack_from(">HI", frame, 8 + size)
        body = frame[8 + size + 6 :]
        assert magic == wire.MAGIC
        assert google_crc32c.value(body) == checksum
        assert int.from_bytes(body[-INDEX_BYTES:], "big") == number
        assert body == Template(shape).body_of(number)
        metadata = wire.parse(body[4 : 4 + int.from_bytes(body[:4], "big")])
        assert metadata.get(11, 1) == shape.batch
        if shape.keys:
            assert metadata[6] == b"%04d" % shape.keys_of(np.array([number]))[0]


@pytest.mark.parametrize("shape", SHAPES)
def test_any_part_of_a_run_is_a_part_of_the_whole(shape: Shape) -> None:
    run = send_run(shape, np.full(300, 1, np.int64), np.arange(300, dtype=np.int64))
    whole = b"".join(run.pieces(0, 300))
    parts = [b"".join(run.pieces(first, last)) for first, last in pairwise([0, 1, 127, 128, 200, 300])]
    assert b"".join(parts) == whole


def test_a_batch_holds_its_messages() -> None:
    shape = Shape(50, batch=7)
    body = Template(shape).body_of(5)
    at = 4 + int.from_bytes(body[:4], "big")
    sizes = []
    while at < len(body):
        single = int.from_bytes(body[at : at + 4], "big")
        size = wire.parse(body[at + 4 : at + 4 + single])[3]
        assert isinstance(size, int)
        sizes.append(size)
        at += 4 + single + size
    assert sizes == [50] * 7
