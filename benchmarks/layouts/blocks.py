"""One group of entries as bytes: block header, then one extent per topic. The format all three layouts share.

block  = magic u32 | body length u32 | crc32c of body u32 | extents u32 | body
extent = topic u64 | first entry u64 | count u32 | payload bytes u32 | lengths u32[count] | payloads
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Iterator
from typing import NamedTuple

import google_crc32c

BLOCK = struct.Struct("<IIII")
EXTENT = struct.Struct("<QQII")
MAGIC = 0x4D41474E
JOIN_BELOW = 4096  # mean part size up to which copying into one buffer beats many iovecs

Group = dict[int, list[bytes]]  # topic -> payloads in order; grouped while they arrive, so nothing is sorted


class Extent(NamedTuple):
    topic: int
    first: int
    entries: int
    offset: int  # from the start of the block
    size: int  # header, lengths, payloads


def build(group: Group, next_entry: list[int]) -> tuple[list[bytes], int, list[Extent]]:
    """The block as parts to write, its size, and where each extent lies in it."""
    parts: list[bytes] = []
    extents: list[Extent] = []
    offset = BLOCK.size
    pack, append = EXTENT.pack, parts.append
    for topic, payloads in group.items():
        count, first = len(payloads), next_entry[topic]
        lengths = array("I", map(len, payloads))
        total = sum(lengths)
        append(pack(topic, first, count, total))
        append(lengths.tobytes())
        parts += payloads
        size = EXTENT.size + 4 * count + total
        extents.append(Extent(topic, first, count, offset, size))
        offset += size
        next_entry[topic] = first + count
    body_size = offset - BLOCK.size
    if body_size < JOIN_BELOW * len(parts):
        parts = [b"".join(parts)]
    crc = 0
    for part in parts:
        crc = google_crc32c.extend(crc, part)
    parts.insert(0, BLOCK.pack(MAGIC, body_size, crc, len(group)))
    return parts, offset, extents


def payloads(extent: bytes) -> Iterator[bytes]:
    """Entries of one extent."""
    _, _, count, _ = EXTENT.unpack_from(extent)
    at = EXTENT.size + 4 * count
    for length in array("I", extent[EXTENT.size : at]):
        yield extent[at : at + length]
        at += length


def extents_in(run: bytes) -> Iterator[bytes]:
    """Extents lying back to back, as in a ledger file or a tidied segment."""
    at = 0
    while at < len(run):
        _, _, count, total = EXTENT.unpack_from(run, at)
        size = EXTENT.size + 4 * count + total
        yield run[at : at + size]
        at += size


def size_at(run: bytes, at: int) -> int:
    _, _, count, total = EXTENT.unpack_from(run, at)
    return int(EXTENT.size + 4 * count + total)
