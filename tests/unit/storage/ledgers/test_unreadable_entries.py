"""Entries that cannot be read: the error says where it goes on, to the entry, so that nothing whole is skipped."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from magnetar.model.errors import UnreadableError
from magnetar.storage.backends.journal_backend import segment_name
from magnetar.storage.ledgers.managed_ledger import ManagedLedger
from magnetar.storage.ledgers.stored_run import StoredRun
from tests.support.store_lives import SMALL, disk, numbered, opened, run

SETTINGS = replace(SMALL, segment_bytes=1 << 16, ledger_entries_max=1000)
EXTENTS, EACH = 6, 3
ENTRIES = numbered(0, EXTENTS * EACH)


async def found_at(managed: ManagedLedger, start: int) -> StoredRun | Exception:
    future: asyncio.Future[StoredRun | Exception] = asyncio.get_running_loop().create_future()
    managed.read(start, 100, 1 << 20, future.set_result)
    return await future


@pytest.mark.parametrize("damaged", [{0}, {2}, {EXTENTS - 1}, {2, 3}, {0, EXTENTS - 1}])
def test_an_unreadable_extent_ends_where_the_next_begins(damaged: set[int]) -> None:
    async def main() -> None:
        files = disk()
        store = opened(files, SETTINGS)
        managed = store.open_log("a")
        for extent in range(EXTENTS):
            for entry in ENTRIES[extent * EACH : (extent + 1) * EACH]:
                managed.append(entry, 1, None)
            await store.journal.drain()
        number = store.journal.segment
        await store.close()
        files = files.reopened()
        store = opened(files, SETTINGS)
        managed = store.open_log("a")
        data = files.open(segment_name(number)).read(0, 1 << 16)
        for extent in damaged:
            files.flip_bit(segment_name(number), data.index(ENTRIES[extent * EACH + 1]))
        for start in range(len(ENTRIES)):
            found = await found_at(managed, start)
            extent = start // EACH
            if extent in damaged:
                assert isinstance(found, UnreadableError)
                assert found.stop == (extent + 1) * EACH
                assert segment_name(number) in str(found)
            else:
                assert isinstance(found, StoredRun)
                assert found.first <= start
                assert found.entries[start - found.first :]
                assert found.entries == ENTRIES[found.first : found.first + len(found.entries)]
        await store.close()

    run(main())
