"""A set of ordinals that answers in stretches: one bit each, in chunks of 4,096 (at most 560 bytes per chunk)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

_BITS: Final = 12
_CHUNK: Final = 1 << _BITS
_MASK: Final = _CHUNK - 1
_FULL: Final = (1 << _CHUNK) - 1


class OrdinalSet:
    """Ordinals are added and removed one by one; a stretch of a million is passed over in one call."""

    __slots__ = ("_chunks", "_size")

    def __init__(self) -> None:
        self._chunks: dict[int, bytearray] = {}
        self._size = 0

    def __len__(self) -> int:
        return self._size

    @property
    def memory_bytes(self) -> int:
        """The memory that the set takes, about."""
        return len(self._chunks) * ((_CHUNK >> 3) + 160)

    def add(self, ordinal: int) -> None:
        chunk = self._chunks.get(ordinal >> _BITS)
        if chunk is None:
            chunk = self._chunks[ordinal >> _BITS] = bytearray(_CHUNK >> 3)
        at, bit = (ordinal & _MASK) >> 3, 1 << (ordinal & 7)
        if not chunk[at] & bit:
            chunk[at] |= bit
            self._size += 1

    def discard(self, ordinal: int) -> bool:
        """Remove one ordinal; returns whether it was a member."""
        chunk = self._chunks.get(ordinal >> _BITS)
        at, bit = (ordinal & _MASK) >> 3, 1 << (ordinal & 7)
        if chunk is None or not chunk[at] & bit:
            return False
        chunk[at] ^= bit
        self._size -= 1
        if not chunk[at] and not any(chunk):
            del self._chunks[ordinal >> _BITS]
        return True

    def discard_below(self, ordinal: int) -> None:
        """Remove all members below ``ordinal``."""
        border = ordinal >> _BITS
        for number in [n for n in self._chunks if n <= border]:
            old = int.from_bytes(self._chunks[number], "little")
            keep = 0 if number < border else old & (-1 << (ordinal & _MASK)) & _FULL
            self._size -= old.bit_count() - keep.bit_count()
            if keep:
                self._chunks[number] = bytearray(keep.to_bytes(_CHUNK >> 3, "little"))
            else:
                del self._chunks[number]

    def __contains__(self, ordinal: int) -> bool:
        chunk = self._chunks.get(ordinal >> _BITS)
        return chunk is not None and chunk[(ordinal & _MASK) >> 3] >> (ordinal & 7) & 1 == 1

    def next_out(self, start: int, stop: int) -> int:
        """The first ordinal of ``[start, stop)`` that is no member, or ``stop``."""
        while start < stop and (chunk := self._chunks.get(start >> _BITS)) is not None:
            missing = ~int.from_bytes(chunk, "little") & _FULL & (-1 << (start & _MASK))
            base = start & ~_MASK
            if missing:
                return min(base + (missing & -missing).bit_length() - 1, stop)
            start = base + _CHUNK
        return min(start, stop)

    def next_in(self, start: int, stop: int) -> int:
        """The first member in ``[start, stop)``, or ``stop``."""
        if not self._size or start >= stop:
            return stop
        first, last = start >> _BITS, (stop - 1) >> _BITS
        dense = last - first <= 2 * len(self._chunks)
        numbers = range(first, last + 1) if dense else sorted(n for n in self._chunks if first <= n <= last)
        for number in numbers:
            chunk = self._chunks.get(number)
            if chunk is None:
                continue
            base = number << _BITS
            bits = int.from_bytes(chunk, "little") & (-1 << max(start - base, 0))
            if bits:
                return min(base + (bits & -bits).bit_length() - 1, stop)
        return stop

    def count(self, start: int, stop: int) -> int:
        """The number of members in ``[start, stop)``."""
        if start >= stop:
            return 0
        first, last = start >> _BITS, (stop - 1) >> _BITS
        total = 0
        numbers = range(first, last + 1) if last - first <= len(self._chunks) else self._chunks
        for number in numbers:
            chunk = self._chunks.get(number)
            if chunk is not None:
                low, high = max(start - (number << _BITS), 0), min(stop - (number << _BITS), _CHUNK)
                if low < high:
                    total += (int.from_bytes(chunk, "little") >> low & ((1 << (high - low)) - 1)).bit_count()
        return total

    def __iter__(self) -> Iterator[int]:
        """All members, ascending."""
        for number in sorted(self._chunks):
            bits = int.from_bytes(self._chunks[number], "little")
            while bits:
                yield (number << _BITS) + (bits & -bits).bit_length() - 1
                bits &= bits - 1

    def check(self) -> None:
        """Assert the links between the fields; for tests."""
        assert self._size == sum(int.from_bytes(chunk, "little").bit_count() for chunk in self._chunks.values())
        assert all(any(chunk) for chunk in self._chunks.values())
