"""The log's records: how entries and ledgers lie on disk. Pure; the full format is in docs/disk.md.

A segment file is a segment header followed by blocks; a block is one group commit: a block header followed by
records; everything is little-endian.

Segment header (48 bytes): ``magic "MGTRLOG1" | number u64 | previous_length u64 | first_block u64 | created_ms u64 |
secret u32 | crc32c u32 of all before``. ``previous_length`` is how much of the segment before it counts: what a failed
write left after it is void. ``secret`` is one random number per directory.

Block header (32 bytes): ``magic u32 | records u32 | length u64 (of the records) | sequence u64 | secret u32 |
crc32c u32 of all before``. The secret keeps a producer from publishing bytes that look like a block of this directory.
Block sequences grow by one over the life of the directory. Blocks stand one after the other; where none stands but the
next multiple of 4096 has the one with the next sequence, what is between them is padding.

Record: ``kind u8 | flags u8 | zero u16 | length u32 (of the body) | crc32c u32 of these eight bytes and the body``,
then the body.
What follows distinguishes torn from corrupt: a write is only begun when the one before it is durable, so a damaged
block with a whole one after it was damaged later.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from enum import IntEnum
from typing import Any, Final, NamedTuple

from crc32c import crc32c

from magnetar.storage.backends.journal_backend import Chunk, ReadBuffer

SEGMENT_MAGIC: Final = b"MGTRLOG1"
_SEGMENT: Final = struct.Struct("<8sQQQQI")
SEGMENT_HEADER_SIZE: Final = 48
BLOCK_MAGIC: Final = 0x4B4C424D
_BLOCK: Final = struct.Struct("<IIQQI")
BLOCK_HEADER_SIZE: Final = 32
PAGE: Final = 4096
"""A large block begins and ends at a multiple of it, so that it can go to the disk past the page cache."""
_RECORD: Final = struct.Struct("<BBHI")
RECORD_HEADER_SIZE: Final = _RECORD.size + 4
_EXTENT: Final = struct.Struct("<QQQQQQI")
_EXTENT_OF_ONE: Final = struct.Struct("<QQQQQQII")
EXTENT_HEAD_SIZE: Final = _EXTENT.size
_U32: Final = struct.Struct("<I")
_FEATURE_STATE: Final = struct.Struct("<QH")

COUNTED: Final = 1
"""Flag of an extent: message counts per entry follow the lengths (absent = every entry is one message)."""
MOVED: Final = 2
"""Flag of an extent: a copy of entries that stand further up in the log already, whose place this is from now on."""
EXTENT_FLAGS: Final = COUNTED | MOVED
"""All that this version knows; no other record has any."""

_JOIN_BELOW: Final = 8192
"""Entries smaller than this on average are joined into one buffer; larger ones are written from where they are."""


class RecordKind(IntEnum):
    """What a record says."""

    EXTENT = 1
    """Consecutive entries of one ledger."""
    LOG = 2
    """A managed ledger came to be, or its properties changed (JSON)."""
    LOG_DELETED = 3
    LEDGER = 4
    """A ledger was opened; the one before it is closed (JSON)."""
    TRIMMED = 5
    """Ledgers at the front are gone (JSON)."""
    CURSOR = 6
    """A cursor's whole state."""
    ACKS = 7
    """What was acknowledged on a cursor since its record before this."""
    CURSOR_DELETED = 8
    FEATURE_STATE = 9
    """The whole state of a feature beside a log."""
    FEATURE_STATE_CHANGE = 10
    """What changed in it since its record before this."""
    FEATURE_STATE_REMOVED = 11
    OFFLOADED = 12
    """What is known of a ledger's copy outside the directory (JSON); replaces what was known."""
    COPY_BEGUN = 13
    """A ledger's copy is about to be written: to be deleted unless it is OFFLOADED later (JSON)."""
    COPY_DELETED = 14
    """A copy that no ledger needs was deleted (JSON)."""


class SegmentHeader(NamedTuple):
    """First bytes of a segment file."""

    number: int
    previous_length: int
    first_block: int
    created_ms: int
    secret: int
    """The directory's; stands in every block."""


class ExtentHead(NamedTuple):
    """What an extent says of its entries, without them."""

    log: int
    ledger: int
    entry: int
    ordinal: int
    message_index: int
    """Message index of the first message (rule 1.1.6)."""
    published_ms: int
    entries: int
    """The number of entries."""


class RecordError(Exception):
    """Bytes that are no whole record; says where and why."""


def segment_header(header: SegmentHeader) -> bytes:
    """The first 48 bytes of a segment."""
    fixed = _SEGMENT.pack(SEGMENT_MAGIC, *header)
    return fixed + _U32.pack(crc32c(fixed))


def parse_segment_header(data: bytes) -> SegmentHeader:
    """Raises RecordError if ``data`` does not begin with a whole segment header."""
    if len(data) < SEGMENT_HEADER_SIZE:
        raise RecordError(f"only {len(data)} bytes where a segment header of {SEGMENT_HEADER_SIZE} should be")
    fixed = data[: _SEGMENT.size]
    if _U32.unpack_from(data, _SEGMENT.size)[0] != crc32c(fixed) or not fixed.startswith(SEGMENT_MAGIC):
        raise RecordError("the segment header's checksum does not match")
    return SegmentHeader(*_SEGMENT.unpack(fixed)[1:])


def block_header(records: int, length: int, sequence: int, secret: int) -> bytes:
    """The 32 bytes before a group's records."""
    fixed = _BLOCK.pack(BLOCK_MAGIC, records, length, sequence, secret)
    return fixed + _U32.pack(crc32c(fixed))


class BlockHeader(NamedTuple):
    """The head of a block."""

    records: int
    length: int
    sequence: int
    secret: int


def parse_block_header(data: bytes, at: int = 0) -> BlockHeader | None:
    """The block header at ``at``, or None if there is none (torn, corrupt, or something else)."""
    end = at + _BLOCK.size
    if len(data) - at < BLOCK_HEADER_SIZE:
        return None
    magic, *fields = _BLOCK.unpack_from(data, at)
    if magic != BLOCK_MAGIC or _U32.unpack_from(data, end)[0] != crc32c(data[at:end]):
        return None
    return BlockHeader(*fields)


def page_end(at: int) -> int:
    """The first multiple of :data:`PAGE` at or after ``at``."""
    return -(-at // PAGE) * PAGE


def extent(
    place: tuple[int, int, int, int, int],
    published_ms: int,
    entries: Sequence[bytes],
    counts: Sequence[int] | None,
    payload: int,
    out: list[Chunk],
) -> int:
    """Append an extent's record to ``out``, as chunks to write; its size in bytes.

    ``place`` are the first fields of :class:`ExtentHead`, ``payload`` the bytes of all entries.
    """
    n = len(entries)
    flags = 0
    if counts is not None:
        fixed = _EXTENT.pack(*place, published_ms, n) + struct.pack(f"<{2 * n}I", *map(len, entries), *counts)
        flags = COUNTED
    elif n == 1:
        fixed = _EXTENT_OF_ONE.pack(*place, published_ms, 1, payload)
    else:
        fixed = _EXTENT.pack(*place, published_ms, n) + struct.pack(f"<{n}I", *map(len, entries))
    size = len(fixed) + payload
    start = _RECORD.pack(1, flags, 0, size)  # the number itself: an enum's takes longer
    if payload < _JOIN_BELOW * n:
        body = fixed + (entries[0] if n == 1 else b"".join(entries))
        out += start, _U32.pack(crc32c(body, crc32c(start))), body
    else:
        crc = crc32c(fixed, crc32c(start))
        for entry in entries:
            crc = crc32c(entry, crc)
        out += start, _U32.pack(crc), fixed, *entries
    return RECORD_HEADER_SIZE + size


def record_start(kind: RecordKind, size: int) -> bytes:
    """What stands before the checksum of a record whose body has ``size`` bytes."""
    return _RECORD.pack(kind, 0, 0, size)


as_json: Final = json.JSONEncoder(separators=(",", ":")).encode
"""JSON as records and checkpoints have it; the library's function makes one for each text, which takes longer."""


_read_json: Final = json.JSONDecoder().raw_decode


def from_json(data: bytes) -> Any:
    """The inverse of :data:`as_json`. Raises ValueError and RecursionError.

    The library's function looks for other encodings and for spaces, which takes half of the time.
    """
    text = data.decode()
    value, end = _read_json(text)
    if end != len(text):
        raise ValueError(f"{len(text) - end} characters after the JSON")
    return value


def record(kind: RecordKind, body: bytes) -> bytes:
    """Any other record."""
    start = record_start(kind, len(body))
    return start + _U32.pack(crc32c(body, crc32c(start))) + body


def json_record(kind: RecordKind, **fields: Any) -> bytes:
    """A rare record: a JSON object."""
    return record(kind, as_json(fields).encode())


class RawRecord(NamedTuple):
    """One record of a block, checked."""

    kind: int
    flags: int
    """From bit 8 on those that would stand in the two bytes which are zero in ours."""
    at: int
    """Offset of the record's header in the buffer that was parsed."""
    body: bytes


def parse_record(data: bytes | ReadBuffer, at: int) -> RawRecord:
    """The record at ``at``. Raises RecordError if it is not whole."""
    if len(data) - at < RECORD_HEADER_SIZE:
        raise RecordError(f"a record header does not fit at offset {at}")
    kind, flags, more, length = _RECORD.unpack_from(data, at)
    start = at + RECORD_HEADER_SIZE
    (crc,) = _U32.unpack_from(data, start - 4)
    body = data[start : start + length]
    if len(body) != length:
        raise RecordError(f"the record at offset {at} wants {length} bytes and {len(body)} are there")
    if crc32c(body, crc32c(data[at : start - 4])) != crc:
        raise RecordError(f"the checksum of the record at offset {at} does not match")
    return RawRecord(kind, flags | more << 8, at, body)


def parse_block(data: bytes, at: int, header: BlockHeader) -> list[RawRecord]:
    """All records of the block whose header is at ``at``. Raises RecordError unless every one is whole."""
    out: list[RawRecord] = []
    position = at + BLOCK_HEADER_SIZE
    end = position + header.length
    for _ in range(header.records):
        found = parse_record(data, position)
        out.append(found)
        position += RECORD_HEADER_SIZE + len(found.body)
    if position != end:
        raise RecordError(f"the block at offset {at} has {end - position} bytes more than its records")
    return out


def extent_head(body: bytes) -> ExtentHead:
    """The fixed part of an extent's body."""
    return ExtentHead(*_EXTENT.unpack_from(body))


def extent_counts(raw: RawRecord) -> list[int] | None:
    """An extent's message counts, None if every entry is one message."""
    if not raw.flags & COUNTED:
        return None
    n = extent_head(raw.body).entries
    return list(struct.unpack_from(f"<{n}I", raw.body, EXTENT_HEAD_SIZE + 4 * n))


def moved_extent(raw: RawRecord, skip: int) -> bytes:
    """An extent's record for its second place, without its first ``skip`` entries."""
    body, flags = raw.body, raw.flags | MOVED
    if skip:
        head = extent_head(body)
        n = head.entries
        counts = extent_counts(raw)
        lengths = struct.unpack_from(f"<{n}I", body, EXTENT_HEAD_SIZE)
        begin = EXTENT_HEAD_SIZE + 4 * n * (1 if counts is None else 2) + sum(lengths[:skip])
        left = head._replace(
            entry=head.entry + skip,
            ordinal=head.ordinal + skip,
            message_index=head.message_index + (skip if counts is None else sum(counts[:skip])),
            entries=n - skip,
        )
        tables = [*lengths[skip:], *(() if counts is None else counts[skip:])]
        body = _EXTENT.pack(*left) + struct.pack(f"<{len(tables)}I", *tables) + body[begin:]
    start = _RECORD.pack(RecordKind.EXTENT, flags, 0, len(body))
    return start + _U32.pack(crc32c(body, crc32c(start))) + body


class Extent(NamedTuple):
    """An extent as a reader wants it."""

    head: ExtentHead
    entries: list[bytes]
    counts: list[int] | None
    """Messages per entry; None if every entry is one."""
    size: int
    """Bytes of the record's body."""


def read_extent(data: bytes | ReadBuffer, at: int) -> Extent:
    """The extent whose record is at ``at``; copies each entry once and nothing else. Raises RecordError."""
    if len(data) - at < RECORD_HEADER_SIZE + EXTENT_HEAD_SIZE:
        raise RecordError(f"an extent does not fit at offset {at}")
    kind, flags, more, size = _RECORD.unpack_from(data, at)
    start = at + RECORD_HEADER_SIZE
    (crc,) = _U32.unpack_from(data, start - 4)
    if start + size > len(data):
        raise RecordError(f"the record at offset {at} wants {size} bytes and {len(data) - start} are there")
    if kind != RecordKind.EXTENT or crc32c(memoryview(data)[start : start + size], crc32c(data[at : start - 4])) != crc:
        raise RecordError(f"the checksum of the record at offset {at} does not match")
    if more or flags & ~EXTENT_FLAGS:
        raise RecordError(f"the extent at offset {at} was written by a newer version of magnetar")
    head = ExtentHead(*_EXTENT.unpack_from(data, start))
    n = head.entries
    position = start + EXTENT_HEAD_SIZE
    lengths = struct.unpack_from(f"<{n}I", data, position)
    position += 4 * n
    counts: list[int] | None = None
    if flags & COUNTED:
        counts = list(struct.unpack_from(f"<{n}I", data, position))
        position += 4 * n
    entries: list[bytes] = []
    append = entries.append
    for length in lengths:
        end = position + length
        append(data[position:end])
        position = end
    if position != start + size or not n:
        raise RecordError(f"the entries of the extent at offset {at} do not fill it")
    return Extent(head, entries, counts, size)


def feature_state_body(log: int, name: str, data: bytes) -> bytes:
    """The body of a record of a feature's state."""
    text = name.encode()
    return _FEATURE_STATE.pack(log, len(text)) + text + data


def parse_feature_state(body: bytes) -> tuple[int, str, bytes]:
    """Log, name, data. Raises RecordError, struct.error or UnicodeDecodeError."""
    log, size = _FEATURE_STATE.unpack_from(body)
    start = _FEATURE_STATE.size + size
    if start > len(body):
        raise RecordError("a feature's state is shorter than its name")
    return log, body[_FEATURE_STATE.size : start].decode(), body[start:]


def find_block(data: bytes, start: int, after_sequence: int, secret: int | None) -> int:
    """Offset of the next whole block at or after ``start`` whose sequence is above ``after_sequence``, or -1.

    With ``secret`` only blocks of that directory count.

    Only looked for when the block at ``start`` is damaged: finding one proves corruption, finding none means torn.
    """
    magic = _U32.pack(BLOCK_MAGIC)
    at = data.find(magic, start)
    while at >= 0:
        header = parse_block_header(data, at)
        if header is not None and header.sequence > after_sequence and secret in (None, header.secret):
            try:
                parse_block(data, at, header)
            except RecordError:
                pass
            else:
                return at
        at = data.find(magic, at + 1)
    return -1
