"""The part of a SEND frame that stands before its entry, made by hand: the frame a client writes most.

    total size, command size | 08 06 32 n | 08 producer | 10 sequence | 18 messages [| 30 highest]

`n` counts the bytes after it.
"""

from __future__ import annotations

from magnetar.protocol.frames import command_frame
from magnetar.protocol.varints import varint


def send_head(producer_id: int, sequence_id: int, messages: int, highest: int | None, size: int) -> bytes:
    """Return the frame up to an entry of ``size`` bytes that is no chunk and in no transaction; numbers from 0 on."""
    fields = b"\x08" + varint(producer_id) + b"\x10" + varint(sequence_id) + b"\x18" + varint(messages)
    if highest is not None:
        fields += b"\x30" + varint(highest)
    return command_frame(b"\x08\x06\x32" + varint(len(fields)) + fields, size)
