"""How much one read takes from the disk: at least one extent, else about its size, also where others lie between."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from tests.support.store_lives import SMALL, append, disk, opened, read, run

FIRST_READ = 1 << 19
"""What a read takes that continues none."""
MINE, HEAD = 40_000, 100


@pytest.mark.parametrize("between", [0, 30_000, 100_000], ids=["nothing", "a gap read over", "a gap stepped over"])
def test_a_read_that_continues_none_takes_no_more_than_its_size(between: int) -> None:
    async def main() -> None:
        files = disk()
        settings = replace(SMALL, segment_bytes=1 << 26, ledger_entries_max=1000)
        store = opened(files, settings)
        mine, other = store.open_log("mine"), store.open_log("other")
        for _ in range(30):
            await append(store, mine, bytes(MINE))
            if between:
                await append(store, other, bytes(between))
        await store.close()
        store = opened(files.reopened(), settings)
        mine = store.open_log("mine")
        found: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        mine.read(3, 1, 1, found.set_result)
        await found
        reader = store.reader
        step = MINE + (between if between < 64 << 10 else 0) + HEAD
        assert FIRST_READ - step <= reader.bytes_read <= FIRST_READ + step
        await store.close()

    run(main())


def test_one_extent_is_read_however_large_it_is() -> None:
    async def main() -> None:
        files = disk()
        settings = replace(SMALL, segment_bytes=1 << 26, ledger_entries_max=1000)
        store = opened(files, settings)
        mine = store.open_log("mine")
        await append(store, mine, bytes(6 << 20), b"behind it")
        await store.close()
        store = opened(files.reopened(), settings)
        assert [len(entry) for entry in await read(store.open_log("mine"))] == [6 << 20, 9]
        await store.close()

    run(main())
