"""Bytes off a socket to typed commands, the hottest loop of the wire.

SEND, ACK and MESSAGE in the form that clients and brokers really send (few fields, in any order, no nested rarities)
are read here by hand, which takes a third to a half of what protobuf objects take; anything else about them, and every
other command, goes to the codec, which is also the judge of what is malformed. The hand-written readers return None
for whatever they do not know for sure, so both ways give the same commands (tests compare them).

Payload frames: the entry is cut out whole, its checksum verified and told, not enforced (SEMANTICS 1.1.5).

One call decodes so much and no more, whatever was sent: what is left waits until somebody asks for it (``more``). A
broker does so once per turn of a connection (docs/decisions/018); whoever trusts the other side asks until it is done.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Callable
from typing import Final

from crc32c import crc32c

from magnetar.model.errors import ProtocolError
from magnetar.protocol import codec
from magnetar.protocol.commands import (
    AckType,
    Command,
    CommandAck,
    CommandMessage,
    CommandSend,
    MessageIdData,
    UnparsedCommand,
)
from magnetar.protocol.frames import (
    BROKER_METADATA_MAGIC,
    CHECKSUM_MAGIC,
    ENTRY_HEADER_SIZE,
    MAX_FRAME_SIZE,
    FrameSplitter,
    check_total,
    read_size,
    with_checksum,
)

SEND: Final = 6
MESSAGE: Final = 9
ACK: Final = 10
REDELIVER: Final = 20

SLICE_FRAMES: Final = 4096
"""Frames as large as the first that one call decodes, some milliseconds' work with all that follows from them."""
SLICE_BYTES: Final = 256 << 10
"""Bytes of frames that one call decodes at most, and the rest of the frame that stands there; as much as one read."""
SLICE_COMMANDS: Final = 1024
"""Commands through the codec that one call decodes; a longer one counts for several."""
UNPARSED_FROM: Final = 16 << 10
"""Bytes of an ACK or REDELIVER (1,400 ids) from which a broker reads it in pieces."""
COMMAND_MAX: Final = (1 << 20) + (64 << 10)
"""Bytes of the largest command, its entry aside: the largest schema, and what protobuf reads in some 15 ms."""

_read_sizes = struct.Struct(">II").unpack_from
_read_entry_header = struct.Struct(">HII").unpack_from
_read_magic = struct.Struct(">H").unpack_from
_VIEW_FROM: Final = 4096
"""Bytes from which a view is cheaper than a copy."""
_INT32_MAX: Final = (1 << 31) - 1
_LONG_MAX: Final = (1 << 63) - 1
_ACK_TYPES: Final = (AckType.Individual, AckType.Cumulative)

_new: Callable[..., CommandSend] = tuple.__new__
_new_message: Callable[..., CommandMessage] = tuple.__new__
_new_ack: Callable[..., CommandAck] = tuple.__new__
_new_id: Callable[..., MessageIdData] = tuple.__new__


class MalformedBytesError(ProtocolError):
    """The peer sent what cannot be read; ``decoded`` are the commands before it in the same bytes."""

    def __init__(self, reason: str, decoded: list[Command]) -> None:
        super().__init__(reason)
        self.decoded = decoded


class Decoder:
    """One connection's incoming bytes; both roles use it. After an error it stays broken."""

    __slots__ = ("_broken", "_from_client", "_splitter", "_walkable")

    def __init__(self, max_frame_size: int = MAX_FRAME_SIZE, *, from_client: bool = False) -> None:
        """``from_client``: long lists of ids come as :class:`UnparsedCommand`, and nothing else may be long."""
        self._splitter = FrameSplitter(max_frame_size)
        self._from_client = from_client
        self._walkable: deque[tuple[bytes, int]] = deque()
        """Buffers that begin at a frame, and where; chunks behind them, as they came, have the offset -1."""
        self._broken: str | None = None

    @property
    def held(self) -> int:
        """Bytes of an unfinished frame that wait here."""
        return self._splitter.held

    @property
    def missing(self) -> int:
        """Bytes of an unfinished frame that have not come yet, as far as is known."""
        return self._splitter.missing

    @property
    def max_frame_size(self) -> int:
        """Bytes of the largest frame."""
        return self._splitter.max_frame_size

    @max_frame_size.setter
    def max_frame_size(self, size: int) -> None:
        self._splitter.max_frame_size = size

    @property
    def waiting(self) -> bool:
        """Whether there are whole frames that nobody has asked for yet."""
        return bool(self._walkable)

    def take_held(self) -> bytes:
        """Give up the bytes of an unfinished frame."""
        return self._splitter.take_held()

    def drop(self) -> None:
        """Let go of all bytes; nothing can be decoded any more."""
        self._broken = "the connection was lost"
        self._walkable.clear()
        self._splitter.take_held()

    def feed(self, data: bytes) -> list[Command]:
        """Every command completed by ``data``; MalformedBytesError, and nothing else, if a frame cannot be read."""
        decoded = self.feed_slice(data)
        while self._walkable:
            try:
                decoded += self.more()
            except MalformedBytesError as error:
                error.decoded[:0] = decoded
                raise
        return decoded

    def feed_slice(self, data: bytes) -> list[Command]:
        """The first of the commands completed by ``data``; ``waiting`` tells if there are more."""
        if self._walkable:
            self.later(data)
        else:
            self._walkable += self._splitter.feed(data)
        return self.more()

    def later(self, data: bytes) -> None:
        """Bytes for the next call of :meth:`more`."""
        self._walkable.append((data, -1))

    def more(self) -> list[Command]:
        """The next slice of what waits."""
        if self._broken is not None:
            raise MalformedBytesError(self._broken, [])
        decoded: list[Command] = []
        walkable = self._walkable
        try:
            while walkable:
                buffer, position = walkable.popleft()
                if position < 0:
                    # none before it is left: now it is known where its first frame begins
                    walkable.extendleft(reversed(self._splitter.feed(buffer)))
                    continue
                position = self._walk(buffer, position, decoded)
                if position >= 0:
                    walkable.appendleft((buffer, position))
                    break
        except ProtocolError as error:
            self._broken = str(error)
            walkable.clear()
            raise MalformedBytesError(self._broken, decoded) from None
        return decoded

    def _walk(self, buffer: bytes, position: int, decoded: list[Command]) -> int:
        """Decode one slice; returns where the next one begins, or -1 at the end."""
        append = decoded.append
        limit = self._splitter.max_frame_size
        long = UNPARSED_FROM if self._from_client else limit
        size = len(buffer)
        last = size - 8  # where the last frame may begin at most
        enough = last
        if position < last:
            enough = min(last, position + min(SLICE_FRAMES * (read_size(buffer, position)[0] + 4), SLICE_BYTES))
        credit = SLICE_COMMANDS
        while position <= enough:
            total, command_size = _read_sizes(buffer, position)
            end = position + 4 + total
            if end > size or end - position > limit or total < 4:
                check_total(total, limit)
                break
            start = position + 8
            stop = start + command_size
            if stop > end:
                raise ProtocolError(f"a command of {command_size} bytes in a frame of {total + 4}")
            position = end
            # Protobuf writes fields in order of their numbers: 08 <type> come first, unless someone tries hard.
            kind = buffer[start + 1] if stop > start + 1 and buffer[start] == 8 else 0
            if command_size > long:
                append(_long(buffer, start, stop, end, kind))
                credit -= command_size >> 10
            elif kind == SEND:
                append(_send(buffer, start, stop, end))
                continue
            elif kind == ACK:
                if (ack := _ack(buffer, start + 2, stop)) is not None:
                    append(ack)
                    continue
                append(_plain(buffer[start:stop], limited=False))
            elif kind == MESSAGE:
                append(_message(buffer, start, stop, end))
            else:
                append(_plain(buffer[start:stop], limited=False))
            credit -= 1
            if credit <= 0:
                return position
        else:
            if position <= last:
                return position
        if position < size:
            self._splitter.keep(buffer, position)
        return -1


def _long(buffer: bytes, start: int, stop: int, end: int, kind: int) -> Command:
    """What a client sends that would hold the loop if it were read like any other command."""
    if kind in (ACK, REDELIVER):
        return UnparsedCommand(kind, buffer[start:stop])
    size = stop - start
    if size > COMMAND_MAX:
        raise ProtocolError(f"a command of {size} bytes, at most {COMMAND_MAX} are allowed")
    if kind == SEND:
        return _send(buffer, start, stop, end)
    if kind == MESSAGE:
        return _message(buffer, start, stop, end)
    return _plain(buffer[start:stop], limited=True)


def _plain(body: bytes, *, limited: bool) -> Command:
    command = codec.decode(body, limited=limited)
    if isinstance(command, CommandSend | CommandMessage):
        raise ProtocolError("a command with an entry, whose type does not stand first or stands there twice")
    return command


def _varint(data: bytes, position: int) -> tuple[int, int]:
    """The rest of a varint of several bytes and where it ends; too large if cut off or over nine bytes."""
    value = shift = 0
    try:
        while shift < 63:
            byte = data[position]
            position += 1
            value |= (byte & 127) << shift
            if byte < 128:
                return value, position
            shift += 7
    except IndexError:
        pass
    return _LONG_MAX + 1, position


def _send(data: bytes, start: int, stop: int, end: int) -> CommandSend:
    entry = b""
    checksum_ok = True
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
        # A producer id of one byte and a sequence id is all that most have to say.
        if i + 3 < stop and data[i] == 0x08 and data[i + 2] == 0x10 and data[i + 1] < 128:
            sequence_id = data[i + 3]
            at = i + 4
            if sequence_id > 127:
                if at + 1 < stop and data[at] > 127 and data[at + 1] < 128:
                    # Three bytes, most sequence ids of a long-lived producer, without a call.
                    sequence_id += (data[at] << 7) + (data[at + 1] << 14) - 16512
                    at += 2
                else:
                    sequence_id, at = _varint(data, at - 1)
            if at == stop and sequence_id <= _LONG_MAX:
                return _new(
                    CommandSend, (data[i + 1], sequence_id, 1, None, False, None, False, None, entry, checksum_ok)
                )
        found = _send_fields(data, i, stop, entry, checksum_ok)
        if found is not None:
            return found
    command = codec.decode(data[start:stop], entry, checksum_ok)
    if not isinstance(command, CommandSend):
        raise ProtocolError("a command with two types")
    return command


def _send_fields(data: bytes, i: int, stop: int, entry: bytes, checksum_ok: bool) -> CommandSend | None:
    """A SEND with more than two fields, None if one of them is for the codec."""
    producer_id = sequence_id = -1
    num_messages = 1
    highest: int | None = None
    is_chunk = marker = 0
    while i + 1 < stop:
        tag = data[i]
        value = data[i + 1]
        i += 2
        if value > 127:
            value, i = _varint(data, i - 1)
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
        or not 0 <= producer_id <= _LONG_MAX
        or not 0 <= sequence_id <= _LONG_MAX
        or num_messages > _INT32_MAX
        or is_chunk > 1
        or marker > 1
        or (highest is not None and highest > _LONG_MAX)
    ):
        return None
    fields = (producer_id, sequence_id, num_messages, highest, is_chunk == 1, None, marker == 1, None)
    return _new(CommandSend, (*fields, entry, checksum_ok))


def _message(data: bytes, start: int, stop: int, end: int) -> CommandMessage:
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
                message_id = _id(data, i, i + value) if i + value <= stop else None
                i += value
                continue
            if value > 127:
                value, i = _varint(data, i - 1)
            if tag == 0x08:
                consumer_id = value
            elif tag == 0x18:
                redelivery = value
            else:
                i = 0
                break
        if i == stop and message_id is not None and 0 <= consumer_id <= _LONG_MAX and redelivery <= _INT32_MAX:
            return _new_message(
                CommandMessage, (consumer_id, message_id, redelivery, (), None, metadata, entry, checksum_ok)
            )
    command = codec.decode(data[start:stop], entry, checksum_ok)
    if not isinstance(command, CommandMessage):
        raise ProtocolError("a command with two types")
    return command._replace(broker_metadata=metadata)


def _ack(data: bytes, i: int, stop: int) -> CommandAck | None:
    """``i`` stands after the type."""
    if i + 1 >= stop or data[i] != 0x52 or i + 2 + data[i + 1] != stop:
        return None
    i += 2
    consumer_id = kind = -1
    request_id: int | None = None
    ids: list[MessageIdData] = []
    while i + 1 < stop:
        tag = data[i]
        value = data[i + 1]
        i += 2
        if tag == 0x1A:
            message_id = _id(data, i, i + value) if i + value <= stop else None
            if message_id is None:
                return None
            i += value
            ids.append(message_id)
            continue
        if value > 127:
            value, i = _varint(data, i - 1)
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
        or not 0 <= consumer_id <= _LONG_MAX
        or (request_id is not None and request_id > _LONG_MAX)
    ):
        return None
    return _new_ack(CommandAck, (consumer_id, _ACK_TYPES[kind], tuple(ids), None, (), None, request_id))


def _id(data: bytes, i: int, stop: int) -> MessageIdData | None:
    """A message id of ledger, entry and perhaps partition and batch index, none of them negative."""
    ledger = entry = partition = batch_index = -1
    while i + 1 < stop:
        tag = data[i]
        value = data[i + 1]
        i += 2
        if value > 127:
            if i + 1 < stop and data[i] > 127 and data[i + 1] < 128:
                value += (data[i] << 7) + (data[i + 1] << 14) - 16512
                i += 2
            else:
                value, i = _varint(data, i - 1)
                if value > _LONG_MAX:
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
    """The entry, with magic and checksum even if the peer left them out, and whether its checksum holds."""
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
