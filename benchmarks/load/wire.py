"""The few commands of the Pulsar protocol that a load generator needs, as bytes.

Written by hand on purpose: the generator must not share code with the broker that it measures, and it needs to know
where in a frame each field lies. A frame is ``[u32 size][u32 command size][BaseCommand]`` and, for SEND and MESSAGE,
``[u16 0x0e01][u32 crc32c][u32 metadata size][metadata][payload]`` (rules 1.1.1 to 1.1.3).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from enum import IntEnum

PROTOCOL_VERSION = 19
MAGIC = 0x0E01
HEAD = struct.Struct(">II")

VARINT = 0
BYTES = 2


class Command(IntEnum):
    """BaseCommand types; each is also the field number of its body (rule 1.1.11)."""

    CONNECT = 2
    CONNECTED = 3
    SUBSCRIBE = 4
    PRODUCER = 5
    SEND = 6
    SEND_RECEIPT = 7
    SEND_ERROR = 8
    MESSAGE = 9
    ACK = 10
    FLOW = 11
    SUCCESS = 13
    ERROR = 14
    CLOSE_PRODUCER = 15
    CLOSE_CONSUMER = 16
    PRODUCER_SUCCESS = 17
    PING = 18
    PONG = 19
    LOOKUP = 23
    LOOKUP_RESPONSE = 24


class SubscriptionType(IntEnum):
    EXCLUSIVE = 0
    SHARED = 1
    FAILOVER = 2
    KEY_SHARED = 3


class WireError(Exception):
    """The broker answered something that this generator cannot use."""


def varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def field(number: int, value: int | bytes | str) -> bytes:
    """One protobuf field: integers as varint, bytes and text length-delimited."""
    if isinstance(value, int):
        return varint(number << 3 | VARINT) + varint(value)
    raw = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | BYTES) + varint(len(raw)) + raw


def command(kind: Command, *fields: bytes) -> bytes:
    return field(1, int(kind)) + field(int(kind), b"".join(fields))


def frame(body: bytes) -> bytes:
    return HEAD.pack(4 + len(body), len(body)) + body


def read_varint(data: bytes | bytearray | memoryview, at: int) -> tuple[int, int]:
    """The value and the position after it."""
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
        if shift > 63:
            raise WireError("varint of more than ten bytes")


def fields(data: bytes | bytearray | memoryview, at: int, end: int) -> Iterator[tuple[int, int, int, int, int]]:
    """(number, wire type, tag, start, end) of each field: three positions, the last two of its content."""
    while at < end:
        tag_at = at
        tag, at = read_varint(data, at)
        wire_type = tag & 7
        if wire_type == VARINT:
            start = at
            _, at = read_varint(data, at)
        elif wire_type == BYTES:
            length, start = read_varint(data, at)
            at = start + length
        elif wire_type in (1, 5):
            start = at
            at += 8 if wire_type == 1 else 4
        else:
            raise WireError(f"protobuf wire type {wire_type}")
        if at > end:
            raise WireError("protobuf field longer than its message")
        yield tag >> 3, wire_type, tag_at, start, at


def parse(data: bytes) -> dict[int, int | bytes]:
    """A flat message as {field number: last value}."""
    found: dict[int, int | bytes] = {}
    for number, wire_type, _, start, end in fields(data, 0, len(data)):
        found[number] = read_varint(data, start)[0] if wire_type == VARINT else data[start:end]
    return found


def kind_and_body(body: bytes) -> tuple[int, dict[int, int | bytes]]:
    """Type and fields of a BaseCommand."""
    outer = parse(body)
    kind = outer.get(1)
    inner = outer.get(kind) if isinstance(kind, int) else None
    if not isinstance(kind, int) or not isinstance(inner, bytes):
        raise WireError(f"not a command: {body[:40].hex()}")
    return kind, parse(inner)


def connect(token: str | None = None) -> bytes:
    parts = [field(1, "magnetar-bench"), field(4, PROTOCOL_VERSION)]
    if token is not None:
        parts += [field(3, token), field(5, "token")]
    return frame(command(Command.CONNECT, *parts))


def lookup(topic: str, request: int) -> bytes:
    return frame(command(Command.LOOKUP, field(1, topic), field(2, request), field(3, 0)))


def producer(topic: str, producer_id: int, request: int) -> bytes:
    return frame(command(Command.PRODUCER, field(1, topic), field(2, producer_id), field(3, request)))


def subscribe(topic: str, subscription: str, kind: SubscriptionType, consumer_id: int, request: int) -> bytes:
    """A durable subscription that begins with the earliest message (initialPosition, field 13, is 1)."""
    parts = (field(1, topic), field(2, subscription), field(3, int(kind)), field(4, consumer_id), field(5, request))
    name = field(6, f"c{consumer_id}")
    return frame(command(Command.SUBSCRIBE, *parts, name, field(8, 1), field(13, 1)))


def flow(consumer_id: int, permits: int) -> bytes:
    return frame(command(Command.FLOW, field(1, consumer_id), field(2, permits)))


def ack(consumer_id: int, message_id: bytes) -> bytes:
    """An individual ack of one message; ``message_id`` holds the fields of MessageIdData."""
    return frame(command(Command.ACK, field(1, consumer_id), field(2, 0), field(3, message_id)))


def close_producer(producer_id: int, request: int) -> bytes:
    return frame(command(Command.CLOSE_PRODUCER, field(1, producer_id), field(2, request)))


def close_consumer(consumer_id: int, request: int) -> bytes:
    return frame(command(Command.CLOSE_CONSUMER, field(1, consumer_id), field(2, request)))


def ping() -> bytes:
    return frame(command(Command.PING))


def pong() -> bytes:
    return frame(command(Command.PONG))
