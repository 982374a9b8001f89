"""Which ordinals of a log are acknowledged: one low-water mark and a sparse bitmap above it. Pure.

Theory of operation. Everything up to ``mark_delete`` is acknowledged. Above it, single acknowledgments set bits in
chunks of 4,096; whenever the bit just above the mark is set, the mark moves over all that follow. Nothing is capped:
a mark stuck under 100 million later acknowledgments costs 12.5 MB, 100,000 scattered holes at most 50 MB and in
practice (holes near each other) far less (rule 4.3.4 names the cap that Apache Pulsar has).
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from typing_extensions import override

from magnetar.model.ordinal_bitmap import CHUNK, CHUNK_BITS, CHUNK_MASK, OrdinalBitmap

_HEAD: Final = struct.Struct("<qI")
_NUMBER: Final = struct.Struct("<Q")
_NO_END: Final = 1 << 62
_MANY: Final = 32
"""Acknowledgements for which it pays to make one number of them."""
_ONE: Final = ord("1")
_FULL: Final = (1 << CHUNK) - 1
_WHOLE: Final = bytearray(b"\xff" * (CHUNK >> 3))
"""The one chunk of which all is acknowledged: bits are only set in place, so nothing changes it for the others."""


class AckedSet(OrdinalBitmap):
    """Acknowledged ordinals; one owner, no locking.

    ``mark_delete`` is the highest ordinal below which (inclusive) nothing is missing; -1 when nothing is.
    """

    __slots__ = ("mark_delete",)

    def __init__(self, mark_delete: int = -1) -> None:
        super().__init__()
        self.mark_delete = mark_delete

    @property
    def above(self) -> int:
        """How many ordinals above the mark are acknowledged."""
        return self.size

    def add(self, ordinal: int) -> bool:
        """Acknowledge one ordinal; False if it was acknowledged already."""
        mark = self.mark_delete
        if ordinal == mark + 1:
            self.mark_delete = ordinal
            if self.size:
                self._advance()
            return True
        if ordinal <= mark:
            return False
        chunk = self._chunks.get(ordinal >> CHUNK_BITS)
        if chunk is None:
            chunk = self._chunks[ordinal >> CHUNK_BITS] = bytearray(CHUNK >> 3)
        at, bit = (ordinal & CHUNK_MASK) >> 3, 1 << (ordinal & 7)
        if chunk[at] & bit:
            return False
        chunk[at] |= bit
        self.size += 1
        return True

    def add_all(self, ordinals: Sequence[int], end: int) -> Sequence[int]:
        """Acknowledge those below ``end``; returns the ones that were not acknowledged before.

        The mark moves once, after the last of them: to move it over what was acknowledged above it, a chunk is looked
        at.
        """
        mark, count = self.mark_delete, len(ordinals)
        if not self.size and count and ordinals[0] == mark + 1 and mark + count < end:
            last = mark + count
            if ordinals[-1] == last and list(ordinals) == list(range(mark + 1, last + 1)):
                self.mark_delete = last
                return ordinals
        if count < _MANY or not self._add_many(ordinals, end):
            ordinals = self._add_each(ordinals, end)
        if mark + 1 in self:
            self._advance()
        return ordinals

    def _add_each(self, ordinals: Sequence[int], end: int) -> list[int]:
        """Set the bits of those between the mark and ``end``; returns the ones that were not set."""
        fresh: list[int] = []
        chunks, mark, number, chunk = self._chunks, self.mark_delete, -1, bytearray()
        for ordinal in ordinals:
            if ordinal <= mark or ordinal >= end:
                continue
            if ordinal >> CHUNK_BITS != number:
                number = ordinal >> CHUNK_BITS
                chunk = chunks.get(number) or chunks.setdefault(number, bytearray(CHUNK >> 3))
            at, bit = (ordinal & CHUNK_MASK) >> 3, 1 << (ordinal & 7)
            if not chunk[at] & bit:
                chunk[at] |= bit
                fresh.append(ordinal)
        self.size += len(fresh)
        return fresh

    def _add_many(self, ordinals: Sequence[int], end: int) -> bool:
        """Set the bits of all, a chunk at a time; False, and nothing has changed, unless all are new and near by."""
        low, high = min(ordinals), max(ordinals)
        if low <= self.mark_delete or high >= end or high - low >= CHUNK:
            return False
        figures = bytearray(b"0") * (high - low + 1)
        for ordinal in ordinals:
            figures[ordinal - low] = _ONE
        bits = int(figures[::-1], 2) << (low & CHUNK_MASK)
        number = low >> CHUNK_BITS
        parts = [(number, bits & _FULL), (number + 1, bits >> CHUNK)]
        before = [int.from_bytes(self._chunks.get(number, b""), "little") for number, _ in parts]
        if bits.bit_count() < len(ordinals) or any(old & new for old, (_, new) in zip(before, parts, strict=True)):
            return False
        for old, (number, new) in zip(before, parts, strict=True):
            if new:
                self._chunks[number] = bytearray((old | new).to_bytes(CHUNK >> 3, "little"))
        self.size += len(ordinals)
        return True

    def add_until(self, ordinal: int) -> bool:
        """Acknowledge everything up to ``ordinal``; False if that changes nothing."""
        if ordinal <= self.mark_delete:
            return False
        self.clear_below(ordinal + 1)
        self.mark_delete = ordinal
        if self.size:
            self._advance()
        return True

    def add_range(self, start: int, stop: int) -> None:
        """Acknowledge ``start <= ordinal < stop``."""
        if start <= self.mark_delete + 1:
            self.add_until(stop - 1)
            return
        for number in range(start >> CHUNK_BITS, ((stop - 1) >> CHUNK_BITS) + 1):
            base = number << CHUNK_BITS
            low, high = max(start - base, 0), min(stop - base, CHUNK)
            if high - low == CHUNK:
                found = self._chunks.get(number)
                self.size += CHUNK - (0 if found is None else int.from_bytes(found, "little").bit_count())
                self._chunks[number] = _WHOLE
                continue
            bits = ((1 << (high - low)) - 1) << low
            old = int.from_bytes(self._chunks.get(number, b""), "little")
            self.size += (bits & ~old).bit_count()
            self._chunks[number] = bytearray((old | bits).to_bytes(CHUNK >> 3, "little"))

    @override
    def __contains__(self, ordinal: int) -> bool:
        if ordinal <= self.mark_delete:
            return True
        if not self.size:
            return False
        chunk = self._chunks.get(ordinal >> CHUNK_BITS)
        return chunk is not None and chunk[(ordinal & CHUNK_MASK) >> 3] >> (ordinal & 7) & 1 == 1

    def next_missing(self, ordinal: int) -> int:
        """The smallest ordinal >= ``ordinal`` that is not acknowledged."""
        if ordinal <= self.mark_delete:
            ordinal = self.mark_delete + 1
        return self.next_clear(ordinal, _NO_END) if self.size else ordinal

    def next_present(self, ordinal: int, stop: int) -> int:
        """The smallest acknowledged ordinal in ``[ordinal, stop)``, or ``stop``."""
        if ordinal <= self.mark_delete:
            return min(ordinal, stop)
        return self.next_set(ordinal, stop)

    def ranges(self, at: int = 0) -> Iterator[tuple[int, int]]:
        """The acknowledged ranges above the mark, from ``at`` on: ascending, half-open, not touching each other."""
        start = stop = -1
        first = at >> CHUNK_BITS
        for number in sorted(self._chunks if not at else [number for number in self._chunks if number >= first]):
            base = number << CHUNK_BITS
            bits = int.from_bytes(self._chunks[number], "little")
            if base < at:
                bits = bits >> (at - base) << (at - base)
            offset = 0
            while bits:
                skip = (bits & -bits).bit_length() - 1
                bits >>= skip
                run = (~bits & (bits + 1)).bit_length() - 1
                bits >>= run
                low, high = base + offset + skip, base + offset + skip + run
                offset += skip + run
                if low == stop:
                    stop = high
                    continue
                if stop > start:
                    yield start, stop
                start, stop = low, high
        if stop > start:
            yield start, stop

    def replace(self, mark_delete: int, ranges: Iterable[tuple[int, int]] = ()) -> None:
        """Forget everything and start from this state (seek, recovery)."""
        self.mark_delete = mark_delete
        self.size = 0
        self._chunks = {}
        for start, stop in ranges:
            self.add_range(start, stop)

    def dump(self) -> bytes:
        """Everything, as it lies in memory: for sets that are kept whole and may hold millions of single ordinals."""
        chunks = sorted(self._chunks.items())
        return _HEAD.pack(self.mark_delete, len(chunks)) + b"".join(_NUMBER.pack(n) + chunk for n, chunk in chunks)

    def load(self, data: bytes) -> None:
        """The inverse, instead of whatever was there."""
        self.mark_delete, count = _HEAD.unpack_from(data)
        self._chunks, self.size = {}, 0
        size = _NUMBER.size + (CHUNK >> 3)
        for at in range(_HEAD.size, _HEAD.size + count * size, size):
            (number,) = _NUMBER.unpack_from(data, at)
            self._chunks[number] = chunk = bytearray(data[at + _NUMBER.size : at + size])
            self.size += int.from_bytes(chunk, "little").bit_count()

    def missing_in(self, start: int, stop: int) -> int:
        """How many ordinals of ``[start, stop)`` are not acknowledged."""
        start = max(start, self.mark_delete + 1)
        if stop <= start:
            return 0
        return stop - start - self.count(start, stop)

    def _advance(self) -> None:
        target = self.next_missing(self.mark_delete + 1) - 1
        if target > self.mark_delete:
            self.clear_below(target + 1)
            self.mark_delete = target

    @override
    def check(self) -> None:
        """Assert the invariants; tests call it after every step."""
        super().check()
        assert self.mark_delete + 1 not in self
        for number, chunk in self._chunks.items():
            assert any(chunk), number
            assert ((number + 1) << CHUNK_BITS) > self.mark_delete


def coalesce(ordinals: Sequence[int]) -> list[tuple[int, int]]:
    """Single ordinals as half-open ranges, ascending, without repeats."""
    out: list[tuple[int, int]] = []
    start = stop = None
    for ordinal in sorted(set(ordinals)):
        if ordinal != stop:
            if start is not None and stop is not None:
                out.append((start, stop))
            start = ordinal
        stop = ordinal + 1
    if start is not None and stop is not None:
        out.append((start, stop))
    return out
