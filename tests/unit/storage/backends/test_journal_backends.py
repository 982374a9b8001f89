"""What every backend of the journal promises, over files on the simulated disk, files on the real one, and memory."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

import pytest

from magnetar.model.errors import PersistenceError
from magnetar.runtime.clock import SystemClock
from magnetar.storage.backends.files import OsFileSystem
from magnetar.storage.backends.journal_backend import JournalBackend, read_buffer
from magnetar.storage.backends.local_journal import LocalJournal
from magnetar.storage.store import LedgerStore
from magnetar.storage.store_settings import StoreSettings
from magnetar.storage.store_threads import StoreThreads
from magnetar.testing.faultfiles import FaultFileSystem
from magnetar.testing.kit.virtual_loop import InlineExecutor
from magnetar.testing.memory_journal import MemoryJournal
from tests.support.loop_turns import settled
from tests.support.store_lives import append, numbered, read

SMALL: Final = StoreSettings(segment_bytes=2048, cache_bytes=1, ledger_entries_max=10, ledger_min_rollover_ms=0)

NextLife = Callable[[], JournalBackend]
"""Makes the backend of the next process life on what the lives before left."""


@pytest.fixture(params=["simulated disk", "real disk", "memory"])
def lives(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[NextLife]:
    executor = ThreadPoolExecutor(1)
    memory = MemoryJournal()
    disk = FaultFileSystem(random.Random(0))
    if request.param == "memory":
        yield lambda: memory
    elif request.param == "real disk":
        yield lambda: LocalJournal(OsFileSystem(str(tmp_path)), executor)
    else:
        yield lambda: LocalJournal(disk, InlineExecutor())
    executor.shutdown()


async def begun(backend: JournalBackend, number: int, data: bytes) -> None:
    await _written(lambda done: backend.writer.begin(number, [data], len(data), True, done))


async def appended(backend: JournalBackend, data: bytes) -> None:
    await _written(lambda done: backend.writer.append([data[:1], data[1:]], len(data), True, done))


async def _written(write: Callable[[Callable[[BaseException | None], None]], None]) -> None:
    future: asyncio.Future[BaseException | None] = asyncio.get_running_loop().create_future()
    write(future.set_result)
    assert not future.done(), "the result never comes from within the call"
    assert await future is None


def content(backend: JournalBackend, number: int) -> bytes:
    reader = backend.open(number)
    try:
        return reader.read(0, reader.size())
    finally:
        reader.close()


def test_what_was_appended_is_read_in_order(lives: NextLife) -> None:
    async def main() -> None:
        backend = lives()
        backend.acquire()
        assert backend.segments() == []
        assert not backend.writer.takes_blocks
        await begun(backend, 1, b"first")
        assert backend.writer.takes_blocks
        await appended(backend, b"second")
        await begun(backend, 2, b"third")
        assert backend.segments() == [1, 2]
        assert (content(backend, 1), content(backend, 2)) == (b"firstsecond", b"third")
        reader = backend.reader(1)
        assert (reader.read(5, 3), reader.read(5, 100), reader.size()) == (b"sec", b"second", 11)
        found, at = reader.read_large(2, 6, read_buffer(1 << 16))
        assert found[at : at + 6] == b"rstsec"
        backend.forget(1)
        backend.writer.close()
        backend.release()

    asyncio.run(main())


def test_what_is_abandoned_ends_its_segment_at_the_last_durable_byte(lives: NextLife) -> None:
    async def main() -> None:
        backend = lives()
        backend.acquire()
        await begun(backend, 1, b"counts")
        backend.writer.abandon()
        assert not backend.writer.takes_blocks
        assert content(backend, 1) == b"counts"
        await begun(backend, 2, b"next")
        backend.writer.close()
        assert content(backend, 2) == b"next"
        backend.release()

    asyncio.run(main())


def test_a_sealed_segment_has_its_length_and_its_index_until_it_is_removed(lives: NextLife) -> None:
    async def main() -> None:
        backend = lives()
        backend.acquire()
        await begun(backend, 1, b"whole and void")
        backend.writer.close()
        with pytest.raises(FileNotFoundError):
            backend.read_index(1)
        backend.seal(1, 5, b"index", sync=True)
        assert (content(backend, 1), backend.read_index(1)) == (b"whole", b"index")
        backend.write_index(1, b"another")
        assert backend.read_index(1) == b"another"
        assert backend.sizes([1, 9]) == {1: 12}
        for _ in range(2):
            backend.remove(1)
        assert backend.segments() == []
        for missing in (backend.open, backend.reader, backend.read_index):
            with pytest.raises(FileNotFoundError):
                missing(1)
        backend.seal(1, 5, b"index", sync=True)  # gone meanwhile
        backend.release()

    asyncio.run(main())


def test_what_is_unreadable_is_kept_where_no_start_looks(lives: NextLife) -> None:
    async def main() -> None:
        backend = lives()
        backend.acquire()
        await begun(backend, 1, b"torn")
        backend.writer.close()
        name = backend.keep_aside(1, 2, "torn", [b"r", b"n"])
        assert "2-torn" in name
        assert backend.segments() == [1]
        reader = backend.open(1)
        reader.truncate(2)
        reader.sync()
        reader.close()
        assert content(backend, 1) == b"to"
        backend.release()

    asyncio.run(main())


def test_checkpoints_are_replaced_removed_and_rejected_by_number(lives: NextLife) -> None:
    backend = lives()
    backend.acquire()
    backend.write_checkpoint(3, b"three")
    backend.write_checkpoint(10, b"ten")
    backend.write_checkpoint(3, b"three again")
    assert backend.checkpoints() == [3, 10]
    assert (backend.read_checkpoint(3), backend.read_checkpoint(10)) == (b"three again", b"ten")
    assert backend.reject_checkpoint(10)
    assert backend.checkpoints() == [3]
    backend.remove_checkpoint(3)
    backend.sync()
    backend.remove_unfinished()
    assert backend.checkpoints() == []
    with pytest.raises(FileNotFoundError):
        backend.read_checkpoint(3)
    backend.release()


def test_only_one_owner_at_a_time(lives: NextLife) -> None:
    first, second = lives(), lives()
    first.acquire()
    if first is second:
        with pytest.raises(PersistenceError):
            second.acquire()
        first.release()
        second.acquire()
        return
    if isinstance(first, LocalJournal) and isinstance(first._files, OsFileSystem):
        with pytest.raises(PersistenceError):
            second.acquire()
    first.release()
    second.acquire()
    second.release()


def test_a_store_lives_on_it_and_comes_back(lives: NextLife) -> None:
    """Appends, rolls, trims and checkpoints; a second life finds what the first had, also without a clean end."""

    async def main() -> None:
        threads = StoreThreads(lambda name: InlineExecutor())
        store = LedgerStore(lives(), SystemClock(), threads, SMALL)
        store.open()
        log = store.open_log("a")
        cursor = log.open_cursor("s", 0)
        await append(store, log, *numbered(0, 60, 100))
        cursor.acknowledge([*range(35)])
        await store.journal.drain()
        log.trim(30)
        await settled()
        assert await read(log, 30) == numbered(30, 60, 100)
        await store.close()

        again = LedgerStore(lives(), SystemClock(), threads, SMALL)
        again.open()
        assert again.damage == []
        found = again.find_log("a")
        assert found is not None
        assert (found.first, found.end, found.cursors["s"].mark_delete) == (30, 60, 34)
        assert await read(found, 30) == numbered(30, 60, 100)
        await again.close()

    asyncio.run(main())


def test_many_stores_share_threads() -> None:
    """A store has no thread of its own (decision 026)."""

    async def main() -> None:
        threads = StoreThreads()
        stores = [LedgerStore(MemoryJournal(), SystemClock(), threads, SMALL) for _ in range(50)]
        for number, store in enumerate(stores):
            store.open()
            log = store.open_log("a")
            for entry in numbered(number, number + 30, 100):
                log.append(entry, 1, None)
        for number, store in enumerate(stores):
            await store.journal.drain()
            found = store.find_log("a")
            assert found is not None
            assert await read(found) == numbered(number, number + 30, 100)
            await store.close()
        threads.close()

    asyncio.run(main())
