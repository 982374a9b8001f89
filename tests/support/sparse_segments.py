"""Segments of which little lives, and passes of the segment cleaner over them."""

from __future__ import annotations

import asyncio
import random

from magnetar.storage.ledgers.managed_ledger import ManagedLedger
from magnetar.storage.ledgers.stored_run import StoredRun
from magnetar.storage.log.segment import Span
from magnetar.storage.space.segment_sweep import LivingExtent, SegmentSweep
from magnetar.storage.store import LedgerStore
from magnetar.storage.store_settings import StoreSettings
from magnetar.testing.faultfiles import FaultFileSystem
from tests.support.simulated_store import Disk, publish, read_all

SMALL = StoreSettings(
    segment_bytes=4_000,
    aligned_bytes_min=1_000,
    cache_bytes=1,
    ledger_entries_max=20,
    ledger_min_rollover_ms=0,
    reserve_bytes=0,
)


LIVING = [b"living %d" % i for i in range(4)]


def used(files: FaultFileSystem) -> int:
    """Bytes of segments and their indexes."""
    return sum(files.open(name).size() for name in files.names() if name.startswith("segment-"))


def small(disk: Disk) -> Disk:
    disk.settings = SMALL
    return disk


async def filled(store: LedgerStore, segments: int = 12) -> tuple[list[ManagedLedger], ManagedLedger]:
    """Much traffic that every subscription has consumed, and few messages of other topics that none has."""
    busy = store.open_log("busy")
    quiet = [store.open_log(f"quiet {i}") for i in range(len(LIVING))]
    for managed in quiet:
        managed.open_cursor("s", 0)
    while store.journal.segment < segments:
        i = store.journal.segment
        if i % 3 == 0 and quiet[i // 3 - 1].end == 0:
            quiet[i // 3 - 1].append(LIVING[i // 3 - 1], 1, None)
        busy.append(b"x" * 200, 1, None)
        await store.journal.drain()
        await asyncio.sleep(0.02)
    busy.open_ledger()
    busy.trim(busy.end)
    await store.journal.drain()
    return quiet, busy


async def passes(store: LedgerStore, count: int = 10, seconds: float = 15.0) -> None:
    for _ in range(count):
        await store.cleaner.run()
        await asyncio.sleep(seconds)


async def check(store: LedgerStore) -> None:
    for i, entry in enumerate(LIVING):
        log = store.find_log(f"quiet {i}")
        assert log is not None
        assert await read_all(log) == [entry]


async def emptied(store: LedgerStore, number: int) -> None:
    logs = {managed.id: managed for managed in store.logs()}
    await store.cleaner._empty(number, logs)


async def living_of(store: LedgerStore, span: Span) -> list[LivingExtent]:
    """What is needed of a span, all of it."""
    sweep = SegmentSweep(span.segment, store.reader, lambda span: span.first)
    assert await sweep.find([span]) == []
    out: list[LivingExtent] = []
    while (found := await sweep.begin(1 << 20)) is not None:
        out += found
    return out


async def roll(store: LedgerStore) -> None:
    store.journal.roll(lambda: None, lambda error: None)
    await store.journal.drain()
    await asyncio.sleep(1)


async def complete_segment(disk: Disk, entries: int) -> tuple[LedgerStore, ManagedLedger]:
    """A store, and a log whose entries are all in a segment to which nothing is written any more."""
    store = small(disk).open()
    log = store.open_log("a")
    await publish(store, log, 0, entries)
    await roll(store)
    return store, log


async def run_at(log: ManagedLedger, start: int) -> StoredRun:
    future: asyncio.Future[StoredRun | Exception] = asyncio.get_running_loop().create_future()
    log.read(start, 100, 1 << 20, future.set_result)
    found = await future
    assert not isinstance(found, Exception)
    return found


def copy_of_disk(files: FaultFileSystem) -> FaultFileSystem:
    """Return another disk that holds the same directory."""
    other = FaultFileSystem(random.Random(3))
    for name in files.names():
        if name == "LOCK":
            continue
        source, target = files.open(name), other.open(name, create=True)
        target.append([source.read(0, source.size())])
        target.sync()
    other.sync()
    return other
