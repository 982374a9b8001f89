"""LedgerStore on real files: order, durability, reading, rollover, trimming, restart."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest

from magnetar.model.errors import PersistenceError
from magnetar.model.ids import Position
from magnetar.runtime.clock import SystemClock
from magnetar.storage.backends.files import OsFileSystem
from magnetar.storage.ledgers.managed_ledger import ManagedLedger
from magnetar.storage.ledgers.stored_run import StoredRun
from magnetar.storage.local_store import LocalLedgerStore
from magnetar.storage.store import LedgerStore
from magnetar.storage.store_settings import StoreSettings

SMALL = StoreSettings(segment_bytes=4096, cache_bytes=1, ledger_entries_max=10, ledger_min_rollover_ms=0)


def run(main: Coroutine[Any, Any, None]) -> None:
    asyncio.run(main)


def opened(path: Path, settings: StoreSettings = SMALL) -> LedgerStore:
    store = LocalLedgerStore(OsFileSystem(str(path)), SystemClock(), settings)
    store.open()
    return store


async def read_all(managed: ManagedLedger, start: int = 0) -> list[bytes]:
    out: list[bytes] = []
    at = start
    while at < managed.end:
        future: asyncio.Future[StoredRun | Exception] = asyncio.get_running_loop().create_future()
        managed.read(at, 7, 1 << 20, future.set_result)
        found = await future
        assert not isinstance(found, Exception), found
        assert found.first == at
        assert managed.position(found.first) == Position(found.ledger, found.entry)
        out += found.entries
        at += len(found.entries)
    return out


async def fill(store: LedgerStore, managed: ManagedLedger, start: int, count: int) -> None:
    for i in range(start, start + count):
        managed.append(b"entry %d" % i * (1 + i % 5), 1 + i % 3, None)
        if i % 4 == 0:
            await store.journal.drain()
    await store.journal.drain()


def expected(count: int) -> list[bytes]:
    return [b"entry %d" % i * (1 + i % 5) for i in range(count)]


def test_what_was_written_is_read_back_also_after_a_restart(tmp_path: Path) -> None:
    async def main() -> None:
        for life in range(3):
            store = opened(tmp_path)
            managed = store.open_log("a")
            assert managed.end == life * 100
            await fill(store, managed, life * 100, 100)
            other = store.open_log(f"b{life}")
            await fill(store, other, 0, 20)
            assert await read_all(managed) == expected(life * 100 + 100)
            assert managed.index == sum(1 + i % 3 for i in range(life * 100 + 100))
            await store.close()

    run(main())


def test_ledgers_roll_at_exactly_the_maximum_and_ids_grow(tmp_path: Path) -> None:
    """A ledger is closed at its maximum of entries; entry ids begin anew and ledger ids grow (rules 4.1.1, 4.2.1)."""

    async def main() -> None:
        store = opened(tmp_path)
        managed = store.open_log("a")
        for i in range(35):
            managed.append(b"x%d" % i, 1, None)
        await store.journal.drain()
        ledgers = managed.table.ledgers
        assert [ledger.entries for ledger in ledgers] == [10, 10, 10, 5]
        assert sorted(ledger.id for ledger in ledgers) == [ledger.id for ledger in ledgers]
        assert managed.position(9) == Position(ledgers[0].id, 9)
        assert managed.position(10) == Position(ledgers[1].id, 0)
        assert managed.ordinal(Position(ledgers[1].id, 0)) == 10
        assert managed.ordinal(Position(ledgers[0].id, 99)) == 10
        assert managed.ordinal(Position(-1, -1)) == 0
        assert managed.ordinal(Position(1 << 62, 0)) == 35
        assert managed.exact_ordinal(Position(ledgers[0].id, 10)) is None
        await store.close()
        store = opened(tmp_path)
        again = store.open_log("a")
        assert again.table.ledgers[-1].id > ledgers[-1].id
        assert await read_all(again) == [b"x%d" % i for i in range(35)]
        await store.close()

    run(main())


def test_trimming_gives_the_disk_back_and_keeps_what_cursors_need(tmp_path: Path) -> None:
    async def main() -> None:
        store = opened(tmp_path)
        managed = store.open_log("a")
        cursor = managed.open_cursor("s", 0)
        await fill(store, managed, 0, 400)
        cursor.acknowledge_until(333)
        assert managed.trim(cursor.mark_delete + 1) == 33
        assert managed.first == 330
        await store.close()
        store = opened(tmp_path)
        managed = store.open_log("a")
        await fill(store, managed, 400, 100)
        assert await read_all(managed, 330) == expected(500)[330:]
        segments = [n for n in OsFileSystem(str(tmp_path)).names() if n.startswith("segment") and "." not in n]
        assert segments[0] > "segment-0000000000000005"
        again = managed.cursors["s"]
        assert again.mark_delete == 333
        assert again.backlog() == 166
        await store.close()

    run(main())


def test_cursors_survive_exactly(tmp_path: Path) -> None:
    async def main() -> None:
        store = opened(tmp_path)
        managed = store.open_log("a")
        cursor = managed.open_cursor("s", 0, properties={"k": "v"})
        gone = managed.open_cursor("gone", 0)
        await fill(store, managed, 0, 100)
        cursor.acknowledge(range(0, 100, 2))
        assert cursor.acknowledge_indexes(1, (0b101,), 3) is False
        assert cursor.remaining_indexes(1) == (0b101,)
        done = asyncio.Event()
        cursor.acknowledge((7,), done.set)
        await done.wait()
        managed.delete_cursor(gone.name)
        await store.journal.drain()
        # no close: what a kill would leave
        copy = tmp_path / "copy"
        shutil.copytree(tmp_path, copy, ignore=shutil.ignore_patterns("copy"))
        await store.close()
        for path in (copy, tmp_path):
            store = opened(path)
            again = store.open_log("a").cursors
            assert list(again) == ["s"]
            assert again["s"].properties == {"k": "v"}
            assert again["s"].mark_delete == 0
            assert list(again["s"].acked.ranges()) == list(cursor.acked.ranges())
            assert again["s"].remaining_indexes(1) == (0b101,)
            again["s"].reset(50)
            await store.close()

    run(main())


def test_a_second_process_is_refused(tmp_path: Path) -> None:
    async def main() -> None:
        store = opened(tmp_path)
        with pytest.raises(PersistenceError, match="in use by another process"):
            opened(tmp_path)
        await store.close()

    run(main())


def test_a_store_that_was_never_opened_gives_back_what_it_was_given_and_is_closed_twice(tmp_path: Path) -> None:
    files = OsFileSystem(str(tmp_path))
    files.make()
    files.lock()

    async def main() -> None:
        store = LocalLedgerStore(files, SystemClock(), SMALL)
        await store.close()
        assert os.listdir(tmp_path) == ["LOCK"]
        other = opened(tmp_path)  # nobody holds the directory
        await other.close()
        await other.close()
        assert not [name for name in os.listdir(tmp_path) if name.endswith(".new")]

    run(main())


def test_a_deleted_log_is_gone_for_good(tmp_path: Path) -> None:
    async def main() -> None:
        store = opened(tmp_path)
        await fill(store, store.open_log("a"), 0, 50)
        store.delete_log("a")
        await store.journal.drain()
        assert store.open_log("a").end == 0
        await store.close()
        store = opened(tmp_path)
        assert store.open_log("a").end == 0
        await store.close()

    run(main())
