"""Answers that list topics, put together piece by piece: a namespace may have a hundred thousand.

    GET_TOPICS_OF_NAMESPACE_RESPONSE   08 request | [12 topic]... | 18 filtered | 22 hash | 28 changed
    WATCH_TOPIC_LIST_SUCCESS           08 request | 10 watcher | [1a topic]... | 22 hash

They are the frames that :mod:`magnetar.protocol.codec` makes of the same commands in one go.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Final

from magnetar.protocol.varints import varint

NAMES_PER_STEP: Final = 500

_Names = Sequence[Sequence[str]]
Frame = Generator[int, None, list[bytes]]
"""Yields how many names were put in since the last time; returns the parts of the frame."""


def topics_of_namespace(request_id: int, pieces: _Names, *, filtered: bool, digest: str, changed: bool) -> Frame:
    """Build a GET_TOPICS_OF_NAMESPACE_RESPONSE."""
    after = b"\x18%c\x22%b%b\x28%c" % (filtered, varint(len(digest)), digest.encode(), changed)
    return _frame(33, b"\x08" + varint(request_id), 0x12, pieces, after)


def watch_topic_list_success(request_id: int, watcher_id: int, pieces: _Names, digest: str) -> Frame:
    """Build a WATCH_TOPIC_LIST_SUCCESS."""
    before = b"\x08" + varint(request_id) + b"\x10" + varint(watcher_id)
    return _frame(65, before, 0x1A, pieces, b"\x22" + varint(len(digest)) + digest.encode())


def _frame(number: int, before: bytes, tag: int, pieces: _Names, after: bytes) -> Frame:
    parts, size = [b"", before], len(before) + len(after)
    for piece in pieces:
        for at in range(0, len(piece), NAMES_PER_STEP):
            part = _encoded(piece[at : at + NAMES_PER_STEP], tag)
            parts.append(part)
            size += len(part)
            yield min(NAMES_PER_STEP, len(piece) - at)
    parts.append(after)
    head = b"\x08" + varint(number) + varint(number << 3 | 2) + varint(size)
    size += len(head)
    parts[0] = (size + 4).to_bytes(4, "big") + size.to_bytes(4, "big") + head
    return parts


def _encoded(names: Sequence[str], tag: int) -> bytes:
    parts = []
    for name in names:
        data = name.encode()
        size = len(data)
        parts.append(bytes((tag, size)) if size < 128 else bytes((tag,)) + varint(size))
        parts.append(data)
    return b"".join(parts)
