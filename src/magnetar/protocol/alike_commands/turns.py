"""Consecutive SENDs of different producers, and ACKs of different consumers, that are laid out alike.

Who publishes to a partitioned topic, or to many topics, sends them in turn. They stay commands of their own, in their
order; but the first of them tells where everything stands in the next ones, so each of those is one call of
:mod:`struct`, of SEND one checksum and one copy besides. Whatever is not known for sure is left to
:mod:`magnetar.protocol.hot_commands` (tests compare both; docs/decisions/077).
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Final

from crc32c import crc32c

from magnetar.protocol.alike_commands.layouts import ID_AT, ack_layout, first_bytes, high_part, send_layout
from magnetar.protocol.alike_commands.runs import FRAME_MAX, read_ack_run, read_send_run
from magnetar.protocol.commands import AckType, Command, CommandAck, CommandSend, MessageIdData
from magnetar.protocol.frames import ENTRY_HEADER_SIZE

_INDIVIDUAL: Final = AckType.Individual
_SEND: Final = 6
"""The type of a SEND."""

_new_send: Callable[..., CommandSend] = tuple.__new__
_new_ack: Callable[..., CommandAck] = tuple.__new__
_new_id: Callable[..., MessageIdData] = tuple.__new__


def read_alike(data: bytes, at: int, end: int, last: int, frame_max: int, decoded: list[Command]) -> int:
    """Append SENDs or ACKs from ``at`` on that begin at ``last`` at the latest; returns where what follows begins.

    The frame from ``at`` to ``end`` is a SEND or an ACK, and 14 bytes at least follow it. ``at`` if nothing was read.
    """
    # two bytes of the producer's or consumer's id tell whether both are of the same one
    same = data[end + ID_AT : end + ID_AT + 2] == data[at + ID_AT : at + ID_AT + 2]
    if data[at + 9] == _SEND:
        if same:
            sends = read_send_run(data, at, end, last, frame_max)
            if sends is None:
                return at
            decoded.append(sends[0])
            return sends[1]
        if end - at > FRAME_MAX or data[end + 4 : end + ID_AT] != data[at + 4 : at + ID_AT]:
            return at
        of_send = send_layout(data, at)
        return at if of_send is None else _sends_in_turn(data, at, last, frame_max, of_send, decoded)
    if same:
        acks = read_ack_run(data, at, end, last)
        if acks is None:
            return at
        decoded.append(acks[0])
        return acks[1]
    if data[end : end + ID_AT] != data[at : at + ID_AT]:
        return at
    of_ack = ack_layout(data, at)
    return at if of_ack is None else _acks_in_turn(data, at, last, of_ack, decoded)


def _sends_in_turn(
    data: bytes, at: int, last: int, frame_max: int, layout: tuple[int, int, bytes], decoded: list[Command]
) -> int:
    """Append SENDs that are laid out so. It ends before two of one producer: they may be a run."""
    id_at, id_more, rest = layout
    more = id_at - at - ID_AT - 2
    """Bytes of the producer id after its first one."""
    shape = struct.Struct(f">I{ID_AT - 4}sB{more + 1}sB{id_more + len(rest)}sII")
    unpack, head = shape.unpack_from, data[at + 4 : at + ID_AT]
    least, most = first_bytes(more)
    id_least, id_most = first_bytes(id_more)
    before = id_at + id_more + len(rest) - 1 - at
    size = len(data)
    last = min(last, size - shape.size)
    frame_max = min(frame_max, FRAME_MAX) - 4
    known = id_known = b""
    base = id_base = 0
    producer_id = -1
    begin = at
    append = decoded.append
    while at <= last:
        total, begins, low, after, id_low, id_after, expected, metadata_size = unpack(data, at)
        end = at + 4 + total
        if (
            begins != head or total > frame_max or end > size
            or not least <= low <= most or not id_least <= id_low <= id_most
        ):  # fmt: skip
            break
        if after != known:
            high = high_part(after, more, b"\x10")
            if high < 0:
                break
            known, base = after, high - least
        if id_after != id_known:
            high = high_part(id_after, id_more, rest)
            if high < 0:
                break
            id_known, id_base = id_after, high - id_least
        stop = at + before
        if stop + ENTRY_HEADER_SIZE + metadata_size > end or crc32c(data[stop + 6 : end]) != expected:
            break
        if low + base == producer_id:
            decoded.pop()
            return begin
        producer_id, begin = low + base, at
        append(
            _new_send(
                CommandSend, (producer_id, id_base + id_low, 1, None, False, None, False, None, data[stop:end], True)
            )
        )
        at = end
    return at


def _acks_in_turn(data: bytes, at: int, last: int, layout: tuple[int, int, int, int], decoded: list[Command]) -> int:
    """Append ACKs that are laid out so. It ends before two of one consumer: they may be a run."""
    _, ledger_at, entry_at, stop = layout
    ledger_at += 1
    rest_at = ledger_at - 5  # 10 00 1a <length> 08
    more, ledger_more, entry_more = rest_at - at - ID_AT - 1, entry_at - ledger_at - 2, stop - entry_at - 1
    head, rest = data[at : at + ID_AT], data[rest_at:ledger_at]
    least, most = first_bytes(more)
    ledger_least, ledger_most = first_bytes(ledger_more)
    entry_least, entry_most = first_bytes(entry_more)
    known = ledger_known = entry_known = None
    base = ledger_base = entry_base = 0
    consumer_id = -1
    append = decoded.append
    size = stop - at
    count = min((last - at) // size + 1, (len(data) - at) // size)
    layout_of_each = f"{ID_AT}sB{more + 5}sB{ledger_more + 1}sB{entry_more}s"
    pieces = struct.iter_unpack(layout_of_each, memoryview(data)[at : at + count * size])
    for begins, low, after, ledger_low, ledger_after, entry_low, entry_after in pieces:
        if (
            begins != head
            or not least <= low <= most
            or not ledger_least <= ledger_low <= ledger_most
            or not entry_least <= entry_low <= entry_most
        ):
            break
        if after != known:
            high = high_part(after, more, rest)
            if high < 0:
                break
            known, base = after, high - least
        if ledger_after != ledger_known:
            high = high_part(ledger_after, ledger_more, b"\x10")
            if high < 0:
                break
            ledger_known, ledger_base = ledger_after, high - ledger_least
        if entry_after != entry_known:
            high = high_part(entry_after, entry_more, b"")
            if high < 0:
                break
            entry_known, entry_base = entry_after, high - entry_least
        if low + base == consumer_id:
            decoded.pop()
            return at - size
        consumer_id = low + base
        only = _new_id(MessageIdData, (ledger_base + ledger_low, entry_base + entry_low, -1, -1, (), 0, None))
        append(_new_ack(CommandAck, (consumer_id, _INDIVIDUAL, (only,), None, (), None, None)))
        at += size
    return at
