"""Where the parts of a SEND or an ACK stand that has nothing but its ids to say."""

from __future__ import annotations

from typing import Final

from magnetar.protocol.frames import read_size
from magnetar.protocol.hot_commands import ONE_ID, ONE_MESSAGE, read_id

ID_AT: Final = 13
"""Where in a frame the producer or consumer id stands: behind two sizes, the type, and a tag and size and tag more."""
_MAGIC: Final = b"\x0e\x01"
_ID_MAX: Final = 9
"""Bytes of the largest sequence or entry id, which has 63 bits."""


def id_in(data: bytes, at: int) -> int:
    """Return the producer or consumer id of the frame at ``at``, for which there is a layout."""
    first = data[at + ID_AT]
    return first if first < 128 else first + (data[at + ID_AT + 1] << 7) - 128


def first_bytes(more: int) -> tuple[int, int]:
    """Return the least and the largest first byte of a number that has so many bytes more."""
    return (128, 255) if more else (0, 127)


def _behind_id(data: bytes, at: int) -> int:
    """Return where the producer or consumer id of the frame at ``at`` ends; -1 if it has more than two bytes."""
    i = at + ID_AT + 1
    if data[i - 1] < 128:
        return i
    return i + 1 if data[i] < 128 else -1


def send_layout(data: bytes, at: int) -> tuple[int, int, bytes] | None:
    """Return where the sequence id of the SEND at ``at`` begins, its bytes after the first one, and what follows it.

    The frame is whole. None unless it has a producer id of one byte or two and a sequence id, and perhaps says that it
    is one message.
    """
    start = at + 8
    stop = start + read_size(data, at + 4)[0]
    # 08 06 32 <length> 08 <producer id> 10 <sequence id>; see hot_commands.read_send
    if data[start + 2] != 0x32 or start + 4 + data[start + 3] != stop or data[start + 4] != 0x08:
        return None
    i = _behind_id(data, at)
    if i < 0 or data[i] != 0x10:
        return None
    i += 1
    many = data[stop - 2 : stop] == ONE_MESSAGE
    # too few if the command ended before it
    more = stop - i - 1 - (2 if many else 0)
    return (i, more, (ONE_MESSAGE if many else b"") + _MAGIC) if 0 <= more < _ID_MAX else None


def ack_layout(data: bytes, at: int) -> tuple[int, int, int, int] | None:
    """Return the ledger of the ACK at ``at``, where its message id and its entry's number begin, and where it ends.

    The frame is whole. None unless it has a consumer id of one byte or two, is not cumulative, and has one id of ledger
    and entry.
    """
    start = at + 8
    stop = start + read_size(data, at + 4)[0]
    # 08 0a 52 <length> 08 <consumer id> 10 00 1a <length> 08 <ledger> 10 <entry>, and no payload
    if (
        stop != at + 4 + read_size(data, at)[0]
        or data[start + 2] != 0x52
        or start + 4 + data[start + 3] != stop
        or data[start + 4] != 0x08
    ):
        return None
    i = _behind_id(data, at)
    if i < 0 or data[i : i + 3] != ONE_ID or i + 4 + data[i + 3] != stop or data[i + 4] != 0x08:
        return None
    only = read_id(data, i + 4, stop)
    entry_at = -1 if only is None else entry_place(data, i + 4, stop)
    return None if only is None or entry_at < 0 else (only.ledger, i + 4, entry_at, stop)


def entry_place(data: bytes, at: int, end: int) -> int:
    """Return where the entry's number begins in the message id from ``at``, where its ledger stands, to ``end``.

    -1 if its number does not come next, or has more than 63 bits. The id was read by :func:`read_id`.
    """
    at += 1
    while data[at] > 127:
        at += 1
    at += 2
    return at if 0 < end - at <= _ID_MAX and data[at - 1] == 0x10 else -1


def high_part(after: bytes, more: int, rest: bytes) -> int:
    """Return what ``more`` bytes of an id add to its first seven bits; -1 unless they end it, and ``rest`` follows."""
    if after[more:] != rest or (more and after[more - 1] > 127):
        return -1
    high = 0
    for place in range(more):
        byte = after[place]
        if place < more - 1 and byte < 128:
            return -1
        high |= (byte & 127) << (7 * place + 7)
    return high
