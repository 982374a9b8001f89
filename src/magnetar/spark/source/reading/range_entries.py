"""The entries of a range as they can be decoded: chunks joined, encrypted ones opened (`single_entries.opener`).

A message in chunks belongs to the range in which its first chunk is. If the others are not all in the range, they are
looked for after it. There the reader meets one of three things: the last chunk; an entry that was published so long
after the newest chunk that no more are to be expected; or the end of the topic, where it waits ``chunkTimeoutMs`` for
what a producer may be about to send. Then the message is left out and the log says so. Nothing of this asks when the
reader runs, except the wait at the end, so a range gives the same messages when it is read again, unless a producer
that stopped in the middle of a message for longer than ``chunkTimeoutMs`` goes on with it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Final

import numpy as np

from magnetar.client.bulk.data_loss import DataGap
from magnetar.client.bulk.positions import last_position
from magnetar.client.bulk.range_reader import RangeReader
from magnetar.client.bulk.tail import tail_entries
from magnetar.client.lookup import Lookup
from magnetar.client.read_position import ReadPosition
from magnetar.columnar.entries.block import ALL, NO_INDEX, EntryBlock, EntryBytes, block_of
from magnetar.columnar.single_entries.chunk_joiner import ReadableEntry
from magnetar.columnar.single_entries.encryption import Decryptor
from magnetar.columnar.single_entries.opener import CryptoFailureAction, EntryOpener
from magnetar.protocol.entries import measure, publish_time
from magnetar.runtime.clock import SystemClock, steady_seconds
from magnetar.spark.options.source_options import SourceOptions
from magnetar.spark.source.planning.planner import Range
from magnetar.spark.source.planning.pushed_filters import EVERYTHING, Window

log = logging.getLogger(__name__)

SKEW: Final = 10
"""Publish times are those of several clocks: a chunk is late for sure after so many times ``chunkTimeoutMs``."""
_BREATH: Final = 1.0
"""A single look after the range counts for so many seconds of silence at most."""
_STALLED: Final = 10.0
"""Seconds of silence before the end of the topic after which the rest, up to there, is nothing that readers get."""


def range_blocks(
    options: SourceOptions, lookup: Lookup, one: Range, window: Window = EVERYTHING.window
) -> Iterator[EntryBlock]:
    """Yield blocks of entries of the range; messages of an entry that are outside of it are marked as not wanted.

    Entries outside ``window`` are left out.
    """
    # Its kernels take a quarter of a second to load, and the driver imports this module too.
    from magnetar.columnar.entries.metadata import scan_metadata

    opener = opener_of(options, one.topic)
    entries = RangeReader(
        lookup,
        one.topic,
        one.start,
        one.end,
        poll_timeout=options.poll_timeout,
        fail_on_data_loss=options.fail_on_data_loss,
        on_gap=_warn_of_gap,
    )
    for block in entries.blocks():
        apart, times = scan_metadata(block)
        if window != EVERYTHING.window:
            facts = zip(*block.table[:2].tolist(), times.tolist(), strict=True)
            # A message in chunks goes by its first one, so all chunks are opened.
            kept = np.array([window.keeps(*fact) for fact in facts]) | apart
            block, apart = block.where(kept), apart[kept]
        yield from _plain(opener, one, block, np.flatnonzero(apart).tolist(), window)
    if opener.joiner.waiting:
        for some in _rest(options, lookup, one, opener):
            yield from (_alone(one, whole) for whole in some if _wanted(window, whole))


def _wanted(window: Window, whole: ReadableEntry) -> bool:
    return window == EVERYTHING.window or window.keeps(whole.ledger, whole.entry, publish_time(whole.data))


def _plain(
    opener: EntryOpener, one: Range, block: EntryBlock, apart: list[int], window: Window
) -> Iterator[EntryBlock]:
    """Yield the block without those that are ``apart``, which are opened one by one."""
    first = 0
    for number in apart:
        if first < number:
            yield block.part(first, number)
        stored = block.stored(number)
        if (whole := opener.open(*stored[:3])) is not None and _wanted(window, whole):
            yield _alone(one, whole, stored.last_index)
        first = number + 1
    if first < len(block):
        yield block.part(first, len(block))


def _alone(one: Range, whole: ReadableEntry, last_index: int = NO_INDEX) -> EntryBlock:
    at = whole.ledger, whole.entry
    first = one.start.batch if at == one.start[:2] else 0
    stop = one.end.batch if one.end.batch and at == one.end[:2] else ALL
    return block_of([EntryBytes(*whole, last_index)], first, stop)


def opener_of(options: SourceOptions, topic: str) -> EntryOpener:
    """Return what opens entries of one topic or partition, by the options for keys and chunks."""
    decryption = options.decryption
    return EntryOpener(
        topic,
        int(options.chunk_timeout * 1000) * SKEW,
        None if decryption is None else Decryptor(decryption.keys),
        CryptoFailureAction.FAIL if decryption is None else decryption.failure,
        on_left_out=log.warning,
    )


def _rest(options: SourceOptions, lookup: Lookup, one: Range, opener: EntryOpener) -> Iterator[list[ReadableEntry]]:
    """Yield what completes the messages that began in the range."""
    joiner, quiet = opener.joiner, 0.0
    tail = last_position(lookup, one.topic)
    at = ReadPosition(one.end.ledger, one.end.entry + (1 if one.end.batch else 0))
    following = tail_entries(lookup, one.topic, at)
    try:
        while joiner.waiting:
            newest, asked = joiner.newest, steady_seconds()
            found = next(following)
            waited = steady_seconds() - asked
            if whole := [done for entry in found if (done := opener.continue_(entry.data)) is not None]:
                yield whole
            if found:
                at = ReadPosition(found[-1].ledger, found[-1].entry + 1)
                # Published by several clocks, but not after now.
                joiner.give_up(min(measure(found[-1].data).publish_time, SystemClock().now_ms()))
            caught_up = at >= tail
            if caught_up:
                # Not before: what is old has its other chunks in the log, if anywhere.
                joiner.give_up(SystemClock().now_ms())
            if joiner.newest != newest or whole or (found and not caught_up):
                quiet = 0.0
            else:
                # A connection that is made anew takes its time, in which nothing could have arrived.
                quiet += min(waited, _BREATH)
            if quiet > (options.chunk_timeout if caught_up else max(options.chunk_timeout, _STALLED)):
                joiner.give_up()
    finally:
        following.close()
    opener.report()


def _warn_of_gap(gap: DataGap) -> None:
    log.warning("%s", gap)
