"""Ordinals as bits: one each, in chunks of 4,096 (at most 560 bytes per chunk); stretches are passed in one call. Pure.

What is acknowledged (:mod:`magnetar.storage.ledgers.ranges`) and what is delayed
(:mod:`magnetar.broker.delivery.ordinal_set`) is kept this way.
"""

from __future__ import annotations

from typing import Final

CHUNK_BITS: Final = 12
CHUNK: Final = 1 << CHUNK_BITS
CHUNK_MASK: Final = CHUNK - 1
_FULL: Final = (1 << CHUNK) - 1


class OrdinalBitmap:
    """The bits and how many are set; subclasses say what they mean."""

    __slots__ = ("_chunks", "size")

    def __init__(self) -> None:
        self._chunks: dict[int, bytearray] = {}
        self.size = 0
        """How many bits are set."""

    def __contains__(self, ordinal: int) -> bool:
        chunk = self._chunks.get(ordinal >> CHUNK_BITS)
        return chunk is not None and chunk[(ordinal & CHUNK_MASK) >> 3] >> (ordinal & 7) & 1 == 1

    def next_clear(self, start: int, stop: int) -> int:
        """The first ordinal of ``[start, stop)`` whose bit is not set, or ``stop``."""
        while start < stop and (chunk := self._chunks.get(start >> CHUNK_BITS)) is not None:
            missing = ~int.from_bytes(chunk, "little") & _FULL & (-1 << (start & CHUNK_MASK))
            base = start & ~CHUNK_MASK
            if missing:
                return min(base + (missing & -missing).bit_length() - 1, stop)
            start = base + CHUNK
        return min(start, stop)

    def last_clear(self, start: int, stop: int) -> int:
        """The last ordinal of ``[start, stop)`` whose bit is not set, or ``start - 1``."""
        at = stop - 1
        while at >= start and (chunk := self._chunks.get(at >> CHUNK_BITS)) is not None:
            missing = ~int.from_bytes(chunk, "little") & ((2 << (at & CHUNK_MASK)) - 1)
            base = at & ~CHUNK_MASK
            if missing:
                return max(base + missing.bit_length() - 1, start - 1)
            at = base - 1
        return max(at, start - 1)

    def next_set(self, start: int, stop: int) -> int:
        """The first ordinal of ``[start, stop)`` whose bit is set, or ``stop``."""
        if not self.size or start >= stop:
            return stop
        first, last = start >> CHUNK_BITS, (stop - 1) >> CHUNK_BITS
        dense = last - first <= 2 * len(self._chunks)
        numbers = range(first, last + 1) if dense else sorted(n for n in self._chunks if first <= n <= last)
        for number in numbers:
            chunk = self._chunks.get(number)
            if chunk is None:
                continue
            base = number << CHUNK_BITS
            bits = int.from_bytes(chunk, "little") & (-1 << max(start - base, 0))
            if bits:
                return min(base + (bits & -bits).bit_length() - 1, stop)
        return stop

    def count(self, start: int, stop: int) -> int:
        """How many bits of ``[start, stop)`` are set."""
        if start >= stop or not self.size:
            return 0
        first, last = start >> CHUNK_BITS, (stop - 1) >> CHUNK_BITS
        total = 0
        for number in range(first, last + 1) if last - first <= len(self._chunks) else self._chunks:
            chunk = self._chunks.get(number)
            if chunk is not None:
                low, high = max(start - (number << CHUNK_BITS), 0), min(stop - (number << CHUNK_BITS), CHUNK)
                if low < high:
                    total += (int.from_bytes(chunk, "little") >> low & ((1 << (high - low)) - 1)).bit_count()
        return total

    def count_common(self, other: OrdinalBitmap, start: int, stop: int) -> int:
        """How many bits of ``[start, stop)`` are set here and in ``other``."""
        mine, others = self._chunks, other._chunks
        total = 0
        for number in mine if len(mine) <= len(others) else others:
            first, second = mine.get(number), others.get(number)
            low, high = max(start - (number << CHUNK_BITS), 0), min(stop - (number << CHUNK_BITS), CHUNK)
            if first is not None and second is not None and low < high:
                bits = int.from_bytes(first, "little") & int.from_bytes(second, "little")
                total += (bits >> low & ((1 << (high - low)) - 1)).bit_count()
        return total

    def stretches(self) -> int:
        """How many stretches of set bits there are, without going through them."""
        total = 0
        for number, chunk in self._chunks.items():
            bits, before = int.from_bytes(chunk, "little"), self._chunks.get(number - 1)
            goes_on = 0 if before is None else before[-1] >> 7
            total += (bits & ~(bits << 1 | goes_on)).bit_count()
        return total

    def clear_below(self, ordinal: int) -> None:
        """Clear the bits below ``ordinal``."""
        if not self.size:
            return
        border = ordinal >> CHUNK_BITS
        for number in [n for n in self._chunks if n <= border]:
            old = int.from_bytes(self._chunks[number], "little")
            keep = 0 if number < border else old & (-1 << (ordinal & CHUNK_MASK)) & _FULL
            self.size -= old.bit_count() - keep.bit_count()
            if keep:
                self._chunks[number] = bytearray(keep.to_bytes(CHUNK >> 3, "little"))
            else:
                del self._chunks[number]

    def check(self) -> None:
        """Assert the links between the fields; for tests."""
        assert self.size == sum(int.from_bytes(chunk, "little").bit_count() for chunk in self._chunks.values())
        assert all(any(chunk) for chunk in self._chunks.values())
