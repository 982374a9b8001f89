"""Every entry of a range of one topic, in bulk.

A non-durable subscription is placed at the start of the range (rule 4.3.6); it exists only while the reader does
and never keeps data from being trimmed. Permits are given generously: what limits the broker is the socket, because
bytes are read only when the caller asks for more. The connection serves nothing else and is closed at the end of the
range, which costs less than taking back what was sent too much.

The reader stops at a *position*: at the first entry at or after the end. Entries that no reader gets (markers, trimmed
or compacted ones) therefore do no harm unless they are the last of the range; then the broker falls silent and is asked
for its last message, and if that lies before what was read already, the rest of the range is missing: an error, or the
end if losses are allowed.

What was trimmed before it was read is noticed (`data_loss`): ``on_gap`` receives the gap, and a range of which
something certainly was there ends with an error unless losses are allowed.

A lost connection is made anew after the last entry that was handed over, so entries come once and in order.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

import numpy as np

from magnetar.client.bulk.data_loss import DataGap, DataLossError, Hole, gaps
from magnetar.client.errors import ClientTimeoutError, ConnectionLostError, RefusedError
from magnetar.client.lookup import Lookup
from magnetar.client.read_position import ReadPosition
from magnetar.client.reader_session import ConsumerEnd, ReaderSession
from magnetar.columnar.entries.block import FIRST, NO_INDEX, STOP, EntryBlock, EntryBytes, block_of
from magnetar.protocol import commands as c
from magnetar.runtime.clock import steady_seconds

PERMITS: Final = 1 << 28
"""Permits for good, since what limits the broker is the socket.

Not more, since brokers keep the sum in a signed 32-bit number.
"""
_SILENCE: Final = 1.0
_PAUSE: Final = 0.2


class Entry(NamedTuple):
    """One entry as it is stored; `protocol.entries` reads it."""

    ledger: int
    entry: int
    data: bytes


class RangeReader:
    """Reads ``[start, end)`` of one topic or partition; iterate it once."""

    def __init__(
        self,
        lookup: Lookup,
        topic: str,
        start: ReadPosition,
        end: ReadPosition,
        *,
        poll_timeout: float = 120.0,
        fail_on_data_loss: bool = True,
        on_gap: Callable[[DataGap], None] | None = None,
    ) -> None:
        self._lookup = lookup
        self._topic = topic
        self._start = start
        self._next = start
        self._end = end
        self._poll_timeout = poll_timeout
        self._strict = fail_on_data_loss
        self._on_gap = on_gap
        self._expected = start[:2]
        """The entry that comes next if nothing is left out."""
        self._holes: list[Hole] = []
        self._quiet_since = 0.0

    def __iter__(self) -> Iterator[list[Entry]]:
        """Yield lists of consecutive entries; an entry is given whole even if the range begins or ends inside it."""
        for block in self.blocks():
            yield [Entry(*block.stored(number)[:3]) for number in range(len(block))]

    def blocks(self) -> Iterator[EntryBlock]:
        """Yield the entries in blocks, without an object per entry.

        What lies outside the range is marked as not wanted.
        """
        if self._start >= self._end:
            return
        self._quiet_since = steady_seconds()
        while True:
            try:
                with self._lookup.patiently(lambda: ReaderSession(self._lookup, self._topic, self._next)) as session:
                    yield from self._blocks(session)
                return
            except ConnectionLostError:
                self._check_patience("its connection keeps breaking")
                time.sleep(_PAUSE)

    def _blocks(self, session: ReaderSession) -> Iterator[EntryBlock]:
        # Its kernels take a quarter of a second to load, and the driver imports this module too.
        from magnetar.client.bulk.block_receiver import BlockReceiver

        receiver = BlockReceiver(session.connection, session.consumer_id)
        session.flow(PERMITS)
        while True:
            found, done, closed = self._take(receiver.receive(_SILENCE))
            if self._holes:
                self._look_into_holes()
            for block in found:
                ledger, entry = block.table[:2, -1].tolist()
                self._next = ReadPosition(ledger, entry + 1)
                yield block
                self._quiet_since = steady_seconds()
            if not done and not found:
                receiver.release()
            if done or (not found and self._over(session)):
                return
            if closed or not found:
                # Also after silence with entries left: whatever kept them away, a new reader begins afresh.
                raise ConnectionLostError(f"the broker does not serve the reader of {self._topic} any more")

    def _take(self, items: list[EntryBlock | c.Command]) -> tuple[list[EntryBlock], bool, bool]:
        """Return entries inside the range, whether it is over, and whether the broker ended the consumer."""
        found: list[EntryBlock] = []
        for item in items:
            if isinstance(item, ConsumerEnd):
                return found, False, True
            if not isinstance(item, EntryBlock):
                if type(item) is not c.CommandMessage:
                    continue
                item = self._alone(item)
            first, last, done = self._inside(item)
            if first < last:
                found.append(self._trimmed(item.part(first, last)))
            if done:
                return found, True, False
        return found, False, False

    def _inside(self, block: EntryBlock) -> tuple[int, int, bool]:
        """Return which entries of a block belong to the range and are new, and whether the range ends there; notes
        holes."""
        table = block.table
        ledger, entry = table[:2, 0].tolist()
        last_ledger, last = table[:2, -1].tolist()
        if (
            (ledger, entry) == self._expected
            and last_ledger == ledger
            and last - entry == len(block) - 1
            and (last_ledger, last) < self._last_wanted()
            and bool((np.diff(table[1]) == 1).all())
        ):
            self._expected = (ledger, last + 1)
            return 0, len(block), False
        first = 0
        for number, at in enumerate(zip(*table[:2].tolist(), strict=True)):
            if at != self._expected and at > self._expected >= (0, 0):
                self._holes.append(Hole(ReadPosition(*self._expected), min(ReadPosition(*at), self._end)))
            if at >= self._end[:2] and (at > self._end[:2] or not self._end.batch):
                return first, number, True
            if at < self._next[:2]:
                first = number + 1
                continue
            self._expected = (at[0], at[1] + 1)
            if at == self._last_wanted():
                return first, number + 1, True
        return first, len(block), False

    def _alone(self, message: c.CommandMessage) -> EntryBlock:
        """Return a message that did not come in a block. Its checksum counts only if it is inside the range."""
        ledger, number = message.message_id[:2]
        if not message.checksum_ok and self._next[:2] <= (ledger, number) <= self._last_wanted():
            raise DataLossError(
                f"{self._topic}: entry {ledger}:{number} does not have the checksum its producer gave it; "
                "read around it with startingOffsets",
                DataGap(self._topic, ReadPosition(ledger, number), ReadPosition(ledger, number + 1), certain=True),
            )
        shown = message.broker_metadata
        index = shown.index if shown is not None and shown.index is not None else NO_INDEX
        return block_of([EntryBytes(ledger, number, message.entry, index)])

    def _trimmed(self, block: EntryBlock) -> EntryBlock:
        """Mark messages before the start and from the end on as not wanted."""
        table = block.table
        if self._start.batch and tuple(table[:2, 0].tolist()) == self._start[:2]:
            table[FIRST, 0] = self._start.batch
        if self._end.batch and tuple(table[:2, -1].tolist()) == self._end[:2]:
            table[STOP, -1] = self._end.batch
        return block

    def _look_into_holes(self) -> None:
        holes, self._holes = self._holes, []

        def ask() -> ReadPosition:
            with ReaderSession(self._lookup, self._topic, holes[0].start) as session:
                return session.placed_at()

        for gap in gaps(self._topic, holes, self._lookup.patiently(ask), self._end):
            self._missed(gap)

    def _missed(self, gap: DataGap) -> None:
        if self._on_gap is not None:
            self._on_gap(gap)
        if gap.certain and self._strict:
            raise DataLossError(f"{gap}; set failOnDataLoss=false to go on without it", gap)

    def _last_wanted(self) -> tuple[int, int]:
        """Return the entry after which nothing can follow in the range."""
        return (self._end.ledger, self._end.entry if self._end.batch else self._end.entry - 1)

    def _over(self, session: ReaderSession) -> bool:
        """Return whether the rest of the range is gone, after silence; DataLossError if that must not be."""
        try:
            last = session.last_position()
        except RefusedError as refusal:
            raise ConnectionLostError(str(refusal)) from None
        if last > self._next:
            return False
        gap = DataGap(self._topic, max(self._next, self._start), self._end, certain=True)
        if self._on_gap is not None:
            self._on_gap(gap)
        if self._strict:
            raise DataLossError(
                f"{self._topic}: nothing is left to read between {self._next} and {self._end}: it was trimmed or "
                "compacted away, or the end lies beyond the topic's; set failOnDataLoss=false to go on without it",
                gap,
            )
        return True

    def _check_patience(self, why: str) -> None:
        quiet = steady_seconds() - self._quiet_since
        if quiet > self._poll_timeout:
            raise ClientTimeoutError(
                f"{self._topic}: no entry of {self._next} to {self._end} in {quiet:.0f} s, {why}; see pollTimeoutMs"
            )
