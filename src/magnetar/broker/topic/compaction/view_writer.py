"""Filling a view's log: entries that stay, in order, and never more than a megabyte that the disk does not have yet."""

from __future__ import annotations

import asyncio
from typing import Final

from magnetar.broker.topic.publish.write_stats import WriteStats
from magnetar.compaction.compaction_cursor import CompactedLedger
from magnetar.compaction.view_entries import pack
from magnetar.model.errors import PersistenceError
from magnetar.storage.ledgers.managed_ledger import ManagedLedger
from magnetar.storage.ledgers.stored_run import NO_INDEX

_WRITE_BYTES: Final = 1 << 20
"""Written and not durable yet, at most."""


class ViewWriter:
    """Writes a view; ``target`` is an empty log that nothing else writes to."""

    def __init__(self, target: ManagedLedger) -> None:
        self._target = target
        self._unwritten = 0
        self._failed: PersistenceError | None = None
        self.ledgers: list[CompactedLedger] = []
        """Those of which something stays, in the end."""
        self.written = WriteStats()
        self.bytes = 0
        target.on_counted = self.written.stored
        target.on_failed = lambda extent, error: self._lost(error)

    async def write(
        self, ordinal: int, ledger: int, entry: int, data: bytes, count: int, index: int = NO_INDEX
    ) -> None:
        """An entry that stays, ``count`` messages, of which ``index`` is the first's. Raises PersistenceError."""
        if not self.ledgers or self.ledgers[-1].id != ledger:
            self.ledgers.append(CompactedLedger(ledger, ordinal - entry, ordinal + 1))
        else:
            self.ledgers[-1] = self.ledgers[-1]._replace(end=ordinal + 1)
        self._target.append(pack(ordinal, ledger, entry, data, index), count, None)
        self._unwritten += len(data)
        self.bytes += len(data)
        if self._unwritten >= _WRITE_BYTES:
            await self.durable()

    async def durable(self) -> None:
        """Everything so far is on disk. Raises PersistenceError."""
        answer: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def done() -> None:
            if not answer.done():
                answer.set_result(None)

        self._target.barrier(done, lambda error: self._lost(error, answer))
        await answer
        await asyncio.sleep(0)  # what the last group took is counted after those who wait for it
        self._unwritten = 0
        if self._failed is not None:
            raise self._failed

    def _lost(self, error: PersistenceError, answer: asyncio.Future[None] | None = None) -> None:
        self._failed = error
        if answer is not None and not answer.done():
            answer.set_result(None)
