"""Stored entries as they lie in one received buffer: where each begins and ends, and nothing taken apart yet."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

COLUMN_BYTES_MAX: Final = 32 << 20
"""Columns are taken when they have this much; one entry may go beyond, far below Arrow's 2 GiB for a column."""
ALL: Final = (1 << 31) - 1
"""More messages than a batch can have."""
NO_INDEX: Final = -1


# Rows of a block's table.
LEDGER: Final = 0
ENTRY: Final = 1
INDEX: Final = 2
"""What the broker says is the index of the entry's last message, or `NO_INDEX`."""
FIRST: Final = 3
STOP: Final = 4
"""Messages ``[FIRST, STOP)`` are wanted."""
ENTRY_START: Final = 5
ENTRY_END: Final = 6
BLOCK_ROWS: Final = 7


class EntryBytes(NamedTuple):
    """One entry as it is stored."""

    ledger: int
    entry: int
    data: bytes
    last_index: int = NO_INDEX
    """The index of its last message, if the broker gives one."""


class EntryBlock(NamedTuple):
    """Consecutive entries of one topic."""

    data: NDArray[np.uint8]
    """Read-only; several blocks may share it."""
    table: NDArray[np.int64]
    """int64, a row per fact (above) and a column per entry."""

    def __len__(self) -> int:
        return int(self.table.shape[1])

    def stored(self, number: int) -> EntryBytes:
        """Return a copy of one entry."""
        ledger, entry, index, _, _, start, end = self.table[:, number].tolist()
        return EntryBytes(ledger, entry, self.data[start:end].tobytes(), index)

    def part(self, first: int, last: int) -> EntryBlock:
        """Return entries ``[first, last)`` over the same bytes."""
        return EntryBlock(self.data, self.table[:, first:last])

    def where(self, kept: NDArray[np.bool_]) -> EntryBlock:
        """Return the entries for which ``kept`` is true, over the same bytes."""
        return EntryBlock(self.data, self.table[:, kept])


def uint8_array(data: bytes | bytearray | memoryview) -> NDArray[np.uint8]:
    """Return the bytes for a kernel: read-only, since kernels are compiled for either kind of array."""
    return np.frombuffer(memoryview(data).toreadonly(), np.uint8)


def block_of(entries: Iterable[EntryBytes], first: int = 0, stop: int = ALL) -> EntryBlock:
    """Put entries together; a single one is not copied. Only messages ``[first, stop)`` of each are wanted."""
    kept = list(entries)
    data = kept[0].data if len(kept) == 1 else b"".join(one.data for one in kept)
    table = np.empty((BLOCK_ROWS, len(kept)), np.int64)
    at = 0
    for number, one in enumerate(kept):
        end = at + len(one.data)
        table[:, number] = (one.ledger, one.entry, one.last_index, first, stop, at, end)
        at = end
    return EntryBlock(uint8_array(data), table)
