"""Living entries out of mostly dead segments, so that the disk comes back (docs/decisions/005-rescue.md).

A pass removes what is not needed, empties the segments that :mod:`magnetar.storage.space.victims` names, and begins a
new segment if that is what removing waits for: checkpoints are written when a segment is sealed, and a segment goes
only when both kept checkpoints know that nothing in it is needed.

To empty a segment is to copy: the reader's thread reads living extents and checks them
(:mod:`magnetar.storage.space.segment_sweep`), the journal writes them again after whatever waits, and when that is
durable the spans point there (:mod:`magnetar.storage.space.extent_mover`). Nothing is moved that cannot be read: a
segment with such a place is named once and stays as it is.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import AsyncIterator, Callable, Iterable
from heapq import merge
from typing import Final, Protocol

from magnetar.model.errors import PersistenceError
from magnetar.runtime.tasks import EarlyCall, in_turns
from magnetar.storage.backends.journal_backend import is_shortage, segment_name
from magnetar.storage.ledgers.entry_reader import EntryReader
from magnetar.storage.ledgers.managed_ledger import ManagedLedger
from magnetar.storage.log.journal import Journal
from magnetar.storage.log.records import BLOCK_HEADER_SIZE, SEGMENT_HEADER_SIZE
from magnetar.storage.log.segment import Span
from magnetar.storage.space.extent_mover import ExtentMover, MoveRefusedError
from magnetar.storage.space.occupancy import Occupancy
from magnetar.storage.space.segment_keeper import SegmentKeeper
from magnetar.storage.space.segment_sweep import SegmentSweep
from magnetar.storage.space.space_use import SpaceUseLog
from magnetar.storage.space.victims import SPARSE, SegmentUse, excess, victims

log = logging.getLogger(__name__)

_SORTED_AT_ONCE: Final = 2000
_PASS_SEGMENTS: Final = 4
"""So much living data, in segments, is moved before what is best is looked at again."""
_EARLY_PART: Final = 4
"""When so large a part of a segment has died, a pass is begun at once."""
_ROUND_SECONDS: Final = 1.0
"""A pass that finds more than is aimed at goes on after so long."""
_ROLL_PART: Final = 8
"""So large a part of a segment has to wait for checkpoints before one is written for its sake."""
_ROLL_BYTES: Final = SEGMENT_HEADER_SIZE + BLOCK_HEADER_SIZE
_ROLL_SECONDS: Final = 10.0
_REST: Final = 100
"""Between two such checkpoints lies this many times what one takes,"""
_HURRIED_REST: Final = 20
"""or this many if moving waits for it: then nor does it have to be ten seconds."""
_NEWEST_SECONDS: Final = 60.0
"""The newest segment is ended for the sake of its own garbage when it has been the newest for so long."""
_COUNT_SECONDS: Final = 0.1
"""So often at most it is counted how much is there: with a terabyte there are 8,000 segments to add up."""
_REFUSED_SECONDS: Final = 60.0
"""When the disk has refused a move: others want what space there is."""


class SegmentCleanerHome(Protocol):
    """The store, as this sees it."""

    journal: Journal
    occupancy: Occupancy

    def logs(self) -> Iterable[ManagedLedger]: ...


class SegmentCleaner:
    """Belongs to one store; lives on its loop."""

    def __init__(
        self, home: SegmentCleanerHome, keeper: SegmentKeeper, reader: EntryReader, slack: int, bytes_per_second: int
    ) -> None:
        self._home = home
        self._keeper = keeper
        self._reader = reader
        self._slack = slack
        self._moves = bytes_per_second > 0
        self.mover = ExtentMover(home.journal, bytes_per_second, self._urgent)
        self.use = SpaceUseLog(home, slack)
        self._damaged: set[int] = set()
        self._not_before = 0.0
        self._again = 0.0
        self._counted_at, self._excess = -math.inf, 0
        self._one = asyncio.Lock()
        self.early = EarlyCall()
        """Asks for a pass when much has died since the last one."""
        home.occupancy.worth = slack // _EARLY_PART
        home.occupancy.on_died = self.early.ask
        self.emptied = self._rolls = 0
        """Segments that were emptied and begun, since the start."""

    @property
    def moved_bytes(self) -> int:
        """Bytes that were given a second place since the start."""
        return self.mover.moved_bytes

    async def run(self) -> None:
        """One pass. Whatever fails is named and left for a later one."""
        async with self._one:
            begun, others = self.moved_bytes, self._bytes_of_others()
            while True:
                moved = self.moved_bytes
                present = await self._keeper.measure()
                await self._keeper.remove_dead()
                if self._may_move():
                    await self._empty_victims()
                    await self._keeper.remove_dead()
                await self._roll_if_due(present)
                now = asyncio.get_running_loop().time()
                self.use.count(now, self._keeper.covered()[1], promised=self._moves and not self._damaged)
                if not self._may_move() or not self._urgent():
                    return
                if self._in_vain(self.moved_bytes - begun, self._bytes_of_others() - others):
                    return
                # too much is there: on, as soon as what was moved does not lie there twice any more
                waits = moved == self.moved_bytes or self._home.occupancy.copied > self._slack
                await asyncio.sleep(_ROUND_SECONDS if waits else 0)

    def _bytes_of_others(self) -> int:
        """What was written so far for something else than to make room."""
        return self._home.journal.bytes_written - self._home.journal.moved_bytes - _ROLL_BYTES * self._rolls

    def _in_vain(self, moved: int, others: int) -> bool:
        """Whether a pass has moved everything twice, and twice what came while it ran: moving does not help, as where
        segments are so small that their heads are most of them."""
        occupancy = self._home.occupancy
        living = sum(occupancy.living(number) for number in occupancy.numbers())
        return moved > 2 * (living + others) + _PASS_SEGMENTS * self._slack

    async def make_room(self, least: int) -> None:
        """Remove what is dead on a full disk, moving nothing; begin a segment if over ``least`` bytes wait for it."""
        async with self._one:
            present = await self._keeper.measure()
            await self._keeper.remove_dead()
            journal, occupancy = self._home.journal, self._home.occupancy
            waiting = occupancy.waiting(present, self._keeper.covered()[0])
            if not occupancy.living(journal.segment):
                waiting += journal.open_bytes
            waiting += await self._keeper.dead_without_checkpoint(present)
            now = asyncio.get_running_loop().time()
            # a checkpoint that the disk refused is not worth another segment every second
            if waiting > least and (self._keeper.covered()[1] >= journal.segment - 1 or now >= self._again):
                self._again = now + _REFUSED_SECONDS
                await self._roll()

    def _may_move(self) -> bool:
        return self._moves and asyncio.get_running_loop().time() >= self._not_before

    def _urgent(self) -> bool:
        """Whether more is there than is aimed at."""
        now = asyncio.get_running_loop().time()
        if now >= self._counted_at + _COUNT_SECONDS:
            self._counted_at, self._excess = now, excess(self._uses(), self._slack)
        return self._excess > 0

    # emptying ----------------------------------------------------------------------------------------------------

    def _uses(self) -> list[SegmentUse]:
        newest = self._keeper.covered()[1]
        return [use for use in self._home.occupancy.uses() if use.number <= newest and use.number not in self._damaged]

    async def _empty_victims(self) -> None:
        plan = victims(self._uses(), self._slack)
        if not plan:
            return
        logs: dict[int, ManagedLedger] = {}
        async for managed in in_turns(list(self._home.logs()), 2000):
            logs[managed.id] = managed
        left = _PASS_SEGMENTS * self._slack
        emptied, moved = self.emptied, self.moved_bytes
        for use in plan:
            if left <= 0 or self._home.occupancy.copied > self._slack:  # making room takes room
                break
            left -= use.living
            try:
                await self._empty(use.number, logs)
            except (MoveRefusedError, PersistenceError, OSError) as error:
                if isinstance(error, MoveRefusedError) or is_shortage(error):
                    log.warning("making room waits for %g s: %s", _REFUSED_SECONDS, error)
                    self._not_before = asyncio.get_running_loop().time() + _REFUSED_SECONDS
                    return
                if use.number not in self._home.occupancy:
                    continue  # all that was in it was let go, and it was removed before it was read
                self._damaged.add(use.number)
                self._home.occupancy.stays(use.number)
                log.error("%s stays as it is, with what is not needed of it: %s", segment_name(use.number), error)
        log.info("emptied %d segments: %d bytes were moved", self.emptied - emptied, self.moved_bytes - moved)

    async def _empty(self, number: int, logs: dict[int, ManagedLedger]) -> None:
        def needed(span: Span) -> int | None:
            managed = logs.get(span.log)
            if managed is None or managed.deleted:
                return None
            start = max(span.first, managed.first)
            # a span that was let go is dropped when that is durable, one that was moved is not in the table
            return start if start < span.end and managed.spans.holding(start) is span else None

        spans = [span async for span in _in_order(self._home.occupancy.spans(number))]
        while spans:
            sweep = SegmentSweep(number, self._reader, needed)
            spans = await sweep.find(spans)
            await self.mover.move(sweep, logs)
        if number not in self._home.occupancy:
            self.emptied += 1

    # checkpoints for the sake of space ---------------------------------------------------------------------------

    async def _roll_if_due(self, present: Iterable[int]) -> None:
        home, loop = self._home, asyncio.get_running_loop()
        sealed_at, took = self._keeper.sealing
        quiet = loop.time() - sealed_at
        copied = home.occupancy.copied > self._slack
        rest = max(_ROUND_SECONDS, _HURRIED_REST * took) if copied else max(_ROLL_SECONDS, _REST * took)
        if quiet < rest or loop.time() < self._not_before:
            return
        waiting = home.occupancy.waiting(present, self._keeper.covered()[0])
        newest = home.journal.open_bytes
        if quiet >= _NEWEST_SECONDS and home.occupancy.living(home.journal.segment) * SPARSE <= newest:
            waiting += newest
        if waiting * _ROLL_PART >= self._slack:
            await self._roll()

    async def _roll(self) -> None:
        home, loop = self._home, asyncio.get_running_loop()
        begun: asyncio.Future[None] = loop.create_future()

        def refused(error: PersistenceError) -> None:
            self._not_before = loop.time() + _REFUSED_SECONDS
            _settle(begun, lambda: begun.set_result(None))

        self._rolls += 1
        home.journal.roll(lambda: _settle(begun, lambda: begun.set_result(None)), refused)
        await begun


async def _in_order(spans: list[Span]) -> AsyncIterator[Span]:
    """Spans by log and ordinal. A segment can hold a piece of each of 100,000 topics: they are sorted a few at a
    time."""
    parts = []
    for at in range(0, len(spans), _SORTED_AT_ONCE):
        parts.append(sorted(spans[at : at + _SORTED_AT_ONCE], key=_place))
        await asyncio.sleep(0)
    async for span in in_turns(merge(*parts, key=_place), _SORTED_AT_ONCE):
        yield span


def _place(span: Span) -> tuple[int, int]:
    return span.log, span.first


def _settle(future: asyncio.Future[None], act: Callable[[], None]) -> None:
    if not future.done():
        act()
