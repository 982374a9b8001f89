"""Regressions of start-up and journal on the simulated disk: each is a bug that a simulation found."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from magnetar.storage.cache import Run
from magnetar.storage.managed_ledger import ManagedLedger
from magnetar.storage.store import LedgerStore, StoreSettings
from magnetar.testing.faultfiles import FaultFileSystem
from magnetar.testing.simloop import SimClock, run

SMALL = StoreSettings(segment_bytes=600, cache_bytes=1, ledger_entries_max=10, ledger_min_rollover_ms=0)


class Disk:
    """A disk on which stores are opened one after the other."""

    def __init__(self, settings: StoreSettings = SMALL) -> None:
        self.files = FaultFileSystem(random.Random(1))
        self.settings = settings

    def open(self) -> LedgerStore:
        loop = asyncio.get_running_loop()
        store = LedgerStore(self.files, SimClock(loop), self.settings, lambda _: ThreadPoolExecutor(1))
        store.open()
        return store

    def power_off(self) -> None:
        """Whatever was not synced may be gone."""
        self.files = self.files.crash(random.Random(2))

    def kill(self) -> None:
        """The process is gone, the page cache is not."""
        self.files = self.files.reopened()


async def publish(store: LedgerStore, log: ManagedLedger, start: int, stop: int) -> None:
    """One group per entry."""
    for i in range(start, stop):
        log.append(b"entry %d" % i, 1, None)
        await store.journal.drain()


async def read_all(log: ManagedLedger) -> list[bytes]:
    out: list[bytes] = []
    while (at := log.first + len(out)) < log.end:
        future: asyncio.Future[Run | Exception] = asyncio.get_running_loop().create_future()
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


@simulated
async def test_the_first_block_behind_a_checkpoint_is_replayed(disk: Disk) -> None:
    """tests/sim/test_durability.py seed 9: the checkpoint named a sequence that was too high."""
    store = disk.open()
    log = store.open_log("a")
    await publish(store, log, 0, 40)
    disk.kill()
    store = disk.open()
    assert store.damage == []
    log = store.open_log("a")
    await store.journal.drain()
    assert await read_all(log) == [b"entry %d" % i for i in range(40)]


@simulated
async def test_what_recovery_found_in_the_page_cache_is_made_durable(disk: Disk) -> None:
    """tests/sim/test_durability.py seed 158: kill -9 between write and sync, start, power loss: the checkpoint of the
    start counted entries that were never synced."""
    for _ in range(8):
        store = disk.open()
        log = store.open_log("a")
        log.append(b"x" * 700, 1, None)
        await asyncio.sleep(0)
        disk.files.stop_after(3, lambda: None)
        await asyncio.sleep(1)
        disk.kill()
        store = disk.open()
        end = store.open_log("a").end
        disk.power_off()
        store = disk.open()
        log = store.open_log("a")
        assert log.end == end
        assert await read_all(log) == [b"x" * 700] * end
        await store.close()
