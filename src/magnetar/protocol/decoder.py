"""Bytes off a socket to typed commands.

SEND, ACK and MESSAGE, of which there are many, are read by hand (`hot_commands`, and `alike_commands` for SENDs and
ACKs that are alike), every other command by the codec.

One call decodes so much and no more, whatever was sent: what is left waits until it is asked for (``more``). A broker
does so once per turn of a connection (docs/decisions/018); a client, which trusts the other side, asks until it is
done.
"""

from __future__ import annotations

import struct
from typing import Final

from magnetar.model.errors import ProtocolError
from magnetar.protocol import codec
from magnetar.protocol.alike_commands.runs import read_ack_ids
from magnetar.protocol.alike_commands.turns import read_alike
from magnetar.protocol.commands import (
    Command,
    CommandMessage,
    CommandSend,
    UnparsedCommand,
)
from magnetar.protocol.frames import MAX_FRAME_SIZE, FrameSplitter, Walkable, check_total, read_size
from magnetar.protocol.hot_commands import read_ack, read_large_send, read_message, read_send

SEND: Final = 6
MESSAGE: Final = 9
ACK: Final = 10
REDELIVER: Final = 20

SLICE_FRAMES: Final = 4096
"""Frames as large as the first that one call decodes, some milliseconds' work with all that follows from them."""
SLICE_BYTES: Final = 256 << 10
"""Bytes of frames that one call decodes at most, and the rest of the frame that stands there; as much as one read."""
SLICE_COMMANDS: Final = 1024
"""Commands through the codec that one call decodes; a longer one counts for several, as does an ACK of several ids."""
UNPARSED_FROM: Final = 16 << 10
"""Bytes of an ACK or REDELIVER (1,400 ids) from which a broker reads it in pieces."""
SEVERAL_IDS_FROM: Final = 48
"""Bytes of an ACK above which it has more than one id: the longest one has 46."""
ALIKE_MIN: Final = 4
"""Commands alike in a row, as large as the first, from which the look for them takes less time than it saves."""
VAIN_MAX: Final = 8
"""Looks in vain in a row that count. After the third one command is read alone before the next look, then twice as many
each time, 32 at last."""
COMMAND_MAX: Final = (1 << 20) + (64 << 10)
"""Bytes of the largest command, its entry aside: the largest schema, and what protobuf reads in some 15 ms."""

_read_sizes = struct.Struct(">II").unpack_from


class MalformedBytesError(ProtocolError):
    """The peer sent what cannot be read; ``decoded`` are the commands before it in the same bytes."""

    def __init__(self, reason: str, decoded: list[Command]) -> None:
        super().__init__(reason)
        self.decoded = decoded


class Decoder:
    """Decodes one connection's incoming bytes, in both roles. After an error it stays broken."""

    __slots__ = ("_broken", "_from_client", "_splitter", "_walkable", "slice_bytes")

    def __init__(self, max_frame_size: int = MAX_FRAME_SIZE, *, from_client: bool = False) -> None:
        """``from_client``: long lists of ids come as :class:`UnparsedCommand` and nothing else may be long, and SENDs
        and ACKs that are alike come as :class:`SendRun` and :class:`AckRun`."""
        self._splitter = FrameSplitter(max_frame_size)
        self._from_client = from_client
        self.slice_bytes = SLICE_BYTES
        """What :data:`SLICE_BYTES` is for this connection."""
        self._walkable: list[Walkable] = []
        """What the splitter gave, the next one at the end; chunks after them, as they came, have the offset -1.

        They are few: nothing is read while some wait. An empty deque would take 760 bytes.
        """
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
    def seen_large(self) -> bool:
        """Whether a large SEND ever came in several pieces."""
        return self._splitter.seen_large

    @property
    def waiting(self) -> bool:
        """Whether there are whole frames that were not asked for yet."""
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
        """Return every command completed by ``data``; MalformedBytesError, nothing else, if one cannot be read."""
        decoded = self.feed_slice(data)
        while self._walkable:
            try:
                decoded += self.more()
            except MalformedBytesError as error:
                error.decoded[:0] = decoded
                raise
        return decoded

    def feed_slice(self, data: bytes | memoryview) -> list[Command]:
        """Return the first of the commands completed by ``data``; ``waiting`` says whether there are more.

        ``data`` may be a view of memory that is used again afterwards.
        """
        if self._walkable:
            self.later(data)
        else:
            self._walkable += reversed(self._splitter.feed(data))
        return self.more()

    def later(self, data: bytes | memoryview) -> None:
        """Keep bytes for the next call of :meth:`more`."""
        self._walkable.insert(0, (bytes(data), -1, b""))

    def more(self) -> list[Command]:
        """Return the next slice of what waits."""
        if self._broken is not None:
            raise MalformedBytesError(self._broken, [])
        decoded: list[Command] = []
        walkable = self._walkable
        room = self.slice_bytes
        try:
            while walkable and room > 0:
                buffer, position, entry = walkable.pop()
                if entry:
                    decoded.append(read_large_send(buffer, entry))
                    room -= len(entry)
                    continue
                if position < 0:
                    # none before it is left: now it is known where its first frame begins
                    walkable += reversed(self._splitter.feed(buffer))
                    continue
                position = self._walk(buffer, position, room, decoded)
                if position >= 0:
                    walkable.append((buffer, position, b""))
                    break
        except ProtocolError as error:
            self._broken = str(error)
            walkable.clear()
            raise MalformedBytesError(self._broken, decoded) from None
        return decoded

    def _walk(self, buffer: bytes, position: int, room: int, decoded: list[Command]) -> int:
        """Decode one slice of ``room`` bytes; returns where the next one begins, or -1 at the end."""
        append = decoded.append
        limit = self._splitter.max_frame_size
        long = UNPARSED_FROM if self._from_client else limit
        size = len(buffer)
        last = size - 8  # where the last frame may begin at most
        enough = last
        if position < last:
            enough = min(last, position + min(SLICE_FRAMES * (read_size(buffer, position)[0] + 4), room))
        run_last = min(enough, size - 14) if self._from_client else -1
        credit = SLICE_COMMANDS
        alone = vain = 0
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
            if end <= run_last and kind in (SEND, ACK):
                if alone:
                    alone -= 1
                else:
                    after = read_alike(buffer, start - 8, end, enough, limit, decoded)
                    paid = after - end >= (ALIKE_MIN - 1) * (end - start)
                    vain = 0 if paid else min(vain + 1, VAIN_MAX)
                    alone = (1 << vain) >> 3
                    if after >= end:
                        position = after
                        continue
            if command_size > long:
                append(_long(buffer, start, stop, end, kind))
                credit -= command_size >> 10
            elif kind == SEND:
                append(read_send(buffer, start, stop, end))
                continue
            elif kind == ACK:
                several = None
                if command_size > SEVERAL_IDS_FROM and self._from_client:
                    credit -= command_size >> 5  # as long as the ids of so many bytes may take
                    several = read_ack_ids(buffer, start, stop)
                if (ack := several or read_ack(buffer, start + 2, stop)) is not None:
                    append(ack)
                    if credit > 0:
                        continue
                else:
                    append(_plain(buffer[start:stop], limited=False))
            elif kind == MESSAGE:
                append(read_message(buffer, start, stop, end))
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
    """Read a command from a client that would hold the loop if it were read like any other."""
    if kind in (ACK, REDELIVER):
        return UnparsedCommand(kind, buffer[start:stop])
    size = stop - start
    if size > COMMAND_MAX:
        raise ProtocolError(f"a command of {size} bytes, at most {COMMAND_MAX} are allowed")
    if kind == SEND:
        return read_send(buffer, start, stop, end)
    if kind == MESSAGE:
        return read_message(buffer, start, stop, end)
    return _plain(buffer[start:stop], limited=True)


def _plain(body: bytes, *, limited: bool) -> Command:
    command = codec.decode(body, limited=limited)
    if isinstance(command, CommandSend | CommandMessage):
        raise ProtocolError("a command with an entry, whose type does not stand first or stands there twice")
    return command
