"""Protobuf's wire format for kernels: varints, fields that are skipped, spans, copies.

Every position is checked against an end before a byte is read, because what is read may be damaged or hostile, and a
kernel has no bounds checks of its own. A position of -1 says "this is no protobuf"; nothing is raised in kernels.
Groups (wire types 3 and 4) occur in no message of Pulsar and are refused.
"""

from __future__ import annotations

from typing import Any

from magnetar.columnar.kernels.compiled import Uint8Array, copy_bytes, int64, kernel, uint64


@kernel
def read_varint(data: Uint8Array, at: int, end: int) -> tuple[Any, int]:
    """Return the number (uint64) and the position after it, -1 if it is cut off or has more than 64 bits."""
    if at < end and data[at] < 128:
        return uint64(data[at]), at + 1
    value = uint64(0)
    for index in range(10):
        if at >= end:
            return value, -1
        byte = data[at]
        at += 1
        value |= uint64(byte & 0x7F) << uint64(7 * index)
        if byte < 128:
            return value, at if index < 9 or byte <= 1 else -1
    return value, -1


@kernel
def read_tag(data: Uint8Array, at: int, end: int) -> tuple[int, int]:
    """Return field number and wire type (number << 3 | type) and the position after them; -1 if there are none."""
    value, at = read_varint(data, at, end)
    if value < uint64(8) or value > uint64(0xFFFFFFFF):
        return 0, -1
    return int64(value), at


@kernel
def read_span(data: Uint8Array, at: int, end: int) -> tuple[int, int]:
    """Return where the bytes of a field of wire type 2 begin and end; both -1 if they do not fit."""
    value, at = read_varint(data, at, end)
    if at < 0 or value > uint64(end - at):
        return -1, -1
    return at, at + int64(value)


@kernel
def skip_field(data: Uint8Array, tag: int, at: int, end: int) -> int:
    """Return the position after a field whose tag has been read; -1 if there is none."""
    kind = tag & 7
    if kind == 0:
        return read_varint(data, at, end)[1]
    if kind == 2:
        return read_span(data, at, end)[1]
    if kind == 1:
        at += 8
    elif kind == 5:
        at += 4
    else:
        return -1
    return at if at <= end else -1


@kernel
def read_u32(data: Uint8Array, at: int) -> int:
    """Read four bytes, big-endian; the caller knows that they are there."""
    found: int = int64(data[at]) << 24 | int64(data[at + 1]) << 16 | int64(data[at + 2]) << 8 | int64(data[at + 3])
    return found


@kernel
def to_int32(value: Any) -> int:
    """Return an int32 field: the lower half of its varint, with a sign."""
    low: int = int64(value & uint64(0xFFFFFFFF))
    return low - (int64(1) << 32) if low >> 31 else low


@kernel
def copy(source: Uint8Array, start: int, end: int, target: Uint8Array, to: int) -> None:
    """Copy a span of bytes; the caller knows that there is room."""
    copy_bytes(target, to, source, start, end - start)


@kernel
def put_varint(target: Uint8Array, at: int, value: int) -> int:
    """Write a varint and return the position after it; the caller knows that there is room for ten bytes."""
    rest = uint64(value)
    while rest > uint64(127):
        target[at] = rest & uint64(127) | uint64(128)
        rest >>= uint64(7)
        at += 1
    target[at] = rest
    return at + 1


@kernel
def same(left: Uint8Array, start: int, end: int, right: Uint8Array, to: int, stop: int) -> bool:
    """Whether two spans hold the same bytes."""
    if end - start != stop - to:
        return False
    for index in range(end - start):  # noqa: SIM110 - no generators in kernels
        if left[start + index] != right[to + index]:
            return False
    return True


@kernel
def pair_spans(data: Uint8Array, at: int, end: int) -> tuple[int, int, int, int]:
    """Read a KeyValue: start and end of key and value; the first is -1 if it is none. Both are required."""
    key = key_end = value = value_end = int64(-1)
    while at < end:
        tag, at = read_tag(data, at, end)
        if at < 0:
            return -1, -1, -1, -1
        if tag == 0x0A:
            key, key_end = read_span(data, at, end)
            at = key_end
        elif tag == 0x12:
            value, value_end = read_span(data, at, end)
            at = value_end
        else:
            at = skip_field(data, tag, at, end)
        if at < 0:
            return -1, -1, -1, -1
    if key < 0 or value < 0:
        return -1, -1, -1, -1
    return key, key_end, value, value_end


@kernel
def _six_bits(byte: int) -> int:
    """Return what a letter of base64 stands for; -1 if it is none."""
    if 65 <= byte <= 90:
        return byte - 65
    if 97 <= byte <= 122:
        return byte - 71
    if 48 <= byte <= 57:
        return byte + 4
    if byte == 43:
        return 62
    return 63 if byte == 47 else -1


@kernel
def decode_base64(source: Uint8Array, start: int, end: int, target: Uint8Array, to: int) -> int:
    """Return how many bytes were written; -1 if it is no strict base64. There is room for three quarters of it."""
    size = end - start
    if size % 4:
        return -1
    padding = 0
    while padding < 2 and padding < size and source[end - 1 - padding] == 61:
        padding += 1
    bits = held = 0
    written = to
    for at in range(start, end - padding):
        value = _six_bits(int64(source[at]))
        if value < 0:
            return -1
        held = (held << 6 | value) & 0xFFFFFF
        bits += 6
        if bits >= 8:
            bits -= 8
            target[written] = held >> bits & 0xFF
            written += 1
    return written - to
