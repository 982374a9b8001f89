"""A cursor's records: its whole state, and what was acknowledged since. Pure; the format is in docs/disk.md."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from crc32c import crc32c

from magnetar.storage.log.records import RecordKind, as_json, from_json, record_start

_ACKS: Final = struct.Struct("<QQqII")
_U32: Final = struct.Struct("<I")
_MARK_START: Final = record_start(RecordKind.ACKS, _ACKS.size)
_MARK_CRC: Final = crc32c(_MARK_START)
_pack_acks = _ACKS.pack
_pack_u32 = _U32.pack


class CursorState(NamedTuple):
    """A cursor as it lies on disk, whole (CURSOR) or as a change (ACKS)."""

    log: int
    cursor: int
    mark_delete: int
    ranges: Sequence[tuple[int, int]]
    partial: Sequence[tuple[int, Sequence[int]]]
    """Batches acknowledged in part: ordinal and the 64-bit words of what is left (rule 5.7.6)."""


def cursor_state(state: CursorState) -> bytes:
    """Body of an ACKS record, and the tail of a CURSOR record."""
    head = _ACKS.pack(state.log, state.cursor, state.mark_delete, len(state.ranges), len(state.partial))
    if not state.ranges and not state.partial:
        return head
    parts = [head, struct.pack(f"<{2 * len(state.ranges)}Q", *(bound for pair in state.ranges for bound in pair))]
    for ordinal, words in state.partial:
        parts.append(struct.pack(f"<QI{len(words)}Q", ordinal, len(words), *words))
    return b"".join(parts)


def mark_delete_record(log: int, cursor: int, mark_delete: int) -> bytes:
    """The ACKS record of a cursor whose mark has moved and nothing else: what nearly all of them are."""
    body = _pack_acks(log, cursor, mark_delete, 0, 0)
    return _MARK_START + _pack_u32(crc32c(body, _MARK_CRC)) + body


def parse_cursor_state(body: bytes, at: int = 0) -> tuple[CursorState, int]:
    """The state at ``at`` and where it ends."""
    log, cursor, mark_delete, ranges, partials = _ACKS.unpack_from(body, at)
    at += _ACKS.size
    bounds = struct.unpack_from(f"<{2 * ranges}Q", body, at)
    at += 16 * ranges
    partial: list[tuple[int, Sequence[int]]] = []
    for _ in range(partials):
        ordinal, n = struct.unpack_from("<QI", body, at)
        at += 12
        partial.append((ordinal, struct.unpack_from(f"<{n}Q", body, at)))
        at += 8 * n
    return CursorState(log, cursor, mark_delete, list(zip(bounds[::2], bounds[1::2], strict=True)), partial), at


def cursor_record(name: str, properties: dict[str, Any], state: CursorState) -> bytes:
    """A CURSOR record's body: JSON about the cursor, then its state."""
    about = as_json({"name": name, "properties": properties}).encode()
    return _U32.pack(len(about)) + about + cursor_state(state)


def parse_cursor_record(body: bytes, at: int = 0) -> tuple[str, dict[str, Any], CursorState, int]:
    """Name, properties, state, and where it ends."""
    (size,) = _U32.unpack_from(body, at)
    about = from_json(body[at + 4 : at + 4 + size])
    state, end = parse_cursor_state(body, at + 4 + size)
    return about["name"], about["properties"], state, end
