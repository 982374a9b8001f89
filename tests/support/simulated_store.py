"""Stores on a simulated disk in virtual time, one life after the other."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import Any

from magnetar.storage.ledgers.managed_ledger import ManagedLedger
from magnetar.storage.ledgers.stored_run import StoredRun
from magnetar.storage.local_store import LocalLedgerStore
from magnetar.storage.store import LedgerStore
from magnetar.storage.store_settings import StoreSettings
from magnetar.testing.faultfiles import FaultFileSystem
from magnetar.testing.kit.virtual_loop import InlineExecutor
from magnetar.testing.simloop import SimClock, run

SIX_HUNDRED_BYTE_SEGMENTS = StoreSettings(
    segment_bytes=600, aligned_bytes_min=250, cache_bytes=1, ledger_entries_max=10, ledger_min_rollover_ms=0
)


class Disk:
    """A disk on which stores are opened one after the other."""

    def __init__(self, settings: StoreSettings = SIX_HUNDRED_BYTE_SEGMENTS) -> None:
        self.files = FaultFileSystem(random.Random(1))
        self.settings = settings

    def open(self) -> LedgerStore:
        loop = asyncio.get_running_loop()
        store = LocalLedgerStore(self.files, SimClock(loop), self.settings, _executor)
        store.open()
        return store

    def power_off(self) -> None:
        """Whatever was not synced may be gone."""
        self.files = self.files.crash(random.Random(2))

    def kill(self) -> None:
        """The process is gone, the page cache is not."""
        self.files = self.files.reopened()


def _executor(name: str) -> Executor:
    # given work by the reader's, which has a lane of the loop's
    return InlineExecutor() if name == "ahead" else ThreadPoolExecutor(1)


async def publish(store: LedgerStore, log: ManagedLedger, start: int, stop: int) -> None:
    """One group per entry."""
    for i in range(start, stop):
        log.append(b"entry %d" % i, 1, None)
        await store.journal.drain()


async def read_all(log: ManagedLedger) -> list[bytes]:
    out: list[bytes] = []
    while (at := log.first + len(out)) < log.end:
        future: asyncio.Future[StoredRun | Exception] = asyncio.get_running_loop().create_future()
        log.read(at, 100, 1 << 20, future.set_result)
        found = await future
        if isinstance(found, Exception):
            raise found
        out += found.entries
    return out


def simulated(test: Callable[[Disk], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    """Run the test's coroutine in virtual time, with an empty disk."""

    def wrapper() -> None:
        run(1, test(Disk()))

    wrapper.__name__ = test.__name__
    wrapper.__doc__ = test.__doc__
    return wrapper


async def readable(log: ManagedLedger) -> dict[int, bytes]:
    """Every entry that can be read, by ordinal; reading goes on after what cannot."""
    assert log.end - log.first < 10_000, f"{log.end} entries, which nobody wrote"
    out: dict[int, bytes] = {}
    at = log.first
    while at < log.end:
        future: asyncio.Future[StoredRun | Exception] = asyncio.get_running_loop().create_future()
        log.read(at, 100, 1 << 20, future.set_result)
        found = await future
        if isinstance(found, Exception):
            at += 1
            continue
        for i, entry in enumerate(found.entries):
            out[found.first + i] = entry
        at = found.first + len(found.entries)
    return out


def used_bytes(files: FaultFileSystem) -> int:
    return sum(inode.taken for inode in files._disk.directory.live.values())
