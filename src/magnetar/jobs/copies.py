"""Copies of ledgers, as jobs read and write them: columns all the way, no object per entry (docs/offload.md)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np
from numba import njit

from magnetar.client.errors import DataLossError
from magnetar.client.place import Place
from magnetar.jobs.extents import Entries, Missing, read_piece
from magnetar.jobs.topic_logs import Copied, LedgerInfo, Piece
from magnetar.model.errors import PersistenceError
from magnetar.offload.archive import ParquetArchive
from magnetar.offload.format import NO_TIME, Facts, LedgerWriter, buffers
from magnetar.offload.places import Place as ObjectPlace
from magnetar.protocol.frames import ENTRY_HEADER_SIZE

if TYPE_CHECKING:
    from numpy.typing import NDArray

_HEADER: Final = ENTRY_HEADER_SIZE
_PUBLISH_TIME: Final = 3
"""Number of the field publish_time in MessageMetadata."""


def read_copy(copy: Copied) -> Iterator[Entries | Missing]:
    """The entries of a copy in order, hidden ones left out; what cannot be read comes out as missing."""
    archive = ParquetArchive()
    at = copy.first
    while at < copy.stop:
        try:
            first, data, counts, index = archive.columns(copy.offload, copy.ledger, at - copy.base)
        except (PersistenceError, OSError) as error:
            yield Missing(Place(copy.ledger, at - copy.base), Place(copy.ledger, copy.stop - copy.base), str(error))
            return
        n = len(data)
        ordinals = np.arange(copy.base + first, copy.base + first + n)
        keep = (ordinals >= at) & (ordinals < copy.stop) & ~np.isin(ordinals, np.array(copy.hidden, np.int64))
        joined, sizes = buffers(data)
        starts = np.concatenate(([0], np.cumsum(sizes, dtype=np.int64)[:-1]))
        lengths = sizes.astype(np.int64)
        block = np.frombuffer(joined, np.uint8)
        ledgers = np.full(int(keep.sum()), copy.ledger, np.int64)
        columns = (column[keep] for column in (ordinals - copy.base, starts, lengths, index, counts.astype(np.int64)))
        if len(ledgers):
            yield Entries(block, ledgers, *columns)
        at = copy.base + first + n


def write_copy(
    ledgers: Path, pieces: Sequence[Piece], info: LedgerInfo, topic: str, place: ObjectPlace, name: str
) -> tuple[Facts, int]:
    """A sealed ledger as an object of that name, durable and not recorded anywhere yet; its size.

    ``pieces`` are all of the ledger, in order. Raises DataLossError if an entry is missing or damaged, FileExistsError
    if the name is taken, OSError.
    """
    draft = place.draft(name)
    try:
        writer = LedgerWriter(draft.target, topic, info.id, info.first_index)
        try:
            _fill(writer, ledgers, pieces, info, topic)
            facts = writer.close()
        except BaseException:
            writer.abandon()
            raise
        return facts, draft.commit()
    except BaseException:
        draft.abandon()
        raise


def _fill(writer: LedgerWriter, ledgers: Path, pieces: Sequence[Piece], info: LedgerInfo, topic: str) -> None:
    expected = 0
    for piece in pieces:
        # what is hidden from readers (markers, what aborted transactions wrote) is part of the ledger
        for block in read_piece(ledgers, piece._replace(hidden=())):
            if isinstance(block, Missing):
                raise DataLossError(f"{topic}: {block}")
            if int(block.entries[0]) != expected:
                raise DataLossError(f"{topic}: entries from {info.id}:{expected} on are in no segment")
            expected += len(block)
            counts = cast("NDArray[np.int64]", block.counts)
            data = _gathered(block.data, block.offsets, block.lengths)
            times = publish_times(block.data, block.offsets, block.lengths)
            writer.add_columns(data, block.lengths.astype(np.uint32), counts.astype(np.int32), times)
    if expected != info.entries:
        raise DataLossError(f"{topic}: ledger {info.id} has {info.entries} entries, {expected} were found")


def publish_times(data: Any, offsets: Any, lengths: Any) -> Any:
    """Of each entry, ms (i64); ``NO_TIME`` where its metadata cannot be read."""
    return _times(data, offsets, lengths, NO_TIME)


def _kernel(function: Any) -> Any:
    return njit(cache=True, nogil=True)(function)


@_kernel
def _gathered(data: Any, offsets: Any, lengths: Any) -> Any:
    """The entries one behind the other."""
    out = np.empty(lengths.sum(), np.uint8)
    at = 0
    for i in range(len(offsets)):
        out[at : at + lengths[i]] = data[offsets[i] : offsets[i] + lengths[i]]
        at += lengths[i]
    return out


@_kernel
def _varint(data: Any, at: Any, end: Any) -> Any:
    """Value, and where it ends; -1 there if it is none."""
    value = np.uint64(0)
    for i in range(10):
        if at + i >= end:
            return value, -1
        byte = np.uint64(data[at + i])
        value |= (byte & np.uint64(0x7F)) << np.uint64(7 * i)
        if byte < np.uint64(0x80):
            return value, at + i + 1
    return value, -1


@_kernel
def _times(data: Any, offsets: Any, lengths: Any, unknown: Any) -> Any:
    out = np.empty(len(offsets), np.int64)
    for i in range(len(offsets)):
        at, stop = offsets[i], offsets[i] + lengths[i]
        out[i] = unknown
        if lengths[i] < _HEADER or data[at] != 0x0E or data[at + 1] != 0x01:
            continue
        size = np.int64(0)
        for j in range(_HEADER - 4, _HEADER):
            size = size << 8 | np.int64(data[at + j])
        at += _HEADER
        end = at + size
        if end > stop:
            continue
        found = unknown
        while 0 <= at < end:
            tag, at = _varint(data, at, end)
            if at < 0:
                break
            kind = np.int64(tag & np.uint64(7))
            if kind == 0:
                value, at = _varint(data, at, end)
                if at >= 0 and np.int64(tag >> np.uint64(3)) == _PUBLISH_TIME:
                    found = np.int64(value)
            elif kind == 1:
                at += 8
            elif kind == 2:
                value, at = _varint(data, at, end)
                if at >= 0:
                    at = at + np.int64(value) if value <= np.uint64(size) else -1
            elif kind == 5:
                at += 4
            else:
                at = -1
        if at == end:
            out[i] = found
    return out
