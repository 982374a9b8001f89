"""Consecutive SENDs of one producer, and ACKs of one consumer, read in one piece.

Commands of single messages differ in an id and nowhere else, so the first of them tells what bytes the others have, and
each of the others is one call of :mod:`struct`, of SEND one checksum and one copy besides. Whatever is not known for
sure ends the run, and is for :mod:`magnetar.protocol.hot_commands`: both ways give the same commands (tests compare
them; docs/decisions/077).
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, Final

from crc32c import crc32c

from magnetar.protocol.alike_commands.layouts import ack_layout, entry_place, first_bytes, high_part, id_in, send_layout
from magnetar.protocol.commands import AckRun, SendRun
from magnetar.protocol.entries import DELIVER_AT
from magnetar.protocol.frames import ENTRY_HEADER_SIZE
from magnetar.protocol.hot_commands import LONG_MAX, read_id
from magnetar.protocol.varints import read_varint

FRAME_MAX: Final = 4096
"""Bytes of the largest frame of a run: copying a larger one takes longer than reading its command."""
_INDIVIDUAL: Final = b"\x10\x00"
"""The type of an ACK that is not cumulative."""
_ALIKE: Final = 10
"""Bytes from a command's size to its producer id."""


class _Shape:
    """Where the parts of a frame stand: its size, what all begin with, the sequence id's first byte, what follows."""

    __slots__ = ("size", "unpack")

    def __init__(self, head: int, after: int) -> None:
        layout = struct.Struct(f">I{head}sB{after}sII")
        self.size: int = layout.size
        self.unpack: Callable[[bytes, int], tuple[Any, ...]] = layout.unpack_from


_SHAPES: Final[dict[tuple[int, int], _Shape]] = {}


def read_send_run(data: bytes, at: int, end: int, last: int, frame_max: int) -> tuple[SendRun, int] | None:
    """Read SENDs from ``at`` on that begin at ``last`` at the latest; also returns where what follows begins.

    The frame from ``at`` to ``end`` is a SEND. None if there are not two of them.
    """
    if end - at > FRAME_MAX or data[at + 4 : at + 4 + _ALIKE] != data[end + 4 : end + 4 + _ALIKE]:
        return None
    layout = send_layout(data, at)
    if layout is None:
        return None
    i, more, rest = layout
    producer_id = id_in(data, at)
    least, most = first_bytes(more)
    key = i - at - 4, more + len(rest)
    shape = _SHAPES.get(key)
    if shape is None:
        shape = _SHAPES[key] = _Shape(*key)
    unpack = shape.unpack
    head = data[at + 4 : i]
    before = i + more + len(rest) - 1 - at
    size = len(data)
    last = min(last, size - shape.size)
    frame_max = min(frame_max, FRAME_MAX) - 4
    known = b""
    base = 0
    begin = at
    sequence_ids: list[int] = []
    entries: list[bytes] = []
    while at <= last:
        total, begins, low, after, expected, metadata_size = unpack(data, at)
        end = at + 4 + total
        if begins != head or total > frame_max or end > size or not least <= low <= most:
            break
        if after != known:
            # so many of them have the same bytes here: 128 ids in a row
            high = high_part(after, more, rest)
            if high < 0:
                break
            known, base = after, high - least
        stop = at + before
        if stop + ENTRY_HEADER_SIZE + metadata_size > end or crc32c(data[stop + 6 : end]) != expected:
            break
        sequence_ids.append(base + low)
        entries.append(data[stop:end])
        at = end
    if len(entries) < 2:
        return None
    return SendRun(producer_id, sequence_ids, entries, data.find(DELIVER_AT, begin, at) >= 0), at


def read_ack_run(data: bytes, at: int, end: int, last: int) -> tuple[AckRun, int] | None:
    """Read ACKs from ``at`` on that begin at ``last`` at the latest; also returns where what follows begins.

    The frame from ``at`` to ``end`` is an ACK. None if there are not two of them.
    """
    if data[at + 4 : at + 4 + _ALIKE] != data[end + 4 : end + 4 + _ALIKE]:
        return None
    layout = ack_layout(data, at)
    if layout is None:
        return None
    ledger, _, entry_at, stop = layout
    consumer_id = id_in(data, at)
    size = stop - at
    count = min((last - at) // size + 1, (len(data) - at) // size)
    entries = _alike(data, at, entry_at - at, stop - entry_at - 1, count)
    return (AckRun(consumer_id, ledger, entries), at + len(entries) * size) if len(entries) > 1 else None


def read_ack_ids(data: bytes, start: int, stop: int) -> AckRun | None:
    """Read the ACK that stands from ``start`` to ``stop`` and has several ids of one ledger, as clients gather them."""
    # 08 0a 52 <length> 08 <consumer id> 10 00 and several times 1a <length> 08 <ledger> 10 <entry>
    length, i = read_varint(data, start + 3)
    if data[start + 2] != 0x52 or i + length != stop or data[i] != 0x08:
        return None
    consumer_id, i = read_varint(data, i + 1)
    if consumer_id > LONG_MAX or data[i : i + 2] != _INDIVIDUAL:
        return None
    i += 2
    ledger = -1
    entries: list[int] = []
    while i + 6 <= stop:
        end = i + 2 + data[i + 1]
        if data[i] != 0x1A or data[i + 1] > 127 or end > stop or data[i + 2] != 0x08:
            return None
        first = read_id(data, i + 2, end)
        if first is None or (entries and first.ledger != ledger):
            return None
        ledger = first.ledger
        entry_at = entry_place(data, i + 2, end)
        if entry_at < 0:
            return None
        size = end - i
        some = _alike(data, i, entry_at - i, end - entry_at - 1, (stop - i) // size)
        if not some:
            return None
        entries += some
        i += len(some) * size
    return AckRun(consumer_id, ledger, entries) if i == stop and entries else None


def _alike(data: bytes, at: int, head: int, more: int, count: int) -> list[int]:
    """Return the ids that end ``count`` pieces of one length from ``at`` on, up to the first that is not as it begins.

    A piece is what all begin with, ``head`` bytes, and an id of ``more`` bytes after its first one.
    """
    begin = data[at : at + head]
    least, most = first_bytes(more)
    known = None
    base = 0
    ids: list[int] = []
    pieces = memoryview(data)[at : at + count * (head + 1 + more)]
    for begins, low, after in struct.iter_unpack(f"{head}sB{more}s", pieces):
        if begins != begin or not least <= low <= most:
            break
        if after != known:
            high = high_part(after, more, b"")
            if high < 0:
                break
            known, base = after, high - least
        ids.append(base + low)
    return ids
