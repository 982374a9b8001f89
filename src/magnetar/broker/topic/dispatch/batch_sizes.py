"""How many messages an entry really holds; a client's claim is not trusted.

An acknowledgement of a part of a batch names the batch's size and a word per 64 messages. Work and memory follow the
entry, not that claim: for what memory has of the log the size is known exactly; of entries that have left it only
batches up to ``UNSEEN_MAX``, or as large as one that this subscription has sent, are believed. Who acknowledges more of
an entry that is not in memory has received it from an earlier life of the broker: it gets the entry again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from magnetar.broker.topic.ports import EntryRun, Log, RemainingIndexes
from magnetar.protocol.entries import batch_messages

UNSEEN_MAX: Final = 1024
"""Messages of a batch that is not in memory, if no larger one was sent: 128 bytes of bits."""


class RemainingMessages(NamedTuple):
    """What an acknowledgement leaves of a batch, cut to what there is."""

    words: tuple[int, ...]
    """Bit i is set: message i stays unacknowledged (rule 5.7.6)."""
    size: int
    """Messages of the batch; bits after them mean nothing."""


class BatchSizes:
    """The batch sizes that one subscription can know."""

    __slots__ = ("_log", "largest")

    def __init__(self, log: Log) -> None:
        self._log = log
        self.largest = UNSEEN_MAX
        """Messages of the largest entry that was sent, or ``UNSEEN_MAX``."""

    def saw(self, counts: Sequence[int]) -> None:
        """Entries of so many messages are being sent."""
        self.largest = max(self.largest, max(counts, default=0))

    def remaining(self, ordinal: int, words: Sequence[int], claimed: int) -> RemainingMessages | None:
        """What ``words`` leave of the entry; None if they speak of more messages than can be believed.

        ``claimed``: the batch's size as the client says it; below 1 it said nothing.
        """
        size = self._messages(ordinal)
        if size is None:
            # without a claim the last word may be of any number of messages up to 64: only its first one is certain
            size = claimed if claimed > 0 else min(64 * len(words), self.largest)
            if max(size, 64 * len(words) - 63) > self.largest:
                return None
        return RemainingMessages(tuple(words[: (size + 63) // 64]), size)

    def _messages(self, ordinal: int) -> int | None:
        """How many messages an entry holds; None unless it is in memory."""
        log = self._log
        if not log.first <= ordinal < log.end:
            return None
        run = log.cached(ordinal, 1, 1)
        if run is None or run.first != ordinal:
            return None
        counted = run.counts[0] if run.counts else 1
        # a SEND may leave out how many messages it brings, and its entry counts as one then
        return counted if counted > 1 else batch_messages(run.entries[0])


def live_counts(run: EntryRun, low: int, high: int, sizes: BatchSizes, parts: RemainingIndexes) -> Sequence[int] | None:
    """Live messages of ``run.entries[low:high]``: what is charged (rule 5.2.1); None: one each."""
    counts = run.counts
    if counts is not None:
        if low or high < len(counts):
            counts = counts[low:high]
        sizes.saw(counts)
    if not parts.has_partial_batches:
        return counts
    live = [1] * (high - low) if counts is None else list(counts)
    for i in range(high - low):
        if words := parts.remaining_indexes(run.first + low + i):
            live[i] = live_messages(words)
    return live


def live_messages(words: Sequence[int]) -> int:
    """Bits set in an ack set: messages not acknowledged (rule 5.7.6)."""
    return sum((word & 0xFFFF_FFFF_FFFF_FFFF).bit_count() for word in words)
