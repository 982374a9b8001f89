"""SEND, ACK and MESSAGE read by hand, the hottest loop of the wire.

What clients and brokers really send of these (few fields, in any order, no nested rarities) takes a third to a half of
the time that protobuf objects take. Anything else goes to the codec, which is also the judge of what is malformed: a
reader here gives up on whatever it does not know for sure, so both ways give the same commands (tests compare them).

The entry of a payload frame is cut out whole; its checksum is verified and reported, not enforced (rule 1.1.5).
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Final

from crc32c import crc32c

from magnetar.model.errors import ProtocolError
from magnetar.protocol import codec
from magnetar.protocol.commands import AckType, CommandAck, CommandMessage, CommandSend, MessageIdData
from magnetar.protocol.frames import (
    BROKER_METADATA_MAGIC,
    CHECKSUM_MAGIC,
    ENTRY_HEADER_SIZE,
    read_size,
    with_checksum,
)
from magnetar.protocol.varints import read_varint

_read_entry_header = struct.Struct(">HII").unpack_from
_read_magic = struct.Struct(">H").unpack_from
_VIEW_FROM: Final = 4096
"""Bytes from which a view is cheaper than a copy."""
_INT32_MAX: Final = (1 << 31) - 1
LONG_MAX: Final = (1 << 63) - 1
_ACK_TYPES: Final = (AckType.Individual, AckType.Cumulative)
_INDIVIDUAL: Final = AckType.Individual
ONE_ID: Final = b"\x10\x00\x1a"
"""What follows the consumer id in a short ACK: the type Individual, and how a message id begins."""

_NUM_MESSAGES: Final = 0x18
ONE_MESSAGE: Final = b"\x18\x01"
"""The number of messages as our client sends it when there is one; others leave it out."""

_new: Callable[..., CommandSend] = tuple.__new__
_new_message: Callable[..., CommandMessage] = tuple.__new__
_new_ack: Callable[..., CommandAck] = tuple.__new__
_new_id: Callable[..., MessageIdData] = tuple.__new__


def read_large_send(head: bytes, entry: bytes) -> CommandSend:
    """Read a SEND whose frame was parted before its entry."""
    entry, checksum_ok = _entry(entry, 0, len(entry))
    return read_send(head, 8, len(head), len(head), entry, checksum_ok)


def read_send(
    data: bytes, start: int, stop: int, end: int, entry: bytes = b"", checksum_ok: bool = True
) -> CommandSend:
    """``entry``: it stands elsewhere, and is checked."""
    if ENTRY_HEADER_SIZE <= end - stop < _VIEW_FROM:
        # What _entry does with a small entry that is as it should be, without the call.
        magic, expected, metadata_size = _read_entry_header(data, stop)
        whole = magic == CHECKSUM_MAGIC and stop + ENTRY_HEADER_SIZE + metadata_size <= end
        if whole and crc32c(data[stop + 6 : end]) == expected:
            entry = data[stop:end]
    if not entry:
        entry, checksum_ok = _entry(data, stop, end)
    i = start + 4
    # 32 <length> begin field 6; a longer length, or more after it, is for the codec.
    if i <= stop and data[start + 2] == 0x32 and i + data[start + 3] == stop:
        # A producer id of one byte or two, a sequence id and a number of messages are all that most have to say.
        producer_id = at = 0
        if i + 4 < stop and data[i] == 0x08:
            producer_id, at = data[i + 1], i + 2
            if producer_id > 127 and data[at] < 128:
                producer_id += (data[at] << 7) - 128
                at += 1
        if at and data[at] == 0x10:
            sequence_id = data[at + 1]
            at += 2
            if sequence_id > 127:
                # Two bytes, or three: most sequence ids there are, without a call.
                if at < stop and (more := data[at]) < 128:
                    sequence_id += (more << 7) - 128
                    at += 1
                elif at + 1 < stop and data[at + 1] < 128:
                    sequence_id += (more << 7) + (data[at + 1] << 14) - 16512
                    at += 2
                else:
                    sequence_id, at = read_varint(data, at - 1)
            messages = 1
            if at + 2 == stop and data[at] == _NUM_MESSAGES and data[at + 1] < 128:
                messages, at = data[at + 1], stop
            if at == stop and sequence_id <= LONG_MAX:
                return _new(
                    CommandSend,
                    (producer_id, sequence_id, messages, None, False, None, False, None, entry, checksum_ok),
                )
        found = _send_fields(data, i, stop, entry, checksum_ok)
        if found is not None:
            return found
    command = codec.decode(data[start:stop], entry, checksum_ok)
    if not isinstance(command, CommandSend):
        raise ProtocolError("a command with two types")
    return command


def _send_fields(data: bytes, i: int, stop: int, entry: bytes, checksum_ok: bool) -> CommandSend | None:
    """Read a SEND with more than two fields; None if one of them is for the codec."""
    producer_id = sequence_id = -1
    num_messages = 1
    highest: int | None = None
    is_chunk = marker = 0
    while i + 1 < stop:
        tag = data[i]
        value = data[i + 1]
        i += 2
        if value > 127:
            value, i = read_varint(data, i - 1)
        if tag == 0x10:
            sequence_id = value
        elif tag == 0x08:
            producer_id = value
        elif tag == 0x18:
            num_messages = value
        elif tag == 0x30:
            highest = value
        elif tag == 0x38:
            is_chunk = value
        elif tag == 0x40:
            marker = value
        else:
            return None
    if (
        i != stop
        or not 0 <= producer_id <= LONG_MAX
        or not 0 <= sequence_id <= LONG_MAX
        or num_messages > _INT32_MAX
        or is_chunk > 1
        or marker > 1
        or (highest is not None and highest > LONG_MAX)
    ):
        return None
    fields = (producer_id, sequence_id, num_messages, highest, is_chunk == 1, None, marker == 1, None)
    return _new(CommandSend, (*fields, entry, checksum_ok))


def read_message(data: bytes, start: int, stop: int, end: int) -> CommandMessage:
    metadata = None
    entry_at = stop
    if end - stop >= 6 and _read_magic(data, stop)[0] == BROKER_METADATA_MAGIC:
        entry_at = stop + 6 + read_size(data, stop + 2)[0]
        if entry_at > end:
            raise ProtocolError("broker entry metadata is longer than its frame")
        metadata = codec.decode_broker_metadata(data[stop + 6 : entry_at])
    entry, checksum_ok = _entry(data, entry_at, end)
    i = start + 4
    if i <= stop and data[start + 2] == 0x4A and i + data[start + 3] == stop:
        consumer_id = -1
        redelivery = 0
        message_id = None
        while i + 1 < stop:
            tag = data[i]
            value = data[i + 1]
            i += 2
            if tag == 0x12:
                message_id = read_id(data, i, i + value) if i + value <= stop else None
                i += value
                continue
            if value > 127:
                value, i = read_varint(data, i - 1)
            if tag == 0x08:
                consumer_id = value
            elif tag == 0x18:
                redelivery = value
            else:
                i = 0
                break
        if i == stop and message_id is not None and 0 <= consumer_id <= LONG_MAX and redelivery <= _INT32_MAX:
            return _new_message(
                CommandMessage, (consumer_id, message_id, redelivery, (), None, metadata, entry, checksum_ok)
            )
    command = codec.decode(data[start:stop], entry, checksum_ok)
    if not isinstance(command, CommandMessage):
        raise ProtocolError("a command with two types")
    return command._replace(broker_metadata=metadata)


def read_ack(data: bytes, i: int, stop: int) -> CommandAck | None:
    """Read an ACK from ``i``, after its type, on; None if it is for the codec."""
    if i + 1 >= stop or data[i] != 0x52 or i + 2 + data[i + 1] != stop:
        return None
    i += 2
    # A consumer id of one byte or two, the type Individual and one id is all that most have to say.
    if i + 8 <= stop and data[i] == 0x08:
        consumer, at = data[i + 1], i + 2
        if consumer > 127 and data[at] < 128:
            consumer += (data[at] << 7) - 128
            at += 1
        if (
            data[at : at + 3] == ONE_ID
            and data[at + 3] + at + 4 == stop
            and (only := read_id(data, at + 4, stop)) is not None
        ):
            return _new_ack(CommandAck, (consumer, _INDIVIDUAL, (only,), None, (), None, None))
    consumer_id = kind = -1
    request_id: int | None = None
    ids: list[MessageIdData] = []
    while i + 1 < stop:
        tag = data[i]
        value = data[i + 1]
        i += 2
        if tag == 0x1A:
            message_id = read_id(data, i, i + value) if i + value <= stop else None
            if message_id is None:
                return None
            i += value
            ids.append(message_id)
            continue
        if value > 127:
            value, i = read_varint(data, i - 1)
        if tag == 0x08:
            consumer_id = value
        elif tag == 0x10:
            kind = value
        elif tag == 0x40:
            request_id = value
        else:
            return None
    if (
        i != stop
        or kind not in (0, 1)
        or not 0 <= consumer_id <= LONG_MAX
        or (request_id is not None and request_id > LONG_MAX)
    ):
        return None
    return _new_ack(CommandAck, (consumer_id, _ACK_TYPES[kind], tuple(ids), None, (), None, request_id))


def read_id(data: bytes, i: int, stop: int) -> MessageIdData | None:
    """Read a message id of ledger, entry and perhaps partition and batch index; None if one of them is negative."""
    ledger = entry = partition = batch_index = -1
    while i + 1 < stop:
        tag = data[i]
        value = data[i + 1]
        i += 2
        if value > 127:
            if i < stop and (more := data[i]) < 128:
                value += (more << 7) - 128
                i += 1
            elif i + 1 < stop and data[i + 1] < 128:
                value += (more << 7) + (data[i + 1] << 14) - 16512
                i += 2
            else:
                value, i = read_varint(data, i - 1)
                if value > LONG_MAX:
                    return None
        if tag == 0x08:
            ledger = value
        elif tag == 0x10:
            entry = value
        elif tag == 0x18 and value <= _INT32_MAX:
            partition = value
        elif tag == 0x20 and value <= _INT32_MAX:
            batch_index = value
        else:
            return None
    if i != stop or ledger < 0 or entry < 0:
        return None
    return _new_id(MessageIdData, (ledger, entry, partition, batch_index, (), 0, None))


def _entry(data: bytes, start: int, end: int) -> tuple[bytes, bool]:
    """Return the entry, with magic and checksum even if the peer left them out, and whether its checksum holds."""
    if end - start >= ENTRY_HEADER_SIZE:
        magic, expected, metadata_size = _read_entry_header(data, start)
        if magic == CHECKSUM_MAGIC:
            if end - start < _VIEW_FROM:
                ok = crc32c(data[start + 6 : end]) == expected
            else:
                ok = crc32c(memoryview(data)[start + 6 : end]) == expected
            # With a wrong checksum the size may be what was damaged: that is for the sender to hear, not a breach.
            if ok and start + ENTRY_HEADER_SIZE + metadata_size > end:
                raise ProtocolError(f"message metadata of {metadata_size} bytes is longer than its frame")
            return data[start:end], ok
    if end - start < 4 or start + 4 + read_size(data, start)[0] > end:
        raise ProtocolError(f"{end - start} bytes where an entry should be")
    return with_checksum(data[start:end]), True
