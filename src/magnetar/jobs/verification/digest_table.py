"""Digests of many buckets at once: a table of sums that a kernel fills, no object per message.

The digest of a bucket (`comparison`) does not depend on the order of its messages. The table is a hash table
with open addressing: ``slots`` holds numbers of rows, the rows hold the sums. Neighbours mostly belong to the
same bucket, so the row of the previous message is tried first.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from magnetar.columnar.kernels.compiled import kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

_FIRST_ROWS: Final = 1 << 10
_MIXER: Final = np.uint64(0x9E3779B97F4A7C15)

# Rows of the table of sums.
OWNER: Final = 0
NUMBER: Final = 1
MESSAGES: Final = 2
TOTAL: Final = 3
MIXED: Final = 4
_SUMS: Final = 5


class DigestRow(NamedTuple):
    """The sums of one bucket."""

    owner: str
    number: int
    messages: int
    total: int
    """Sum of the contents' hashes, modulo 2^64, as a signed number."""
    mixed: int
    """Their exclusive or."""


class DigestTable:
    """Sums up messages by bucket, in any order and any portions; iterate over it for the rows."""

    def __init__(self) -> None:
        self._owners: dict[str, int] = {}
        self._count = 0
        self._sums = np.zeros((_SUMS, _FIRST_ROWS), np.int64)
        self._slots = np.full(2 * _FIRST_ROWS, -1, np.int64)

    def add(self, owners: Any, numbers: NDArray[np.int64], contents: NDArray[np.int64]) -> None:
        """Add messages: owner (Arrow dictionary of strings), number of the bucket, and the content's hash of each."""
        known = [self._owners.setdefault(name, len(self._owners)) for name in owners.dictionary.to_pylist()]
        codes = np.array(known, np.int64)[owners.indices.to_numpy()]
        done = 0
        while True:
            self._count, done = _sum_up(codes, numbers, contents, done, self._sums, self._count, self._slots)
            if done == len(codes):
                return
            self._sums = np.concatenate((self._sums, np.zeros_like(self._sums)), axis=1)
            self._slots = np.full(2 * len(self._slots), -1, np.int64)
            _put_again(self._sums, self._count, self._slots)

    def __iter__(self) -> Iterator[DigestRow]:
        names = list(self._owners)
        for owner, *rest in self._sums[:, : self._count].T.tolist():
            yield DigestRow(names[owner], *rest)


@kernel
def _slot_of(owner: Any, number: Any, sums: Any, slots: Any) -> Any:
    """Return the slot of the bucket's row, or the free slot for it."""
    mixed = (np.uint64(number) ^ np.uint64(owner) << np.uint64(48)) * _MIXER
    slot = np.int64(mixed >> np.uint64(32)) & (slots.size - 1)
    while slots[slot] >= 0 and (sums[OWNER, slots[slot]] != owner or sums[NUMBER, slots[slot]] != number):
        slot = (slot + 1) & (slots.size - 1)
    return slot


@kernel
def _put_again(sums: Any, count: Any, slots: Any) -> None:
    for row in range(count):
        slots[_slot_of(sums[OWNER, row], sums[NUMBER, row], sums, slots)] = row


@kernel
def _sum_up(codes: Any, numbers: Any, contents: Any, first: Any, sums: Any, count: Any, slots: Any) -> Any:
    """Add messages to their rows; return the number of rows, and the first message for which there was no room."""
    row = np.int64(-1)
    for index in range(first, codes.size):
        owner, number = codes[index], numbers[index]
        if row < 0 or sums[OWNER, row] != owner or sums[NUMBER, row] != number:
            slot = _slot_of(owner, number, sums, slots)
            row = slots[slot]
            if row < 0:
                if count == sums.shape[1]:
                    return count, index
                row = slots[slot] = count
                sums[OWNER, row] = owner
                sums[NUMBER, row] = number
                count += 1
        sums[MESSAGES, row] += 1
        sums[TOTAL, row] += contents[index]
        sums[MIXED, row] ^= contents[index]
    return count, codes.size
