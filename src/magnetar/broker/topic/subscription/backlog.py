"""How many bytes lie after a position of a log: as Pulsar estimates it, and exactly.

The estimate reads nothing: whole ledgers exactly, of the one that holds the position the entries that are left times
its average entry size (rounded down). The exact number reads that ledger's entries once and remembers how far it came,
so asking again costs only what was consumed meanwhile.
"""

from __future__ import annotations

import asyncio
from functools import partial

from magnetar.broker.topic.ports import EntryRun, Log
from magnetar.runtime.callbacks import answered
from magnetar.storage.ledgers.ledger import Ledger
from magnetar.storage.ledgers.managed_ledger import ManagedLedger

PIECE_ENTRIES = 1000
PIECE_BYTES = 1 << 20


def bytes_behind(log: ManagedLedger, ordinal: int) -> int:
    """Entry bytes after ``ordinal`` (a mark-delete position), estimated."""
    total = 0
    for ledger in reversed(log.table.ledgers):
        total += ledger.bytes
        if ledger.ordinal <= ordinal:
            consumed = min(ordinal + 1 - ledger.ordinal, ledger.entries)
            if consumed == ledger.entries:
                return total - ledger.bytes
            return total - consumed * (ledger.bytes // ledger.entries)
    return total


async def run_at(log: Log, start: int, entries_max: int = PIECE_ENTRIES) -> EntryRun:
    """Entries from ``start`` on, from memory or disk; begins at ``log.first`` if those were trimmed.

    What is in memory is returned at once: who reads piece after piece gives others a turn after each. Raises what
    reading raised.
    """
    run = log.cached(start, entries_max, PIECE_BYTES) if start >= log.first else None
    if run is not None:
        return run
    return await answered(partial(log.read, start, entries_max, PIECE_BYTES))


class BacklogSize:
    """The exact size after positions of one log that move forward, mostly."""

    def __init__(self, log: ManagedLedger) -> None:
        self._log = log
        self._ledger = -1
        self._at = 0
        self._before = 0
        """Bytes of the ledger's entries before ``_at``."""

    async def reaches(self, ordinal: int, limit: int) -> bool:
        """Whether ``limit`` bytes or more lie after ``ordinal``. Reads only if the ledgers' sizes do not decide."""
        low, high = self._bounds(ordinal)
        if low >= limit:
            return True
        return high >= limit and await self.behind(ordinal) >= limit

    def _bounds(self, ordinal: int) -> tuple[int, int]:
        log = self._log
        holding = log.table.holding(ordinal + 1)
        later = sum(ledger.bytes for ledger in log.table.ledgers if ledger.ordinal > holding.ordinal)
        return later, later + holding.bytes

    async def behind(self, ordinal: int) -> int:
        """Bytes of the entries after ``ordinal``."""
        log, stop = self._log, ordinal + 1
        holding = log.table.holding(stop)
        before = await self._before_in(holding, stop)
        later = sum(ledger.bytes for ledger in log.table.ledgers if ledger.ordinal > holding.ordinal)
        return later + holding.bytes - before

    async def _before_in(self, ledger: Ledger, stop: int) -> int:
        log = self._log
        if stop <= ledger.ordinal:
            return 0
        hidden = ledger is log.table.ledgers[0] and log.hidden > ledger.ordinal
        start, size = (log.hidden, log.hidden_bytes) if hidden else (ledger.ordinal, 0)
        if self._ledger == ledger.id and start <= self._at <= stop:
            start, size = self._at, self._before
        while start < stop:
            run = await run_at(log, start, min(PIECE_ENTRIES, stop - start))
            size += sum(map(len, run.entries))
            start = run.first + len(run.entries)
            await asyncio.sleep(0)
        self._ledger, self._at, self._before = ledger.id, start, size
        return size
