"""An ACK or REDELIVER of thousands of ids, taken apart into commands of some hundreds.

    BaseCommand   08 <type> | <tag of the command> <length> <command>
    command       numbers, and field 3 (ACK) or 2 (REDELIVER): one id each time it stands there

One pass finds where the ids stand and checks that all of it can be read; a second one gives, for each stretch of ids,
the command that says the same of these alone. A request id goes with the last one, so the answer comes when the work
is done. Both passes stop every few hundred ids, so that an event loop is not held up. Lists of numbers and pairs
beside the ids, which have no use, are left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from magnetar.model.errors import ProtocolError
from magnetar.protocol import codec
from magnetar.protocol.commands import (
    AckType,
    Command,
    CommandAck,
    CommandRedeliverUnacknowledgedMessages,
    UnparsedCommand,
)
from magnetar.protocol.varints import UNENDED, read_varint, varint

PART_IDS: Final = 250
_PART_BYTES: Final = 16 << 10
_ID_MAX: Final = 64 << 10
"""Bytes of one id: those of half a million messages in one batch."""
_REST_MAX: Final = 1 << 10

_ACK: Final = 10
_REDELIVER: Final = 20
_IDS: Final = {_ACK: 0x1A, _REDELIVER: 0x12}
"""Tags of the field that holds the ids."""
_REQUEST_ID: Final = {_ACK: 0x40, _REDELIVER: -1}
_LEFT_OUT: Final = {_ACK: 0x2A, _REDELIVER: -1}


def parts_of(command: UnparsedCommand) -> Iterator[CommandAck | CommandRedeliverUnacknowledgedMessages | None]:
    """Yield smaller commands, None where only time passed. Raises ProtocolError before the first of them."""
    body, kind = command.body, command.kind
    stretches: list[tuple[int, int]] = []
    rest = bytearray()
    request = b""
    first = at = _inside(body, kind)
    ids = total = steps = 0
    while at < len(body):
        field_at = at
        tag, at = read_varint(body, at)
        if tag == UNENDED:
            raise _unended(body)
        at = _value_end(body, at, tag & 7)
        if tag == _IDS[kind]:
            if at - field_at > _ID_MAX:
                raise ProtocolError(f"a message id of {at - field_at} bytes, at most {_ID_MAX} are allowed")
            if ids and (ids == PART_IDS or at - first > _PART_BYTES):
                stretches.append((first, field_at))
                first, ids = field_at, 0
            ids += 1
            total += 1
        else:
            if ids:
                stretches.append((first, field_at))
            first, ids = at, 0
            if tag == _REQUEST_ID[kind]:
                request = body[field_at:at]
            elif tag != _LEFT_OUT[kind]:
                rest += body[field_at:at]
                if len(rest) > _REST_MAX:
                    raise ProtocolError(f"a command of {len(body)} bytes with more than ids in it")
        steps += 1
        if steps % (4 * PART_IDS) == 0:
            yield None
    if ids:
        stretches.append((first, at))
    head = _command(kind, bytes(rest), b"")
    if isinstance(head, CommandAck) and head.ack_type is AckType.Cumulative and total > 1:
        # means nothing with more than one id, as it does without any
        stretches = [(0, 0)]
    for begin, end in stretches:
        # each is read before the first is given out: nothing of a command that cannot be read has happened
        _command(kind, bytes(rest), body[begin:end])
        yield None
    for begin, end in stretches[:-1]:
        yield _command(kind, bytes(rest), body[begin:end])
    begin, end = stretches[-1] if stretches else (0, 0)
    yield _command(kind, bytes(rest) + request, body[begin:end])


def _command(kind: int, rest: bytes, ids: bytes) -> CommandAck | CommandRedeliverUnacknowledgedMessages:
    inner = rest + ids
    command: Command = codec.decode(b"\x08" + varint(kind) + varint(kind << 3 | 2) + varint(len(inner)) + inner)
    assert isinstance(command, CommandAck | CommandRedeliverUnacknowledgedMessages)
    return command


def _inside(body: bytes, kind: int) -> int:
    """Return where the command's own fields begin; they reach to the end."""
    tag, at = read_varint(body, 2)
    size, at = read_varint(body, at)
    if UNENDED in (tag, size):
        raise _unended(body)
    if body[0] != 0x08 or body[1] != kind or tag != kind << 3 | 2 or at + size != len(body):
        raise ProtocolError(f"a command of {len(body)} bytes that is not one command")
    return at


def _value_end(body: bytes, at: int, wire: int) -> int:
    """Return where the value that begins at ``at`` ends."""
    if wire in (0, 2):
        number, at = read_varint(body, at)
        if number == UNENDED:
            raise _unended(body)
        if wire == 2:
            at += number
    elif wire in (1, 5):
        at += 8 if wire == 1 else 4
    else:
        raise ProtocolError(f"a command of {len(body)} bytes with a field of wire type {wire}")
    if at > len(body):
        raise ProtocolError(f"a command of {len(body)} bytes is cut off")
    return at


def _unended(body: bytes) -> ProtocolError:
    return ProtocolError(f"a command of {len(body)} bytes has a number that does not end")
