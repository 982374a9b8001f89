"""Walking through one segment file, block by block, telling torn from corrupt.

What is not readable is copied to a ``quarantine-…`` file before anything else happens; nothing is deleted. A damaged
block with a whole one after it is corruption: its entries are named and the walk goes on after it. A damaged end
with nothing after it is what a crash leaves of a write whose success was never reported.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Final, NamedTuple

from magnetar.storage.backends.journal_backend import JournalBackend, SegmentReader, is_full, segment_name
from magnetar.storage.log import judged_records, records
from magnetar.storage.log.segment import ExtentOffsets

log = logging.getLogger(__name__)

_WINDOW: Final = 4 << 20


class ScannedBlock(NamedTuple):
    """A whole block found in a segment."""

    offset: int
    sequence: int
    records: list[records.RawRecord]


class Border(NamedTuple):
    """What a segment says of the one before it."""

    length: int | None
    """How much of that was durable."""
    sequence: int | None
    """Where its own blocks begin, if the length cannot be read."""


class SegmentScan:
    """One pass over a segment. After iterating, ``length`` is where the last whole block ends."""

    def __init__(
        self,
        backend: JournalBackend | None,
        number: int,
        file: SegmentReader,
        limit: int | None = None,
        before: int | None = None,
        secret: int | None = None,
        *,
        begun: bool = False,
    ) -> None:
        """``backend`` keeps what is unreadable; None to only look.

        ``limit``: bytes known to have been durable. ``before``: blocks from this sequence on are void. ``secret``: the
        directory's, in case the segment's own header is damaged. ``begun``: the first block is known to have been
        durable.
        """
        self._backend = backend
        self._number = number
        self._file = file
        size = file.size()
        self._durable = limit
        self._before = before
        self._limit = size if limit is None else min(limit, size)
        self._begun = begun
        self.length = 0
        self.hollow = True
        """No whole block was found."""
        self.secret = secret
        self.sequence = -1
        """Sequence of the last whole block."""
        self.damage: list[str] = []
        """Descriptions of what was found unreadable."""
        self.kept_in_place = False
        """What is unreadable could not be copied: it must not be cut off."""
        self.torn: str | None = None
        """The torn end, in words."""
        self._window = b""
        self._window_at = 0

    @property
    def name(self) -> str:
        """The segment's name."""
        return segment_name(self._number)

    def header(self) -> records.SegmentHeader:
        """The segment's header. Raises RecordError."""
        return records.parse_segment_header(self._read(0, records.SEGMENT_HEADER_SIZE))

    def __iter__(self) -> Iterator[ScannedBlock]:
        at = records.SEGMENT_HEADER_SIZE
        self.length = min(at, self._limit)
        self._check_header()
        while at < self._limit:
            block, end = self._block(at)
            if block is not None:
                yield block
                at = self.length = end
                self.sequence = block.sequence
                self.hollow = False
                continue
            if end >= self._limit:
                break  # nothing but padding
            following = self._find_following(at)
            if following < 0:
                self._end(at)
                return
            self._corrupt(at, following)
            at = self.length = following
        if self._durable is not None and self._durable > self._limit:
            self._name(f"{self.name} ends at {self._limit} although {self._durable} bytes were durable")

    def _check_header(self) -> None:
        """Learn the secret; name damage."""
        try:
            found = self.header()
            if self.secret is None:
                self.secret = found.secret
            elif found.secret != self.secret:
                self._name(f"{self.name} belongs to another broker's directory")
            if found.number != self._number:
                self._name(f"{self.name} says that it is {segment_name(found.number)}")
        except records.RecordError as error:
            if self._limit > records.SEGMENT_HEADER_SIZE and self._find_following(records.SEGMENT_HEADER_SIZE, 0) >= 0:
                self._name(f"{self.name}: {error}; its blocks are read nevertheless")

    def _name(self, text: str) -> None:
        self.damage.append(text)
        log.error("%s", text)

    def strange(self, block: ScannedBlock, raw: records.RawRecord, error: records.RecordError) -> None:
        """Name a whole record that no broker writes, and keep its bytes: it is left out."""
        at = block.offset + raw.at
        end = at + records.RECORD_HEADER_SIZE + len(raw.body)
        name = self._quarantine("strange", at, end)
        self._name(
            f"{self.name}: the record at offset {at} has a checksum that matches and says what no "
            f"broker writes ({error}); it is left out, its bytes are kept in {name}"
        )

    def border(self) -> Border:
        """What it says of the segment before it."""
        try:
            return Border(self.header().previous_length, None)
        except records.RecordError:
            return Border(None, self.first_sequence())

    def first_sequence(self) -> int | None:
        """Sequence of the first whole block; None if there is none."""
        at = self._find_following(records.SEGMENT_HEADER_SIZE, 0)
        if at < 0:
            return None
        found = records.parse_block_header(self._read(at, records.BLOCK_HEADER_SIZE))
        return None if found is None else found.sequence

    def _read(self, at: int, size: int) -> bytes:
        try:
            return self._file.read(at, size)
        except OSError as error:
            text = f"{self.name} cannot be read from offset {at} on: {error.strerror or error}"
            raise OSError(error.errno, text) from error

    def _bytes(self, at: int, size: int) -> bytes:
        start = at - self._window_at
        if start < 0 or start + size > len(self._window):
            self._window = self._read(at, max(size, _WINDOW))
            self._window_at = at
            start = 0
        return self._window[start : start + size]

    def _block(self, at: int) -> tuple[ScannedBlock | None, int]:
        found, end = self._block_at(at)
        if found is not None:
            return found, end
        border = records.page_end(at)
        # padding fills a page: zeros that are known to be durable and end before are a block that was lost
        may_pad = self._durable is None or self._durable % records.PAGE == 0
        if may_pad and border >= self._limit and not any(self._bytes(at, self._limit - at)):
            return None, self._limit
        # what is between them does not matter: the sequences say that no block is missing
        following, end = self._block_at(border)
        if following is not None and following.sequence == self.sequence + 1:
            return following, end
        return None, at

    def _block_at(self, at: int) -> tuple[ScannedBlock | None, int]:
        header = records.parse_block_header(self._bytes(at, records.BLOCK_HEADER_SIZE))
        if header is None or header.sequence <= self.sequence or self._void(header.sequence):
            return None, at
        if self.secret is None:
            self.secret = header.secret
        elif header.secret != self.secret:
            return None, at
        size = records.BLOCK_HEADER_SIZE + header.length
        if at + size > self._limit:
            return None, at
        data = self._bytes(at, size)
        try:
            found = records.parse_block(data, 0, header)
        except records.RecordError:
            return None, at
        return ScannedBlock(at, header.sequence, found), at + size

    def _void(self, sequence: int) -> bool:
        return self._before is not None and sequence >= self._before

    def _find_following(self, at: int, start: int = 1) -> int:
        data = self._read(at, max(self._limit - at, 0))
        found = records.find_block(data, start, self.sequence, self.secret)
        while found >= 0:
            header = records.parse_block_header(data, found)
            if header is not None and not self._void(header.sequence):
                return at + found
            found = records.find_block(data, found + 1, self.sequence, self.secret)
        return -1

    def _corrupt(self, at: int, following: int) -> None:
        name = self._quarantine("corrupt", at, following)
        text = (
            f"{self.name} is corrupt from offset {at} to {following}: these bytes are kept in {name}; "
            "the entries in them cannot be read, everything else can"
        )
        self._name(text)

    def _end(self, at: int) -> None:
        """Nothing whole follows: a torn write, unless the next segment says that it was durable."""
        if self._durable is not None or (self._begun and self.hollow):
            self._corrupt(at, self._limit if self._durable is None else self._durable)
            return
        data = self._read(at, self._limit - at)
        data = data.rstrip(b"\0")  # some file systems leave zeros where a write was cut off
        if not data:
            return
        name = self._quarantine("torn", at, at + len(data))
        self.torn = (
            f"{self.name} ends with a write that was cut off (offset {at}, {len(data)} bytes): it "
            f"was never acknowledged; the bytes are kept in {name}"
        )
        log.warning("%s", self.torn)

    def _quarantine(self, why: str, start: int, stop: int) -> str:
        if self._backend is None:
            return "this file"
        stop = min(stop, self._limit)
        parts = (self._read(at, min(_WINDOW, stop - at)) for at in range(start, stop, _WINDOW))
        try:
            return self._backend.keep_aside(self._number, start, why, parts)
        except OSError as error:
            if not is_full(error):
                raise
            self.kept_in_place = True
            return "this file, for the disk is full"


def places_of(backend: JournalBackend, number: int) -> dict[tuple[int, int], ExtentOffsets]:
    """Places of all extents of a segment, by log and ledger, read from the segment itself (its index is damaged)."""
    found: dict[tuple[int, int], ExtentOffsets] = {}
    file = backend.open(number)
    try:
        for block in SegmentScan(backend, number, file):
            for raw in block.records:
                if raw.kind == records.RecordKind.EXTENT:
                    try:
                        head = judged_records.extent_of(raw)
                    except records.RecordError:
                        continue  # a read of it says so
                    places = found.setdefault((head.log, head.ledger), ExtentOffsets())
                    places.add(head.ordinal, block.offset + raw.at, records.RECORD_HEADER_SIZE + len(raw.body))
    finally:
        file.close()
    for places in found.values():
        places.sort()
    return found
