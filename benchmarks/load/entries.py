"""What the producers send: entries that differ in a few bytes only, and whole runs of SEND frames of them.

Every entry carries its own number in its last eight payload bytes, so that a consumer can prove that it got each entry
once, whole and under the right message id; for Key_Shared the partition key depends on that number too. The checksum
covers these bytes, but CRC is affine: for bodies of one length, ``crc(x ^ d) = crc(x) ^ L(d)`` with L linear. So one
table of 256 words per changing byte gives all checksums of a run with a few array look-ups, whatever the entry's size.

Sequence ids are minimal varints as every real client writes them, so a run is built in groups of equal width. Entries
of up to ``COPIED_MAX`` bytes are laid out one after the other in one block; larger ones are sent with scatter-gather
from one shared body, so that the generator never copies 100 KB per entry.
"""

from __future__ import annotations

import itertools
import random
import struct
from collections.abc import Sequence
from dataclasses import dataclass

import google_crc32c
import numpy as np
import numpy.typing as npt

from benchmarks.load import wire

Bytes2D = npt.NDArray[np.uint8]
Ints = npt.NDArray[np.int64]
Piece = bytes | memoryview

COPIED_MAX = 8192
INDEX_BYTES = 8
KEY_BYTES = 4
PUBLISH_TIME_MS = 1_700_000_000_000


@dataclass(frozen=True)
class Shape:
    """What a workload's entries look like; ``keys`` > 0 gives each entry one of so many partition keys."""

    message_bytes: int
    batch: int = 1
    keys: int = 0

    @property
    def payload_bytes(self) -> int:
        """What the applications sent, without any framing."""
        return self.message_bytes * self.batch

    def keys_of(self, numbers: Ints) -> Ints:
        """The partition key of each entry; neighbours have different ones."""
        return numbers * 7919 % self.keys


def crc32c(data: bytes) -> int:
    return int(google_crc32c.value(data))


def _varint_columns(values: Ints, width: int) -> Bytes2D:
    shifts = np.arange(width, dtype=np.int64) * 7
    out = (values[:, None] >> shifts) & 0x7F
    out[:, : width - 1] |= 0x80
    return out.astype(np.uint8)


def _varint_widths(values: Ints) -> Ints:
    widths = np.ones(len(values), np.int64)
    for bits in range(7, 63, 7):
        widths += values >= (1 << bits)
    return widths


class Template:
    """One entry of a shape with the places of its changing bytes and their checksum tables."""

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        rng = random.Random(7)
        key = b"\0" * KEY_BYTES
        metadata = wire.field(1, "bench") + wire.field(2, 0) + wire.field(3, PUBLISH_TIME_MS)
        if shape.keys:
            metadata += wire.field(6, key)
        if shape.batch == 1:
            payload = rng.randbytes(shape.message_bytes - INDEX_BYTES) + b"\0" * INDEX_BYTES
        else:
            single = wire.field(3, shape.message_bytes)
            one = struct.pack(">I", len(single)) + single
            payload = b"".join(one + rng.randbytes(shape.message_bytes) for _ in range(shape.batch))
            payload = payload[:-INDEX_BYTES] + b"\0" * INDEX_BYTES
            metadata += wire.field(9, len(payload)) + wire.field(11, shape.batch)
        self.body = struct.pack(">I", len(metadata)) + metadata + payload
        size = len(self.body)
        self.places = list(range(size - INDEX_BYTES, size))
        if shape.keys:
            at = self.body.index(wire.field(6, key)) + 2
            self.places = [*range(at, at + KEY_BYTES), *self.places]
        self._crc = crc32c(self.body)
        self._tables = np.array([self._table(place) for place in self.places], np.uint32)

    def _table(self, place: int) -> list[int]:
        bits = []
        changed = bytearray(self.body)
        for bit in range(8):
            changed[place] = 1 << bit
            bits.append(crc32c(bytes(changed)) ^ self._crc)
        table = [0] * 256
        for value in range(1, 256):
            low = value & -value
            table[value] = table[value ^ low] ^ bits[low.bit_length() - 1]
        return table

    def changing(self, numbers: Ints) -> Bytes2D:
        """The changing bytes, one row per entry: partition key as four decimal digits, then the number."""
        columns = numbers.astype(">i8").view(np.uint8).reshape(len(numbers), INDEX_BYTES)
        if not self.shape.keys:
            return columns
        digits = [
            (self.shape.keys_of(numbers) // 10**power % 10 + 48).astype(np.uint8)
            for power in reversed(range(KEY_BYTES))
        ]
        return np.hstack([np.stack(digits, axis=1), columns])

    def body_of(self, number: int) -> bytes:
        """The whole entry after its checksum, as it was sent: metadata size, metadata and payload."""
        body = bytearray(self.body)
        for place, byte in zip(self.places, self.changing(np.array([number]))[0].tolist(), strict=True):
            body[place] = byte
        return bytes(body)

    def checksums(self, changing: Bytes2D) -> npt.NDArray[np.uint32]:
        out = np.full(len(changing), self._crc, np.uint32)
        for column, table in enumerate(self._tables):
            out ^= table[changing[:, column]]
        return out


@dataclass(frozen=True)
class SendRun:
    """The SEND frames of one run, ready to go: frame ``i`` carries entry number ``i``."""

    count: int
    block: memoryview  # whole frames, or only their heads if ``shared`` is set
    offsets: Sequence[int]  # of frame i in block; count + 1 of them
    shared: memoryview | None  # what all large entries have in common after their head
    tails: memoryview  # the last INDEX_BYTES of each large entry

    def pieces(self, first: int, last: int) -> list[Piece]:
        """Buffers that hold the frames [first, last), in order."""
        if self.shared is None:
            return [self.block[self.offsets[first] : self.offsets[last]]]
        out: list[Piece] = []
        for at in range(first, last):
            out.append(self.block[self.offsets[at] : self.offsets[at + 1]])
            out.append(self.shared)
            out.append(self.tails[at * INDEX_BYTES : (at + 1) * INDEX_BYTES])
        return out


def send_run(shape: Shape, producer_ids: Ints, sequence_ids: Ints) -> SendRun:
    """SEND frames for entries 0, 1, 2 and so on, each with its producer and sequence id."""
    template = Template(shape)
    count = len(sequence_ids)
    large = len(template.body) > COPIED_MAX
    if large and shape.keys:
        # the key lies in the metadata, which then belongs to the head; the shared part begins after it
        shared_at = max(place for place in template.places if place < len(template.body) - INDEX_BYTES) + 1
    else:
        shared_at = 4
    widths = _varint_widths(producer_ids) * 16 + _varint_widths(sequence_ids)
    bounds = [0, *(np.flatnonzero(np.diff(widths)) + 1).tolist(), count]
    blocks: list[bytes] = []
    offsets = np.zeros(count + 1, np.int64)
    for first, last in itertools.pairwise(bounds):
        numbers = np.arange(first, last, dtype=np.int64)
        rows = _rows(template, numbers, producer_ids[first:last], sequence_ids[first:last], shared_at if large else 0)
        offsets[first + 1 : last + 1] = offsets[first] + np.arange(1, last - first + 1) * rows.shape[1]
        blocks.append(rows.tobytes())
    everything = np.arange(count, dtype=np.int64)
    return SendRun(
        count=count,
        block=memoryview(b"".join(blocks)),
        offsets=offsets.tolist(),
        shared=memoryview(template.body)[shared_at:-INDEX_BYTES] if large else None,
        tails=memoryview(everything.astype(">i8").tobytes()),
    )


def _rows(template: Template, numbers: Ints, producers: Ints, sequences: Ints, head_bytes: int) -> Bytes2D:
    """Frames of equal length as rows; only their first part if ``head_bytes`` of the body belong to it."""
    producer_width = int(_varint_widths(producers[:1])[0])
    sequence_width = int(_varint_widths(sequences[:1])[0])
    messages = wire.field(3, template.shape.batch) if template.shape.batch > 1 else b""
    inner = 2 + producer_width + sequence_width + len(messages)
    start = bytes([8, wire.Command.SEND, wire.Command.SEND << 3 | wire.BYTES, inner])
    size = len(start) + inner
    total = 4 + size + 2 + 4 + len(template.body)
    body = template.body[:head_bytes] if head_bytes else template.body
    row = wire.HEAD.pack(total, size) + start + bytes(inner) + struct.pack(">HI", wire.MAGIC, 0) + body
    rows = np.tile(np.frombuffer(row, np.uint8), (len(numbers), 1))
    at = 8 + len(start)
    rows[:, at] = 1 << 3
    rows[:, at + 1 : at + 1 + producer_width] = _varint_columns(producers, producer_width)
    at += 1 + producer_width
    rows[:, at] = 2 << 3
    rows[:, at + 1 : at + 1 + sequence_width] = _varint_columns(sequences, sequence_width)
    at += 1 + sequence_width
    rows[:, at : at + len(messages)] = np.frombuffer(messages, np.uint8)
    at += len(messages) + 2
    changing = template.changing(numbers)
    rows[:, at : at + 4] = template.checksums(changing).astype(">u4").view(np.uint8).reshape(-1, 4)
    at += 4
    for column, place in enumerate(template.places):
        if at + place < rows.shape[1]:
            rows[:, at + place] = changing[:, column]
    return rows
