"""Walking through one segment file, block by block, telling torn from corrupt.

What is not readable is copied to a ``quarantine-…`` file before anything else happens; nothing is deleted. A damaged
block with a whole one behind it is corruption: its entries are named and the walk goes on behind it. A damaged end
with nothing behind it is what a crash leaves of a write that nobody was told had succeeded.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Final, NamedTuple

from magnetar.storage import records
from magnetar.storage.files import File, FileSystem
from magnetar.storage.segment import segment_name

log = logging.getLogger(__name__)

_WINDOW: Final = 4 << 20


class Block(NamedTuple):
    """A whole block found in a segment."""

    offset: int
    sequence: int
    records: list[records.RawRecord]


class SegmentScan:
    """One pass over a segment. After iterating, ``length`` is where the last whole block ends."""

    def __init__(self, files: FileSystem, number: int, file: File, limit: int | None = None) -> None:
        self._files = files
        self._number = number
        self._file = file
        size = file.size()
        self._limit = size if limit is None else min(limit, size)
        self.length = 0
        self.sequence = -1
        """Sequence of the last whole block."""
        self.damage: list[str] = []
        """What was found unreadable, in words."""
        self._window = b""
        self._window_at = 0

    def header(self) -> records.SegmentHeader:
        """The segment's header. Raises RecordError."""
        return records.parse_segment_header(self._file.read(0, records.SEGMENT_HEADER_SIZE))

    def __iter__(self) -> Iterator[Block]:
        at = records.SEGMENT_HEADER_SIZE
        self.length = min(at, self._limit)
        while at < self._limit:
            block, end = self._block(at)
            if block is not None:
                yield block
                at = self.length = end
                self.sequence = block.sequence
                continue
            following = self._find_following(at)
            if following < 0:
                self._torn(at)
                return
            self._corrupt(at, following)
            at = self.length = following

    def _bytes(self, at: int, size: int) -> bytes:
        start = at - self._window_at
        if start < 0 or start + size > len(self._window):
            self._window = self._file.read(at, max(size, _WINDOW))
            self._window_at = at
            start = 0
        return self._window[start : start + size]

    def _block(self, at: int) -> tuple[Block | None, int]:
        header = records.parse_block_header(self._bytes(at, records.BLOCK_HEADER_SIZE))
        if header is None or header.sequence <= self.sequence:
            return None, at
        size = records.BLOCK_HEADER_SIZE + header.length
        if at + size > self._limit:
            return None, at
        data = self._bytes(at, size)
        try:
            found = records.parse_block(data, 0, header)
        except records.RecordError:
            return None, at
        return Block(at, header.sequence, found), at + size

    def _find_following(self, at: int) -> int:
        data = self._file.read(at, self._limit - at)
        found = records.find_block(data, 1, self.sequence)
        return -1 if found < 0 else at + found

    def _corrupt(self, at: int, following: int) -> None:
        name = self._quarantine("corrupt", at, following)
        text = (
            f"{segment_name(self._number)} is corrupt from offset {at} to {following}: these bytes are kept in {name}; "
            "the entries in them cannot be read, everything else can"
        )
        self.damage.append(text)
        log.error("%s", text)

    def _torn(self, at: int) -> None:
        data = self._file.read(at, self._limit - at)
        if not data.strip(b"\0"):
            return
        name = self._quarantine("torn", at, self._limit)
        log.warning(
            "%s ends with a write that was cut off (offset %d, %d bytes): nobody was told that it had succeeded; "
            "the bytes are kept in %s", segment_name(self._number), at, len(data), name,
        )  # fmt: skip

    def _quarantine(self, why: str, start: int, stop: int) -> str:
        name = f"quarantine-{segment_name(self._number)}-{start:x}-{why}"
        copy = self._files.open(name, create=True)
        try:
            copy.truncate(0)
            for at in range(start, stop, _WINDOW):
                copy.append([self._file.read(at, min(_WINDOW, stop - at))])
            copy.sync()
        finally:
            copy.close()
        self._files.sync()
        return name
