"""One run of compaction: two passes over the topic as a compacted reader sees it, and a new log with what stays.

Runs in a task of its own, on the loop, in small steps: a few dozen messages, then the turn of others; and it waits
for the disk after each megabyte it has written. What it reads goes through the store's reader like any backlog.
In memory: one dict entry per living key, and what one read brings.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection, Sequence
from functools import partial
from typing import Final

from magnetar.broker.topic.compaction.compacted_source import CompactedSource
from magnetar.broker.topic.compaction.compaction_stats import CompactionStats
from magnetar.broker.topic.compaction.view_writer import ViewWriter
from magnetar.broker.topic.dispatch.dispatch_filter import DispatchRule
from magnetar.compaction.compaction_cursor import CompactedLedger
from magnetar.compaction.messages import BatchEntry, InspectedEntry, MarkerEntry, inspect_entry
from magnetar.compaction.survivors import Survivors
from magnetar.runtime.callbacks import answered
from magnetar.storage.ledgers.managed_ledger import ManagedLedger
from magnetar.storage.ledgers.stored_run import NO_INDEX, StoredRun

_STEP_MESSAGES: Final = 64
_STEP_BYTES: Final = 256 << 10
"""After so much the loop goes on with others; one entry is never divided."""
_READ_ENTRIES: Final = 1000
_READ_BYTES: Final = 1 << 20


class CompactionRun:
    """``source`` is of its own; everything below ``horizon`` is compacted into ``target``, an empty log."""

    def __init__(
        self, source: CompactedSource, target: ManagedLedger, horizon: int, dispatch_rules: Sequence[DispatchRule], *,
        retain_keyless: bool, keep_index: bool = False,
    ) -> None:  # fmt: skip
        self._source = source
        self._rules = dispatch_rules
        self._writer = ViewWriter(target)
        self._horizon = horizon
        self._keep_index = keep_index
        self._survivors = Survivors(retain_keyless=retain_keyless)
        self._messages = self._bytes = 0
        self._read = 0

    def note(self, stats: CompactionStats) -> None:
        """Put down what the run has read and written."""
        stats.bytes_read, stats.bytes_written = self._read, self._writer.bytes
        self._writer.written.turn()
        stats.write_latency = self._writer.written.last.latency

    @property
    def ledgers(self) -> list[CompactedLedger]:
        """Those of which something stays, in the end."""
        return self._writer.ledgers

    @property
    def removed(self) -> int:
        """Messages that did not stay."""
        return self._survivors.removed

    async def run(self) -> None:
        """Return when the whole view is durable. Raises PersistenceError."""
        async for run in self._runs():
            dead = self._dead(run)
            for i, entry in enumerate(run.entries):
                seen = inspect_entry(entry) if run.first + i not in dead else MarkerEntry()
                self._survivors.note(run.first + i, seen)
                await self._step(entry, seen)
        async for run in self._runs():
            dead = self._dead(run)
            index = run.message_index if self._keep_index else NO_INDEX
            for i, entry in enumerate(run.entries):
                seen = inspect_entry(entry) if run.first + i not in dead else MarkerEntry()
                stays = self._survivors.kept(run.first + i, seen, entry)
                if stays is not None:
                    count = 1 if run.counts is None else run.counts[i]
                    await self._writer.write(run.first + i, run.ledger, run.entry + i, stays, count, index)
                index += 1 if run.counts is None else run.counts[i]
                await self._step(entry, seen)
        await self._writer.durable()

    def _dead(self, run: StoredRun) -> Collection[int]:
        """Entries that are for no consumer: of aborted transactions, markers."""
        stop = run.first + len(run.entries)
        return {ordinal for rule in self._rules for ordinal in rule.dead(run.first, stop)}

    async def _runs(self) -> AsyncIterator[StoredRun]:
        source, horizon = self._source, self._horizon
        at = source.first
        while at < horizon:
            run = source.cached(at, _READ_ENTRIES, _READ_BYTES)
            if run is None:
                read: StoredRun = await answered(partial(source.read, at, _READ_ENTRIES, _READ_BYTES))
                if not read.entries:
                    continue
                run = read
            at = run.first + len(run.entries)
            if run.first >= horizon:
                return
            self._read += sum(map(len, run.entries))
            if at > horizon:
                run = run._replace(entries=run.entries[: horizon - run.first])
            yield run
        source.release()

    async def _step(self, entry: bytes, seen: InspectedEntry) -> None:
        self._messages += len(seen.messages) if isinstance(seen, BatchEntry) else 1
        self._bytes += len(entry)
        if self._messages >= _STEP_MESSAGES or self._bytes >= _STEP_BYTES:
            self._messages = self._bytes = 0
            await asyncio.sleep(0)
