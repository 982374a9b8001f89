"""Framing of the wire (rules of 1.1): sizes, magic numbers, checksum, and where one frame ends.

    simple frame    [u32 total][u32 command size][BaseCommand]
    payload frame   [u32 total][u32 command size][BaseCommand][entry]           SEND and MESSAGE only
    entry           [u16 0x0e01][u32 crc32c][u32 metadata size][MessageMetadata][payload]

All numbers are big-endian; `total` does not count itself. The checksum covers everything after it. On SEND the magic
and checksum may be missing (rule 1.1.4); on MESSAGE `[u16 0x0e02][u32 size][BrokerEntryMetadata]` may stand before the
entry (rule 1.1.6), outside the checksum.
"""

from __future__ import annotations

import struct
from typing import Final

from crc32c import crc32c

from magnetar.model.errors import ProtocolError

MAX_MESSAGE_SIZE: Final = 5 * 1024 * 1024
FRAME_PADDING: Final = 10 * 1024
MAX_FRAME_SIZE: Final = MAX_MESSAGE_SIZE + FRAME_PADDING
"""5,253,120 bytes with the size field (rule 1.1.7)."""

CHECKSUM_MAGIC: Final = 0x0E01
BROKER_METADATA_MAGIC: Final = 0x0E02
ENTRY_HEADER_SIZE: Final = 10
"""Magic, checksum and metadata size of an entry."""

_VIEW_FROM: Final = 32 << 10
LARGE_FROM: Final = 32 << 10
"""Bytes of a frame from which copying its entry takes longer than all else that is done to read it."""
_SHORT_COMMAND: Final = 1024
"""Bytes of a SEND without its entry, at most, for the entry to be cut out by itself; others are longer than usual."""
_SEND_BEGINS: Final = 0x0806
_KNOWN_FROM: Final = 10
"""Bytes of a frame that tell its size, that of its command, and its type."""

_SIZE = struct.Struct(">I")
_SIZES = struct.Struct(">II")
_CHECKSUM = struct.Struct(">HI")
_CHECKSUM_BEGINS: Final = CHECKSUM_MAGIC.to_bytes(2, "big")

read_size = _SIZE.unpack_from
_read_head = struct.Struct(">IIH").unpack_from
"""The sizes of a frame and of its command, and how the command begins."""


def command_frame(command: bytes, payload_size: int = 0) -> bytes:
    """Return both sizes and the command; ``payload_size`` bytes of entry are to follow."""
    return _SIZES.pack(4 + len(command) + payload_size, len(command)) + command


def with_checksum(body: bytes, payload: bytes | memoryview = b"") -> bytes:
    """Return the entry whose metadata size, metadata and payload are ``body`` and ``payload`` together."""
    return b"".join((_CHECKSUM.pack(CHECKSUM_MAGIC, crc32c(payload, crc32c(body))), body, payload))


def checksum_holds(entry: bytes) -> bool:
    """Whether an entry still is what its producer sent."""
    if len(entry) < ENTRY_HEADER_SIZE:
        return False
    magic, expected = _CHECKSUM.unpack_from(entry, 0)
    return bool(magic == CHECKSUM_MAGIC and crc32c(memoryview(entry)[6:]) == expected)


def without_checksum(entry: bytes) -> bytes:
    """Return an entry as clients take it that know of no checksum: from its metadata size on."""
    return entry[_CHECKSUM.size :] if entry.startswith(_CHECKSUM_BEGINS) else entry


Walkable = tuple[bytes, int, bytes]
"""A buffer, where a frame begins in it, and nothing; or a large SEND: its frame up to the entry, 0, and the entry."""


class FrameSplitter:
    """Turns chunks off a socket into buffers that begin at a frame; owned by one connection.

    ``feed`` gives what can be walked now: the very object it was given, and before that, if a frame was left
    unfinished, that frame alone. The caller walks over the frames and hands back the rest with ``keep``. Chunks of a
    frame that is not complete yet are collected and joined once, and only they: a frame of n bytes costs n bytes of
    copying however small the chunks are, and the frames after it cost none. The entry of a large SEND is joined, or cut
    out of a view, by itself, so that it is copied once and not again when it is read (docs/decisions/081).
    """

    __slots__ = ("_chunks", "_held", "_missing", "max_frame_size", "seen_large")

    def __init__(self, max_frame_size: int = MAX_FRAME_SIZE) -> None:
        self.max_frame_size = max_frame_size
        self.seen_large = False
        """Whether a large SEND ever came in several chunks."""
        self._chunks: list[bytes | memoryview] = []
        self._held = 0
        self._missing = 4

    @property
    def held(self) -> int:
        """Bytes of an unfinished frame that wait here."""
        return self._held

    @property
    def missing(self) -> int:
        """Bytes that its frame lacks, as far as is known; meaningless while nothing is held."""
        return self._missing - self._held

    def feed(self, data: bytes | memoryview) -> list[Walkable]:
        """Return buffers to walk now, each with the offset of its first frame; none while that frame is incomplete.

        ``data`` may be a view of memory that is used again: nothing of it is kept.
        """
        held = self._held
        if not held:
            return [(data, 0, b"")] if isinstance(data, bytes) else self._cut(data)
        needed = self._missing - held
        if len(data) <= needed or self._missing == 4:
            # the last piece of the frame, or not even its size is known yet
            self._chunks.append(bytes(data))
            self._held = held + len(data)
            if len(data) < needed:
                return []
            return [self._take()]
        self._chunks.append(memoryview(data)[:needed])
        self._held = self._missing
        first = self._take()
        if isinstance(data, bytes):
            return [first, (data, needed, b"")]
        return [first, *self._cut(data[needed:])]

    def _take(self) -> Walkable:
        chunks, size = self._chunks, self._held
        self._chunks = []
        self._held = 0
        first = chunks[0]
        # where its size was not known, the first chunk is shorter than that
        if size >= LARGE_FROM and len(first) >= _KNOWN_FROM:
            _, command_size, begins = _read_head(first)
            stop = 8 + command_size
            if begins == _SEND_BEGINS and command_size <= _SHORT_COMMAND and stop <= len(first):
                self.seen_large = True
                chunks[0] = memoryview(first)[stop:]
                return bytes(first[:stop]), 0, b"".join(chunks)
        return b"".join(chunks), 0, b""

    def _cut(self, view: memoryview) -> list[Walkable]:
        """Copy what is in a view: each entry of the large SENDs that it begins with by itself, and all that follows."""
        cut: list[Walkable] = []
        at, size, most = 0, len(view), self.max_frame_size
        while size - at >= _KNOWN_FROM:
            total, command_size, begins = _read_head(view, at)
            end, stop = at + 4 + total, at + 8 + command_size
            if begins != _SEND_BEGINS or not LARGE_FROM <= end - at <= most or command_size > _SHORT_COMMAND:
                break
            if end > size:
                self._chunks.append(bytes(view[at:]))
                self._held, self._missing = size - at, end - at
                return cut
            cut.append((bytes(view[at:stop]), 0, bytes(view[stop:end])))
            at = end
        if at < size:
            cut.append((bytes(view[at:]), 0, b""))
        return cut

    def take_held(self) -> bytes:
        """Return what waits here, for a caller that reads on in another way."""
        chunks, self._chunks = self._chunks, []
        self._held, self._missing = 0, 4
        return b"".join(chunks)

    def keep(self, buffer: bytes, position: int) -> None:
        """Hold what is left of ``buffer`` from ``position`` on, less than one whole frame."""
        # a view spares a copy but keeps the whole buffer: not for a few bytes, nor for a small part of it
        size = len(buffer) - position
        small = size < _VIEW_FROM or size < len(buffer) >> 3
        rest = buffer[position:] if small else memoryview(buffer)[position:]
        self._held = size
        if rest:
            self._chunks.append(rest)
            self._missing = 4
            if len(rest) >= 4:
                total: int = read_size(rest, 0)[0]
                check_total(total, self.max_frame_size)
                self._missing += total


def check_total(total: int, max_frame_size: int) -> None:
    """Refuse a frame that is too large or cannot hold its command's size (rule 1.1.7)."""
    if total + 4 > max_frame_size:
        raise ProtocolError(f"a frame of {total + 4} bytes is larger than the {max_frame_size} allowed")
    if total < 4:
        raise ProtocolError(f"a frame of {total + 4} bytes holds no command")
