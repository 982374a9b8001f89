"""Frames of a WebSocket as a client sends them, without a client's scruples: any opcode with any content."""

from __future__ import annotations

import struct
from typing import Final

CONTINUATION: Final = 0
TEXT: Final = 1
BINARY: Final = 2
CLOSE: Final = 8
PING: Final = 9
PONG: Final = 10


def ws_frame(opcode: int, data: bytes = b"", *, last: bool = True) -> bytes:
    """One frame; its mask is zero."""
    size = len(data)
    if size < 126:
        length = bytes([0x80 | size])
    elif size < 1 << 16:
        length = b"\xfe" + struct.pack(">H", size)
    else:
        length = b"\xff" + struct.pack(">Q", size)
    return bytes([0x80 * last | opcode]) + length + bytes(4) + data
