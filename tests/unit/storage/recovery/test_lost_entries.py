"""A block of a log is lost, and what stands behind it speaks of what was in it."""

from __future__ import annotations

from magnetar.storage.backends.file_names import checkpoint_names
from magnetar.storage.backends.journal_backend import segment_name
from magnetar.storage.log import checkpoint
from magnetar.storage.store_settings import StoreSettings
from magnetar.testing.faultfiles import FaultFileSystem
from tests.support.directory_image import snapshot
from tests.support.store_lives import append, disk, killed, numbered, opened, read, run

WIDE = StoreSettings(cache_bytes=1, ledger_entries_max=10, ledger_min_rollover_ms=0)


def newest_checkpoint(files: FaultFileSystem) -> checkpoint.Checkpoint:
    return checkpoint.decode(snapshot(files)[checkpoint_names(files.names())[-1]])


def test_what_is_written_after_a_trim_that_went_further_than_what_is_left_is_read() -> None:
    async def main() -> None:
        files = disk()
        store = opened(files, WIDE)
        managed = store.open_log("a")
        await append(store, managed, *numbered(0, 5))
        lost = store.journal.length
        await append(store, managed, *numbered(5, 9))
        managed.trim(8, 10)
        await store.journal.drain()
        files = await killed(store, files)
        for i in reversed(range(5, 9)):  # in this order, for a bit makes a 6 of a 7
            at = snapshot(files)[segment_name(1)].index(b"%d-" % i, lost)
            files.flip_bit(segment_name(1), at)
        for life in range(2):
            store = opened(files, WIDE)
            managed = store.open_log("a")
            end = managed.end
            await append(store, managed, b"new %d" % life)
            assert managed.first == 8
            assert await read(managed, end) == [b"new %d" % life]
            await store.close()
            assert newest_checkpoint(files).logs

    run(main())


def test_a_ledger_whose_birth_is_lost_takes_its_place_before_the_next_one() -> None:
    async def main() -> None:
        files = disk()
        store = opened(files, WIDE)
        managed = store.open_log("a")
        await append(store, managed, *numbered(0, 3))
        born = managed.open_ledger().id
        lost = store.journal.length
        await append(store, managed, *numbered(3, 4))
        for entry in numbered(4, 15):  # in one write, whose records of ledgers stand before its entries
            managed.append(entry, 1, None)
        await store.journal.drain()
        assert managed.table.ledgers[-1].id == born + 1
        files = await killed(store, files)
        files.flip_bit(segment_name(1), snapshot(files)[segment_name(1)].index(b"3-", lost))
        for _ in range(2):
            store = opened(files, WIDE)
            managed = store.open_log("a")
            ids = [ledger.id for ledger in managed.table.ledgers]
            assert ids == sorted(ids)
            assert ids[1:3] == [born, born + 1]
            assert [ledger.closed_ms > 0 for ledger in managed.table.ledgers] == [True] * (len(ids) - 1) + [False]
            assert await read(managed, 4) == numbered(4, 15)
            await store.close()

    run(main())
