"""Writes living extents a second time, a slice at a time: beside what clients write, and at a bounded rate.

While one slice is being written the next one is read and joins the next group, so that each group of a busy journal has
one. There are two in memory, and three in a hurry. What is let go between reading and writing is left out, and what is
let go later still is not taken over by the spans when the write is durable.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Final

from magnetar.model.errors import PersistenceError
from magnetar.storage.ledgers.managed_ledger import ManagedLedger
from magnetar.storage.ledgers.span_table import ExtentPlace
from magnetar.storage.log.journal import Journal
from magnetar.storage.log.write_group import PendingMove
from magnetar.storage.space.segment_sweep import LivingExtent, SegmentSweep

_SLICE_BYTES: Final = 256 << 10
"""What one group takes; measured: publish latency is the same with and without (docs/performance.md)."""
_HURRIED_BYTES: Final = 1 << 20
"""What one group takes while more is there than is aimed at and less is moved than is allowed: larger slices cost
publishers time, which is no use when the rate is reached with small ones."""
_BUSY_BYTES: Final = 1 << 20
"""While more than this waits to be written, moving waits,"""
_PATIENCE: Final = 25
"""but no longer than so many hundredths of a second: what makes room must not starve."""
_HURRIED_READS: Final = 2
"""So many slices are being read then: the thread begins the next one before the loop has heard of the one before."""
_CREDIT_MAX: Final = 4 << 20
"""Bytes that may be moved at once because less was moved before than was allowed."""
_LOOK_SECONDS: Final = 0.01
"""So often it is looked how much others have written while moving keeps to its rate."""

_PAUSE_MIN: Final = 0.001
"""No pause is shorter."""


class MoveRefusedError(Exception):
    """The disk did not take what was to be moved."""


class MovedSlice:
    """Extents on their way to their second place."""

    def __init__(self, journal: Journal, living: list[LivingExtent], logs: Mapping[int, ManagedLedger]) -> None:
        """Give them to the journal's open group, which has no others."""
        loop = asyncio.get_running_loop()
        self._logs = logs
        self._places = [(one.span, one.first, one.end, len(one.record)) for one in living]
        data = b"".join([one.record for one in living])
        self.size = len(data)
        self.begun: asyncio.Future[None] = loop.create_future()
        """Done when they are being written, or never will be: the journal takes others."""
        self.durable: asyncio.Future[None] = loop.create_future()
        """Raises MoveRefusedError."""
        self.durable.add_done_callback(_seen)
        journal.add_move(PendingMove(data, len(living), self._begun, self._durable, self._refused))

    def _begun(self) -> None:
        if not self.begun.done():
            self.begun.set_result(None)

    def _durable(self, segment: int, offset: int) -> None:
        at = offset
        for span, first, end, length in self._places:
            managed = self._logs[span.log]
            if not managed.deleted:
                managed.spans.move(ExtentPlace(segment, span.ledger, first, end, at, length), managed.first)
            at += length
        if not self.durable.done():
            self.durable.set_result(None)

    def _refused(self, error: PersistenceError) -> None:
        self._begun()
        if not self.durable.done():
            self.durable.set_exception(MoveRefusedError(str(error)))


class MovingPace:
    """Keeps moving to its rate.

    While too much is on the disk, as much as others write may be moved on top of it, or they would win: also what they
    write while moving pauses. Others write in bursts, so what was not used is good for a while.
    """

    def __init__(self, journal: Journal, bytes_per_second: int, urgent: Callable[[], bool]) -> None:
        self._journal = journal
        self._rate = bytes_per_second
        self._urgent = urgent
        self._owed = 0.0
        """Bytes that were moved and have no time yet; below zero: bytes that may be moved at once."""
        self._at = 0.0
        self._others = 0

    def begin(self) -> None:
        """Count from now on; what was owed is owed still."""
        self._owed = max(self._owed, 0.0)
        self._at, self._others = asyncio.get_running_loop().time(), self._bytes_of_others()

    def behind(self) -> bool:
        """Whether less was moved lately than is allowed."""
        return self._owed <= -_CREDIT_MAX / 2

    async def wait(self, moved: int) -> None:
        """So much was moved: wait until that keeps to the rate."""
        self._owed += moved
        while True:
            urgent = self._urgent()
            self._count(urgent)
            left = self._owed / self._rate
            if left <= 0:
                return
            await asyncio.sleep(max(min(left, _LOOK_SECONDS) if urgent else left, _PAUSE_MIN))

    def _count(self, urgent: bool) -> None:
        now, others = asyncio.get_running_loop().time(), self._bytes_of_others()
        allowed = self._rate * (now - self._at) + (others - self._others if urgent else 0)
        self._owed = max(self._owed - allowed, -float(_CREDIT_MAX))
        self._at, self._others = now, others

    def _bytes_of_others(self) -> int:
        """What was written to the journal so far and is no second place of anything."""
        return self._journal.bytes_written - self._journal.moved_bytes


class ExtentMover:
    """Belongs to a store's segment cleaner; moves one segment at a time."""

    def __init__(self, journal: Journal, bytes_per_second: int, urgent: Callable[[], bool]) -> None:
        """``urgent``: whether more is on the disk than is aimed at."""
        self._journal = journal
        self._pace = MovingPace(journal, bytes_per_second, urgent)
        self._urgent = urgent
        self.moved_bytes = 0
        """Bytes that were given a second place since the start."""

    async def move(self, sweep: SegmentSweep, logs: Mapping[int, ManagedLedger]) -> None:
        """Move what a sweep finds. Raises MoveRefusedError if the disk refuses, and what reading raises."""
        self._pace.begin()
        before: MovedSlice | None = None
        ahead: deque[asyncio.Future[list[LivingExtent] | None]] = deque()
        try:
            while (living := await self._read(sweep, ahead)) is not None:
                await self._turn(before)
                moved = self._write(living, logs)
                await self._finished(before)
                before = moved
                if moved is not None:
                    await self._pace.wait(moved.size)
        except (PersistenceError, OSError):
            # a read failed: wait for what is being written
            await self._finished(before)
            raise
        finally:
            for reading in ahead:
                reading.add_done_callback(_seen)
                reading.cancel()
        await self._finished(before)

    async def _read(
        self, sweep: SegmentSweep, ahead: deque[asyncio.Future[list[LivingExtent] | None]]
    ) -> list[LivingExtent] | None:
        """The next slice; others are being read when it is there, if there is a hurry."""
        hurry = self._urgent() and self._pace.behind()
        while len(ahead) < (_HURRIED_READS if hurry else 1):
            ahead.append(sweep.begin(_HURRIED_BYTES if hurry else _SLICE_BYTES))
        living = await ahead[0]
        del ahead[0]
        return living

    async def _turn(self, before: MovedSlice | None) -> None:
        """Wait until the open group may have a slice."""
        urgent = self._urgent()
        for _ in range(_PATIENCE):
            if urgent or self._journal.pending_bytes <= _BUSY_BYTES:
                break
            await asyncio.sleep(0.01)
        if before is not None:
            await before.begun
            if before.durable.done():
                before.durable.result()

    def _write(self, living: list[LivingExtent], logs: Mapping[int, ManagedLedger]) -> MovedSlice | None:
        """Write what is needed still; None if nothing is."""
        needed = [one for one in living if not logs[one.span.log].deleted and one.end > logs[one.span.log].first]
        moved = MovedSlice(self._journal, needed, logs) if needed else None
        living.clear()  # what it held is in the slice now, and must not be in memory twice
        return moved

    async def _finished(self, moved: MovedSlice | None) -> None:
        if moved is not None:
            await moved.durable
            self.moved_bytes += moved.size


def _seen(future: asyncio.Future[Any]) -> None:
    """The waiting task may be gone: its error is taken here."""
    if not future.cancelled():
        future.exception()
