"""Whole frames out of the bytes of one direction, and what kind of command each one holds."""

from __future__ import annotations

from typing import Final

from magnetar.protocol import commands as c
from magnetar.protocol.codec import NUMBERS
from magnetar.protocol.commands.names import name_of
from magnetar.protocol.decoder import Decoder
from magnetar.protocol.frames import read_size

_FRAME_MAX: Final = 256 << 20
_TYPE_FIELD: Final = 0x08
"""How a BaseCommand begins: its type is its first field, and below 128."""
NUMBER_OF: Final = {name_of(kind).lower(): number for kind, number in NUMBERS.items()}
"""Numbers of commands by their names in small letters, ``sendreceipt`` for one."""


class FrameCutter:
    """One direction of one connection. Bytes that are no frames (a client that speaks TLS) are passed as they come."""

    def __init__(self) -> None:
        self._rest = b""
        self._raw = False

    def feed(self, data: bytes) -> list[bytes]:
        """Return the whole frames, in order; the beginning of another one is kept."""
        if self._raw:
            return [data]
        whole = self._rest + data if self._rest else bytes(data)
        frames, at = [], 0
        while len(whole) - at >= 4:
            size = 4 + int(read_size(whole, at)[0])
            if not 8 <= size <= _FRAME_MAX:
                self._raw = True
                frames.append(whole[at:])
                at = len(whole)
                break
            if len(whole) - at < size:
                break
            frames.append(whole[at : at + size])
            at += size
        self._rest = whole[at:]
        return frames


def number_of(frame: bytes) -> int:
    """Return the number of a frame's command, 0 if it cannot be known."""
    return frame[9] if len(frame) > 9 and frame[8] == _TYPE_FIELD else 0


def command_of(frame: bytes) -> c.Command | None:
    """Return what a frame says, None if it cannot be read."""
    try:
        return next(iter(Decoder(_FRAME_MAX).feed(frame)), None)
    except Exception:  # the broker is about to say what is wrong with it
        return None
