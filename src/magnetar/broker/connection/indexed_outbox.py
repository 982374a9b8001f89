"""The way back to a client that wants to know the message index of what it gets (decision 075).

Only consumers of such clients have one, and only while the broker is set to show the index.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from typing_extensions import override

from magnetar.broker.connection.consumer_outbox import HEADER_ESTIMATE, ConsumerOutbox
from magnetar.broker.topic.ports import EntryRun
from magnetar.protocol.handmade_frames.entry_stamps import index_stamp


class IndexedOutbox(ConsumerOutbox):
    """Puts the index before each entry. Entries whose index is not known go out without."""

    __slots__ = ()

    @override
    def deliver(self, run: EntryRun, start: int, stop: int, epoch: int | None) -> None:
        """Send MESSAGE frames for consecutive entries."""
        self._stamped(run, range(start, stop), epoch)

    @override
    def deliver_picked(self, run: EntryRun, indexes: Sequence[int], epoch: int | None) -> None:
        """Send MESSAGE frames for these entries of ``run``, ascending."""
        self._stamped(run, indexes, epoch)

    @override
    def deliver_one(
        self, run: EntryRun, index: int, redelivery_count: int, ack_set: tuple[int, ...], epoch: int | None
    ) -> None:
        """Send one MESSAGE with its redelivery count and ack set."""
        self._stamped(run, (index,), epoch, redelivery_count, ack_set)

    def _stamped(
        self, run: EntryRun, indexes: Sequence[int], epoch: int | None, redelivery_count: int = 0,
        ack_set: tuple[int, ...] = (),
    ) -> None:  # fmt: skip
        entries, header, out, said = run.entries, self._deliveries.header, self._out, 0
        stamps = _stamps(run, indexes)
        for index, stamp in zip(indexes, stamps, strict=True):
            entry = entries[index]
            size = len(stamp) + len(entry)
            out.parts += header(run.ledger, run.entry + index, size, redelivery_count, ack_set, epoch) + stamp, entry
            said += size
        out.grew(said + HEADER_ESTIMATE * len(stamps))


def _stamps(run: EntryRun, indexes: Sequence[int]) -> list[bytes]:
    """What stands before each entry: nothing if its index is not known, or it holds no message."""
    first, counts = run.message_index, run.counts
    if first < 0:
        return [b""] * len(indexes)
    if counts is None:
        return [index_stamp(first + index) for index in indexes]
    after = list(accumulate(counts[: indexes[-1] + 1], initial=first))[1:]
    return [index_stamp(after[index] - 1) if counts[index] > 0 else b"" for index in indexes]
