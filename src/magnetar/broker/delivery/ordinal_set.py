"""A set of ordinals that answers in stretches: one bit each, in chunks of 4,096 (at most 560 bytes per chunk)."""

from __future__ import annotations

from collections.abc import Iterator

from magnetar.model.ordinal_bitmap import CHUNK, CHUNK_BITS, CHUNK_MASK, OrdinalBitmap


class OrdinalSet(OrdinalBitmap):
    """Ordinals are added and removed one by one; a stretch of a million is passed over in one call."""

    __slots__ = ()

    def __len__(self) -> int:
        return self.size

    @property
    def memory_bytes(self) -> int:
        """The memory that the set takes, about."""
        return len(self._chunks) * ((CHUNK >> 3) + 160)

    def add(self, ordinal: int) -> None:
        chunk = self._chunks.get(ordinal >> CHUNK_BITS)
        if chunk is None:
            chunk = self._chunks[ordinal >> CHUNK_BITS] = bytearray(CHUNK >> 3)
        at, bit = (ordinal & CHUNK_MASK) >> 3, 1 << (ordinal & 7)
        if not chunk[at] & bit:
            chunk[at] |= bit
            self.size += 1

    def discard(self, ordinal: int) -> bool:
        """Remove one ordinal; returns whether it was a member."""
        chunk = self._chunks.get(ordinal >> CHUNK_BITS)
        at, bit = (ordinal & CHUNK_MASK) >> 3, 1 << (ordinal & 7)
        if chunk is None or not chunk[at] & bit:
            return False
        chunk[at] ^= bit
        self.size -= 1
        if not chunk[at] and not any(chunk):
            del self._chunks[ordinal >> CHUNK_BITS]
        return True

    def discard_below(self, ordinal: int) -> None:
        """Take out everything below ``ordinal``."""
        self.clear_below(ordinal)

    def __iter__(self) -> Iterator[int]:
        """All members, ascending."""
        for number in sorted(self._chunks):
            bits = int.from_bytes(self._chunks[number], "little")
            while bits:
                yield (number << CHUNK_BITS) + (bits & -bits).bit_length() - 1
                bits &= bits - 1
