"""Segments byte by byte, for tests of what reads them."""

from __future__ import annotations

from magnetar.storage.log import records

SECRET = 77


def block(sequence: int, body: bytes, secret: int = SECRET) -> bytes:
    record = records.record(records.RecordKind.LOG, body)
    return records.block_header(1, len(record), sequence, secret) + record


def padded(data: bytes) -> bytes:
    return data + bytes(records.page_end(len(data)) - len(data))


def segment(*parts: bytes, first: int = 0) -> bytes:
    return records.segment_header(records.SegmentHeader(1, 0, first, 0, SECRET)) + b"".join(parts)
