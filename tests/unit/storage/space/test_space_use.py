"""What the directory takes against what is promised: counted, shown, and said once a minute while it is too much."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace

import pytest

from magnetar.runtime.tasks import TaskGroup
from magnetar.storage.space.space_use import SEGMENTS, SpaceUse
from magnetar.storage.store import LedgerStore
from tests.support.simulated_store import Disk, simulated
from tests.support.sparse_segments import SMALL, small, used


async def _scattered(store: LedgerStore) -> None:
    """Much traffic that is consumed, and a message that stays in each of a dozen segments."""
    busy = store.open_log("busy")
    while store.journal.segment < 12:
        name = f"quiet {store.journal.segment}"
        if name not in store:
            store.open_log(name).append(b"stays", 1, None)
        busy.append(b"x" * 200, 1, None)
        await store.journal.drain()
        await asyncio.sleep(0.02)
    busy.open_ledger()
    busy.trim(busy.end)
    await store.journal.drain()


def _warnings(caught: list[logging.LogRecord]) -> list[str]:
    return [record.getMessage() for record in caught if record.levelno == logging.WARNING]


async def _passes(store: LedgerStore, seconds: int) -> list[logging.LogRecord]:
    caught: list[logging.LogRecord] = []
    handler = logging.Handler()
    handler.emit = caught.append  # type: ignore[method-assign, assignment]
    logger = logging.getLogger("magnetar.storage.space.space_use")
    logger.addHandler(handler)
    try:
        group = TaskGroup("passes")
        group.repeat(10.0, store.cleaner.run, "space")
        await asyncio.sleep(seconds)
        await group.close()
    finally:
        logger.removeHandler(handler)
    return caught


@simulated
async def test_what_is_there_and_what_lives_is_counted(disk: Disk) -> None:
    store = small(disk).open()
    await _scattered(store)
    assert await _passes(store, 90) == []
    now = store.cleaner.use.now
    on_disk = used(disk.files)
    assert now.size == pytest.approx(on_disk, rel=0.4)
    assert 0 < now.living < 1000
    assert (now.bound, now.over) == (2 * now.living + SEGMENTS * SMALL.segment_bytes, 0)
    assert SpaceUse(1000, 100, 800).over == 200
    await store.close()


@simulated
async def test_a_directory_that_stays_too_large_is_named_once_a_minute_with_figures(disk: Disk) -> None:
    """The machine has no time to move anything: nothing is emptied."""
    small(disk).settings = replace(SMALL, reserve_bytes=0)
    store = disk.open()
    await _scattered(store)
    store.cleaner._empty_victims = _nothing  # type: ignore[method-assign]
    warned = _warnings(await _passes(store, 110))
    assert store.cleaner.use.now.over > 0
    assert len(warned) == 2, "not with every pass"
    assert "more than twice what lives" in warned[0]
    assert "MB/s were moved" in warned[0]
    del store.cleaner._empty_victims
    assert _warnings(await _passes(store, 200)) == []
    assert store.cleaner.use.now.over == 0
    await store.close()


@simulated
async def test_where_nothing_is_to_be_moved_nothing_is_promised(disk: Disk) -> None:
    small(disk).settings = replace(SMALL, reclaim_bytes_per_second=0)
    store = disk.open()
    await _scattered(store)
    assert _warnings(await _passes(store, 70)) == []
    assert store.cleaner.use.now.over > 0, "metrics show it"
    await store.close()


async def _nothing() -> None: ...
