"""Lives of a store on a simulated disk: open, work, kill or stop, open again. Everything runs in one thread."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Coroutine
from typing import Any, TypeVar

from magnetar.runtime.clock import SystemClock
from magnetar.storage.ledgers.managed_ledger import ManagedLedger
from magnetar.storage.ledgers.stored_run import StoredRun
from magnetar.storage.local_store import LocalLedgerStore
from magnetar.storage.store import LedgerStore
from magnetar.storage.store_settings import StoreSettings
from magnetar.testing.faultfiles import FaultFileSystem
from magnetar.testing.kit.virtual_loop import InlineExecutor
from tests.support.loop_turns import settled

T = TypeVar("T")

SMALL = StoreSettings(segment_bytes=1024, cache_bytes=1, ledger_entries_max=10, ledger_min_rollover_ms=0)


def run(main: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(main)


def disk(seed: int = 0) -> FaultFileSystem:
    return FaultFileSystem(random.Random(seed))


def opened(files: FaultFileSystem, settings: StoreSettings = SMALL) -> LedgerStore:
    store = LocalLedgerStore(files, SystemClock(), settings, lambda name: InlineExecutor())
    store.open()
    return store


async def killed(store: LedgerStore, files: FaultFileSystem) -> FaultFileSystem:
    """The disk after kill -9 at a moment when nothing was being written."""
    await settled()
    return files.reopened()


async def append(store: LedgerStore, managed: ManagedLedger, *entries: bytes) -> None:
    """Each entry in a write of its own."""
    for entry in entries:
        managed.append(entry, 1, None)
        await store.journal.drain()


async def read(managed: ManagedLedger, start: int = 0) -> list[bytes]:
    """All entries from ``start`` on; raises what reading raised."""
    out: list[bytes] = []
    at = start
    while at < managed.end:
        future: asyncio.Future[StoredRun | Exception] = asyncio.get_running_loop().create_future()
        managed.read(at, 7, 1 << 20, future.set_result)
        found = await future
        if isinstance(found, Exception):
            raise found
        assert found.first == at
        position = managed.position(at)
        assert (found.ledger, found.entry) == (position.ledger, position.entry)
        out += found.entries
        at += len(found.entries)
    return out


def numbered(start: int, stop: int, size: int = 10) -> list[bytes]:
    return [(b"%d-" % i).ljust(size, b".") for i in range(start, stop)]
