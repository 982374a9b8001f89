"""Kernels of the second pass: which messages of a batch stay, and entries in the form of the compacted ledger's
file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from magnetar.columnar.entries.message_metadata import FACT_COMPACTED_OUT, FACT_COUNT, FACT_KEY
from magnetar.columnar.kernels.compiled import int64, kernel
from magnetar.columnar.kernels.protobuf_wire import copy
from magnetar.compaction.messages import COMPACTED_OUT
from magnetar.compaction.view_entries import PLACE_BYTES
from magnetar.jobs.compaction.key_table import UNREADABLE, next_message

if TYPE_CHECKING:
    from numpy.typing import NDArray

_GONE: Final = np.frombuffer(COMPACTED_OUT, np.uint8)


class CompactedEntries(NamedTuple):
    """Consecutive entries of a compacted ledger (a view), in the form of its file."""

    data: NDArray[np.uint8]
    """The entries one after the other, each preceded by its place in the topic."""
    sizes: NDArray[np.uint32]
    counts: NDArray[np.int32]
    """The number of messages that the broker counts for each."""
    messages: int
    """The number of messages that stay in them."""


class BatchChoice(NamedTuple):
    """What stays of a batch."""

    there: int
    """Messages that were not removed before; `UNREADABLE` if the batch cannot be read."""
    stays: int
    payload: NDArray[np.uint8]
    """The batch with only those that stay, uncompressed; the next call overwrites it."""


class BatchFilter:
    """Applies to batches which places stay (``places``, ascending)."""

    def __init__(self, places: NDArray[np.int64], *, retain_keyless: bool) -> None:
        self._places = places
        self._retain = np.int64(retain_keyless)
        self._facts = np.zeros(FACT_COUNT, np.int64)
        self._room = np.empty(0, np.uint8)

    def batch(self, plain: NDArray[np.uint8], start: int, end: int, count: int, place: int) -> BatchChoice:
        """Filter the batch in ``plain[start:end]``, whose first message has that place."""
        room = end - start + len(COMPACTED_OUT) * min(count, (end - start) // 4 + 1)
        if room > len(self._room):
            self._room = np.empty(2 * room, np.uint8)
        first = int(np.searchsorted(self._places, place))
        there, stays, size = _choose(
            plain, start, end, count, place, self._places, first, self._retain, self._facts, _GONE, self._room
        )
        return BatchChoice(there, stays, self._room[:size])


@kernel
def _choose(
    data: Any, at: Any, end: Any, count: Any, place: Any, wanted: Any, next_wanted: Any, retain: Any, facts: Any,
    gone: Any, out: Any,
) -> Any:  # fmt: skip
    there, stays, size = int64(0), int64(0), int64(0)
    for index in range(count):
        start = at
        at = next_message(data, start, end, facts)
        if at < 0:
            return np.int64(UNREADABLE), np.int64(0), np.int64(0)
        while next_wanted < wanted.size and wanted[next_wanted] < place + index:
            next_wanted += 1
        keep = retain if facts[FACT_KEY] < 0 else np.int64(0)
        if facts[FACT_KEY] >= 0 and next_wanted < wanted.size and wanted[next_wanted] == place + index:
            keep = np.int64(1)
        if facts[FACT_COMPACTED_OUT] != 0:
            keep = np.int64(0)
        else:
            there += 1
        if keep:
            stays += 1
            copy(data, start, at, out, size)
            size += at - start
        else:
            copy(gone, 0, gone.size, out, size)
            size += gone.size
    return there, stays, size


def in_view(
    data: NDArray[np.uint8], offsets: NDArray[np.int64], lengths: NDArray[np.int64], places: NDArray[np.int64]
) -> tuple[NDArray[np.uint8], NDArray[np.uint32]]:
    """Return entries of a buffer in a view's form, and their sizes; ``places`` has ordinal, ledger, entry of each."""
    out = np.empty(int(lengths.sum()) + PLACE_BYTES * len(lengths), np.uint8)
    _in_view(data, offsets, lengths, places, out)
    return out, (lengths + PLACE_BYTES).astype(np.uint32)


@kernel
def _in_view(data: Any, offsets: Any, lengths: Any, places: Any, out: Any) -> None:
    to = int64(0)
    for index in range(offsets.size):
        for part in range(3):
            number = places[part, index]
            for byte in range(8):
                out[to] = number >> (8 * byte) & 0xFF
                to += 1
        copy(data, offsets[index], offsets[index] + lengths[index], out, to)
        to += lengths[index]
