"""Frames of SENDs and ACKs as brokers read many of them in a row, and what they are one by one."""

from __future__ import annotations

from collections.abc import Iterable

from magnetar.protocol import codec
from magnetar.protocol import commands as c
from magnetar.protocol.decoder import Decoder, MalformedBytesError
from magnetar.protocol.entries import EntryMetadata, build_entry
from magnetar.protocol.varints import varint

ENTRY = build_entry(EntryMetadata("p", 0, 1), b"payload")


def send(sequence_id: int, entry: bytes = ENTRY, producer_id: int = 1) -> bytes:
    return codec.encode(c.CommandSend(producer_id, sequence_id, 1, None, False, None, False, None, entry))


def as_others_send_it(sequence_id: int, producer_id: int = 1) -> bytes:
    """Without the number of messages, which is one."""
    fields = b"\x08" + varint(producer_id) + b"\x10" + varint(sequence_id)
    command = b"\x08\x06\x32" + varint(len(fields)) + fields
    sizes = (len(command) + 4 + len(ENTRY)).to_bytes(4, "big") + len(command).to_bytes(4, "big")
    return sizes + command + ENTRY


def ack(entry: int, ledger: int = 7, consumer_id: int = 1) -> bytes:
    return codec.encode(c.CommandAck(consumer_id, c.AckType.Individual, (c.MessageIdData(ledger, entry),)))


def raw(command: bytes, entry: bytes = b"") -> bytes:
    return (len(command) + 4 + len(entry)).to_bytes(4, "big") + len(command).to_bytes(4, "big") + command + entry


def one_by_one(commands: Iterable[c.Command]) -> list[c.Command]:
    found: list[c.Command] = []
    for command in commands:
        if isinstance(command, c.SendRun | c.AckRun):
            found += command.commands()
        elif isinstance(command, c.CommandAck) and command[:1] + command[3:] == (
            command.consumer_id,
            None,
            (),
            None,
            None,
        ):
            found += [command._replace(message_ids=(one,)) for one in command.message_ids]
        else:
            found.append(command)
    return found


def outcome(frames: bytes, *, from_client: bool) -> tuple[list[c.Command], str | None]:
    try:
        return one_by_one(Decoder(1 << 16, from_client=from_client).feed(frames)), None
    except MalformedBytesError as error:
        return one_by_one(error.decoded), str(error)
