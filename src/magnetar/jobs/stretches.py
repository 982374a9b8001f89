"""Stretches of a topic for compaction: entries as columns, and the plain ones among them known by a kernel.

Most entries of topics that are compacted are one message with a key and a size. Of these a kernel tells what
:func:`magnetar.protocol.compacting.look` would; the others (batches, chunks, ciphertexts, messages that say nothing of
their size, what cannot be read) are looked at one by one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from magnetar.broker.topic.compaction.survivors import INDEX_BITS
from magnetar.broker.topic.compaction.view import PLACE_BYTES
from magnetar.columnar.block import ENTRY_END, ENTRY_START
from magnetar.columnar.heads import (
    BASE64_KEY,
    BATCH,
    FLAGS,
    HEADS,
    KEY,
    KEY_END,
    NO_BATCH,
    NULL_VALUE,
    PLAIN_SIZE,
    read_heads,
)
from magnetar.jobs.extents import Entries
from magnetar.jobs.latest import Ear, Event, Heard, Kept, Stored

if TYPE_CHECKING:
    from numpy.typing import NDArray

_PLAIN_FLAGS: Final = NULL_VALUE | BASE64_KEY


class Stretch(NamedTuple):
    """Some entries in order, as parallel arrays over one buffer that is valid until the next stretch is asked for."""

    data: NDArray[np.uint8]
    ordinals: NDArray[np.int64]
    ledgers: NDArray[np.int64]
    entries: NDArray[np.int64]
    offsets: NDArray[np.int64]
    lengths: NDArray[np.int64]
    messages: NDArray[np.int64]
    """What the broker counts each as."""

    def stored(self, i: int) -> Stored:
        """One of them."""
        at = int(self.offsets[i])
        data = bytes(self.data[at : at + int(self.lengths[i])].data)
        return Stored(int(self.ordinals[i]), int(self.ledgers[i]), int(self.entries[i]), int(self.messages[i]), data)


def of_topic(block: Entries, base: int) -> Stretch:
    """``base``: ordinal of the ledger's entry 0."""
    assert block.counts is not None, "segments and copies know how many messages an entry counts as"
    return Stretch(
        block.data, block.entries + base, block.ledgers, block.entries, block.offsets, block.lengths, block.counts
    )


def of_view(block: Entries) -> Stretch:
    """Of a view's own log, whose entries say where they stood (:mod:`magnetar.broker.topic.compaction.view`)."""
    assert block.counts is not None, "the same"
    places = block.data[block.offsets[:, None] + np.arange(PLACE_BYTES)].view("<i8")
    return Stretch(
        block.data, places[:, 0], places[:, 1], places[:, 2], block.offsets + PLACE_BYTES, block.lengths - PLACE_BYTES,
        block.counts,
    )  # fmt: skip


def _heads(stretch: Stretch) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """What the kernel read, and of which entries that is all there is to know."""
    count = len(stretch.offsets)
    table = np.empty((HEADS, count), np.int64)
    table[ENTRY_START], table[ENTRY_END] = stretch.offsets, stretch.offsets + stretch.lengths
    readable = np.ones(count, np.bool_)
    at = 0
    while (at := read_heads(stretch.data, table, at, count)) < count:
        readable[at] = False
        at += 1
    plain = (table[BATCH] == NO_BATCH) & ((table[FLAGS] & ~_PLAIN_FLAGS) == 0) & (table[PLAIN_SIZE] > 0)
    return table, plain & readable


def events(stretches: Iterable[Stretch]) -> tuple[list[Event], int]:
    """As :func:`magnetar.jobs.latest.events`."""
    ear = Ear()
    for stretch in stretches:
        table, plain = _heads(stretch)
        view = stretch.data.data
        places = (stretch.ordinals << INDEX_BITS).tolist()
        empty = (table[FLAGS] & NULL_VALUE != 0).tolist()
        columns = zip(plain.tolist(), table[KEY].tolist(), table[KEY_END].tolist(), places, empty, strict=True)
        keys = ear.keys
        for i, (known, start, end, place, over) in enumerate(columns):
            if not known:
                ear.listen(stretch.stored(i))
            elif start >= 0:
                keys[bytes(view[start:end])] = (place, over, None)
        ear.messages += int(plain.sum())
    return ear.events(), ear.messages


def kept(
    stretches: Iterable[Stretch], places: Collection[int], heard: Heard, *, retain_keyless: bool
) -> Iterator[Stored]:
    """What stays, as it stays."""
    rules = Kept(frozenset(places), heard, retain_keyless=retain_keyless)
    wanted = np.fromiter(places, np.int64, len(places))
    for stretch in stretches:
        table, plain = _heads(stretch)
        stays = np.isin(stretch.ordinals << INDEX_BITS, wanted) & (table[KEY] >= 0)
        if retain_keyless:
            stays |= table[KEY] < 0
        for i in np.flatnonzero(stays | ~plain).tolist():
            one = stretch.stored(i)
            if plain[i]:
                yield one
            else:
                yield from rules.of((one,))
