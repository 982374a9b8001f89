"""Entries that only a checkpoint vouches for, in segments younger than its border: if they are gone, that is named."""

from __future__ import annotations

import asyncio

import pytest

from magnetar.storage.backends.journal_backend import segment_name
from magnetar.storage.store_settings import StoreSettings
from magnetar.storage.verify import verify
from tests.support.simulated_store import Disk, publish, read_all, readable, simulated

ENTRIES = 6
LATER = 4


async def promising(disk: Disk) -> str:
    """A checkpoint up to one segment that holds what the next one has, too; the name of that."""
    disk.settings = StoreSettings(cache_bytes=1, reserve_bytes=0)
    store = disk.open()
    log = store.open_log("t")
    await publish(store, log, 0, ENTRIES)
    async with store.keeper.no_checkpoint():
        store.journal.roll(lambda: None, print)
        await store.journal.drain()
        await publish(store, log, ENTRIES, ENTRIES + LATER)
    await asyncio.sleep(1)
    assert (store.keeper.covered()[1], store.journal.segment) == (1, 2)
    disk.kill()
    return segment_name(2)


@simulated
async def test_when_all_is_there_nothing_is_named(disk: Disk) -> None:
    await promising(disk)
    store = disk.open()
    assert store.damage == []
    log = store.find_log("t")
    assert log is not None
    assert await read_all(log) == [b"entry %d" % i for i in range(ENTRIES + LATER)]
    await store.close()


@pytest.mark.parametrize("kept", [1, 2])
def test_an_end_that_is_cut_off_a_copy_is_named(kept: int) -> None:
    """A directory that is copied while its broker runs has a checkpoint that is younger than the segment beside it."""

    @simulated
    async def main(disk: Disk) -> None:
        newest = await promising(disk)
        file = disk.files.open(newest)
        file.truncate(file.size() - (60, file.size() - 250)[kept - 1])
        file.sync()
        assert verify(disk.files).damage
        disk.kill()
        store = disk.open()
        named = [text for text in store.damage if text.startswith("t: ") and "are missing" in text]
        assert named, store.damage
        log = store.find_log("t")
        assert log is not None
        assert log.end == ENTRIES + LATER, "no ordinal is given twice"
        assert len(await readable(log)) < ENTRIES + LATER
        await publish(store, store.open_log("t"), 10, 11)
        await store.close()
        disk.kill()
        store = disk.open()
        assert store.damage == [], "it is named once"
        await store.close()

    main()


@simulated
async def test_a_segment_with_which_a_checkpoint_ends_is_not_read_but_its_length_is_known(disk: Disk) -> None:
    disk.settings = StoreSettings(cache_bytes=1, reserve_bytes=0)
    store = disk.open()
    await publish(store, store.open_log("t"), 0, ENTRIES)
    await store.close()
    file = disk.files.open(segment_name(1))
    length = file.size()
    file.truncate(length - 60)
    disk.kill()
    store = disk.open()
    said = f"{segment_name(1)} ends at {length - 60} although {length} bytes were durable"
    assert [text for text in store.damage if said in text], store.damage
    log = store.find_log("t")
    assert log is not None
    assert len(await readable(log)) == ENTRIES - 1
    await store.close()
