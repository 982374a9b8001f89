"""Entries of a topic as columns, for both passes of compaction; kernels read most of them.

Most entries of topics that are compacted are one message with a key and a size, or batches. For these kernels find what
:func:`magnetar.compaction.messages.inspect_entry` would; the others (chunks, ciphertexts, messages that say nothing of
their size, what cannot be read) are looked at one by one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from magnetar.columnar.entries.block import ENTRY_END, ENTRY_START, uint8_array
from magnetar.columnar.entries.metadata import (
    BASE64_KEY,
    BATCH,
    COMPRESSION,
    FLAGS,
    KEY,
    METADATA_ROWS,
    NO_BATCH,
    NULL_VALUE,
    PAYLOAD,
    PLAIN_SIZE,
    read_metadata,
)
from magnetar.compaction.messages import PLAIN_BYTES_MAX, repacked
from magnetar.compaction.survivors import INDEX_BITS
from magnetar.compaction.view_entries import INDEX_BYTES, INDEXED, PLACE_BYTES, pack
from magnetar.jobs.compaction.compacted_entries import BatchChoice, BatchFilter, CompactedEntries, in_view
from magnetar.jobs.compaction.key_table import UNREADABLE, KeyTable
from magnetar.jobs.compaction.rules import ChunkState, EventCollector, KnownSurvivors, StoredEntry, messages_of
from magnetar.jobs.reader.segment_reader import TABLE_ENTRIES, Entries
from magnetar.protocol.compression import CompressionType, DamagedPayloadError, decompress

if TYPE_CHECKING:
    from numpy.typing import NDArray

_PLAIN_FLAGS: Final = NULL_VALUE | BASE64_KEY


class EntryColumns(NamedTuple):
    """Some entries in order, as parallel arrays over one buffer that is valid until the next block is asked for."""

    data: NDArray[np.uint8]
    ordinals: NDArray[np.int64]
    ledgers: NDArray[np.int64]
    entries: NDArray[np.int64]
    offsets: NDArray[np.int64]
    lengths: NDArray[np.int64]
    messages: NDArray[np.int64]
    """The number of messages that the broker counts for each."""

    def stored(self, i: int) -> StoredEntry:
        """Return one of the entries."""
        at = int(self.offsets[i])
        data = bytes(self.data[at : at + int(self.lengths[i])].data)
        return StoredEntry(
            int(self.ordinals[i]), int(self.ledgers[i]), int(self.entries[i]), int(self.messages[i]), data
        )


def of_topic(block: Entries, base: int) -> EntryColumns:
    """Return a block of a topic's entries; ``base`` is the ordinal of the ledger's entry 0."""
    assert block.counts is not None, "segments and copies know how many messages an entry counts as"
    return EntryColumns(
        block.data, block.entries + base, block.ledgers, block.entries, block.offsets, block.lengths, block.counts
    )


def of_view(block: Entries) -> EntryColumns:
    """Return a block of a view's own log, whose entries say where they stood
    (:mod:`magnetar.compaction.view_entries`)."""
    assert block.counts is not None, "segments and copies know how many messages an entry counts as"
    places = block.data[block.offsets[:, None] + np.arange(PLACE_BYTES)].view("<i8")
    after = block.offsets + PLACE_BYTES
    indexed = (block.data[after] == INDEXED[0]) & (block.data[after + 1] == INDEXED[1])
    before = PLACE_BYTES + INDEX_BYTES * indexed
    return EntryColumns(
        block.data, places[:, 0], places[:, 1], places[:, 2], block.offsets + before, block.lengths - before,
        block.counts,
    )  # fmt: skip


class _ReadColumns(NamedTuple):
    """Entries with what the kernel read of their metadata."""

    columns: EntryColumns
    data: NDArray[np.uint8]
    """Read-only."""
    table: NDArray[np.int64]
    plain: NDArray[np.bool_]
    """Single messages whose metadata says all that compaction needs."""
    batch: NDArray[np.bool_]
    """Batches that a kernel can read."""
    places: NDArray[np.int64]
    """Place of the first message of each entry."""

    def odd(self) -> list[int]:
        """Return the entries that are not plain."""
        found: list[int] = np.flatnonzero(~self.plain).tolist()
        return found

    def unpacked(self, i: int) -> tuple[NDArray[np.uint8], int, int] | None:
        """Return a batch's messages decompressed: buffer, start, end; None if `compaction.messages` is to read it."""
        kind, size, start, end = (int(self.table[row, i]) for row in (COMPRESSION, PLAIN_SIZE, PAYLOAD, ENTRY_END))
        if kind == CompressionType.NONE:
            return self.data, start, end
        try:
            plain = decompress(CompressionType(kind), bytes(self.data[start:end].data), size, PLAIN_BYTES_MAX)
        except DamagedPayloadError:
            return None
        return uint8_array(plain), 0, len(plain)


def _with_heads(blocks: Iterable[EntryColumns]) -> Iterator[_ReadColumns]:
    """Read the metadata of some entries at a time, so that their table stays in the processor's cache."""
    for whole in blocks:
        data = whole.data.view()
        data.flags.writeable = False
        for first in range(0, len(whole.offsets), TABLE_ENTRIES):
            part = slice(first, first + TABLE_ENTRIES)
            columns = EntryColumns(data, *(column[part] for column in whole[1:]))
            yield _read_columns(columns)


def _read_columns(columns: EntryColumns) -> _ReadColumns:
    count = len(columns.offsets)
    table = np.empty((METADATA_ROWS, count), np.int64)
    table[ENTRY_START], table[ENTRY_END] = columns.offsets, columns.offsets + columns.lengths
    readable = np.ones(count, np.bool_)
    at = 0
    while (at := read_metadata(columns.data, table, at, count)) < count:
        readable[at] = False
        at += 1
    readable &= (table[FLAGS] & ~_PLAIN_FLAGS) == 0
    plain = readable & (table[BATCH] == NO_BATCH) & (table[PLAIN_SIZE] > 0)
    batch = readable & (table[BATCH] > 0)
    return _ReadColumns(columns, columns.data, table, plain, batch, columns.ordinals << INDEX_BITS)


def key_events(
    blocks: Iterable[EntryColumns], keys: KeyTable | None = None, collector: EventCollector | None = None
) -> tuple[KeyTable, EventCollector]:
    """Collect the last event of every key: those that kernels read, and those read one by one.

    Of one key the greater place counts. ``messages`` of the collector counts both. What is given is continued.
    """
    # A table without keys is false.
    keys = KeyTable() if keys is None else keys
    collector = EventCollector() if collector is None else collector
    for one in _with_heads(blocks):
        keys.add_singles(one.data, one.table, one.plain, one.places)
        collector.messages += int(one.plain.sum())
        for i in one.odd():
            there = UNREADABLE
            if one.batch[i] and (found := one.unpacked(i)) is not None:
                there = keys.add_batch(*found, int(one.table[BATCH, i]), int(one.places[i]))
            if there == UNREADABLE:
                collector.add(one.columns.stored(i))
            else:
                collector.messages += there
    return keys, collector


def compacted_entries(
    blocks: Iterable[EntryColumns], places: NDArray[np.int64], chunk_state: ChunkState, *, retain_keyless: bool
) -> Iterator[CompactedEntries]:
    """Yield what stays, in the form of the view; ``places`` ascend."""
    chooser = BatchFilter(places, retain_keyless=retain_keyless)
    rules = KnownSurvivors(frozenset(places.tolist()), chunk_state, retain_keyless=retain_keyless)
    for one in _with_heads(blocks):
        keyed = one.table[KEY] >= 0
        stays = one.plain & np.where(keyed, _among(places, one.places), retain_keyless)
        done = 0
        messages = one.plain.astype(np.int64)
        for i in one.odd():
            choice = _chosen(one, i, chooser)
            if choice is not None and choice.stays in (0, choice.there):
                stays[i], messages[i] = choice.stays > 0, choice.there
                continue
            # what changes, or is read one by one, comes after what stands before it
            yield from _whole(one, stays, messages, done, i)
            done = i + 1
            stored = one.columns.stored(i)
            if choice is None:
                for found in rules.of((stored,)):
                    yield _alone(found, messages_of(found.data))
            else:
                yield _alone(stored._replace(data=repacked(stored.data, choice.payload.tobytes())), choice.stays)
        yield from _whole(one, stays, messages, done, len(stays))


def _among(places: NDArray[np.int64], wanted: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return which of ``wanted`` are among ``places``, which ascend."""
    if not len(places):
        return np.zeros(len(wanted), np.bool_)
    at = np.minimum(np.searchsorted(places, wanted), len(places) - 1)
    found: NDArray[np.bool_] = places[at] == wanted
    return found


def _chosen(one: _ReadColumns, i: int, chooser: BatchFilter) -> BatchChoice | None:
    """Filter a batch by kernel; None if it must be read message by message."""
    found = one.unpacked(i) if one.batch[i] else None
    if found is None:
        return None
    choice = chooser.batch(*found, int(one.table[BATCH, i]), int(one.places[i]))
    return None if choice.there == UNREADABLE else choice


def _whole(
    one: _ReadColumns, stays: NDArray[np.bool_], messages: NDArray[np.int64], first: int, last: int
) -> Iterator[CompactedEntries]:
    """Yield the entries of ``[first, last)`` that stay as they are."""
    some = np.flatnonzero(stays[first:last]) + first
    if len(some):
        columns = one.columns
        places = np.stack((columns.ordinals[some], columns.ledgers[some], columns.entries[some]))
        data, sizes = in_view(one.data, columns.offsets[some], columns.lengths[some], places)
        yield CompactedEntries(data, sizes, columns.messages[some].astype(np.int32), int(messages[some].sum()))


def _alone(stored: StoredEntry, messages: int) -> CompactedEntries:
    data = uint8_array(pack(*stored[:3], stored.data))
    return CompactedEntries(data, np.array([len(data)], np.uint32), np.array([stored.messages], np.int32), messages)
