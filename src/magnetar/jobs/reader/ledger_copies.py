"""Offloaded ledgers (docs/offload.md), read and written in columns, without an object per entry."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from magnetar.client.bulk.data_loss import DataLossError
from magnetar.client.read_position import ReadPosition
from magnetar.columnar.entries.block import ENTRY_END, ENTRY_START
from magnetar.columnar.entries.metadata import METADATA_ROWS, PUBLISH_TIME, read_metadata
from magnetar.columnar.kernels.compiled import Int64Array, Uint8Array, copy_bytes, kernel
from magnetar.jobs.reader.segment_reader import Entries, Missing, read_piece
from magnetar.jobs.reader.topic_ledgers import CopiedLedger, LedgerInfo, SegmentPiece
from magnetar.model.errors import PersistenceError
from magnetar.offload.format import NO_TIME, LedgerFileInfo, LedgerWriter, buffers
from magnetar.offload.object_store import ObjectStore
from magnetar.offload.parquet_archive import ParquetArchive

if TYPE_CHECKING:
    from numpy.typing import NDArray


def read_copy(copy: CopiedLedger) -> Iterator[Entries | Missing]:
    """Yield the entries of a copy in order, hidden ones left out; what cannot be read is yielded as missing."""
    archive = ParquetArchive()
    at = copy.first
    while at < copy.stop:
        try:
            first, data, counts, index = archive.columns(copy.offload, copy.ledger, at - copy.base)
        except (PersistenceError, OSError) as error:
            yield Missing(
                ReadPosition(copy.ledger, at - copy.base), ReadPosition(copy.ledger, copy.stop - copy.base), str(error)
            )
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
    ledgers: Path, pieces: Sequence[SegmentPiece], info: LedgerInfo, topic: str, place: ObjectStore, name: str
) -> tuple[LedgerFileInfo, int]:
    """Write a sealed ledger as an object of that name, durable and not recorded anywhere yet; return facts and size.

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


def _fill(writer: LedgerWriter, ledgers: Path, pieces: Sequence[SegmentPiece], info: LedgerInfo, topic: str) -> None:
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


def publish_times(data: NDArray[np.uint8], offsets: NDArray[np.int64], lengths: NDArray[np.int64]) -> Any:
    """Return each entry's publish time, ms (i64); ``NO_TIME`` where its metadata cannot be read."""
    count = len(offsets)
    table = np.empty((METADATA_ROWS, count), np.int64)
    table[ENTRY_START], table[ENTRY_END] = offsets, offsets + lengths
    at = 0
    while (at := read_metadata(data, table, at, count)) < count:
        table[PUBLISH_TIME, at] = NO_TIME
        at += 1
    return table[PUBLISH_TIME]


def _gathered(data: NDArray[np.uint8], offsets: NDArray[np.int64], lengths: NDArray[np.int64]) -> NDArray[np.uint8]:
    """Return the entries one after the other in one buffer."""
    out = np.empty(int(lengths.sum()), np.uint8)
    _gather(data, offsets, lengths, out)
    return out


@kernel
def _gather(data: Uint8Array, offsets: Int64Array, lengths: Int64Array, out: Uint8Array) -> None:
    to = 0
    for i in range(len(offsets)):
        start, size = offsets[i], lengths[i]
        copy_bytes(out, to, data, start, size)
        to += size
