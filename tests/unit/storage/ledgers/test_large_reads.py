"""Large reads: what the disk was asked for ahead is what the next read gets, and nothing else ever is."""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import cast

import pytest
from typing_extensions import override

from magnetar.model.errors import UnreadableError
from magnetar.runtime.clock import SystemClock
from magnetar.storage.backends.files import OsFile, OsFileSystem
from magnetar.storage.backends.journal_backend import JournalBackend, ReadBuffer, segment_name
from magnetar.storage.ledgers.large_reads import LargeReads
from magnetar.storage.ledgers.managed_ledger import ManagedLedger
from magnetar.storage.ledgers.stored_run import StoredRun
from magnetar.storage.local_store import LocalLedgerStore
from magnetar.storage.store_settings import StoreSettings
from tests.support.store_lives import run

PART = 1 << 19
PARTS = 6
SEGMENT = 3
PATIENCE = 20
STORE = StoreSettings(segment_bytes=1 << 26)
ENTRY = 100_000


class Held(OsFile):
    """A file whose large reads wait for a word, and fail if they are told to."""

    def __init__(self, fd: int, word: threading.Event, failure: list[OSError]) -> None:
        super().__init__(fd)
        self._word = word
        self._failure = failure

    @override
    def read_large(self, offset: int, size: int, buffer: ReadBuffer) -> tuple[bytes | ReadBuffer, int]:
        assert self._word.wait(PATIENCE)
        if self._failure:
            raise self._failure.pop()
        return super().read_large(offset, size, buffer)


class Segments:
    """One segment, as others have it open and as it is read ahead."""

    def __init__(self, path: Path) -> None:
        self.content = random.Random(1).randbytes(PART * PARTS)
        path.write_bytes(self.content)
        self._files = OsFileSystem(str(path.parent))
        self._name = path.name
        self.word = threading.Event()
        self.word.set()
        self.failure: list[OSError] = []
        self.opened: list[Held] = []
        self._plain = cast(OsFile, self._files.open(self._name))

    def reader(self, number: int) -> OsFile:
        assert number == SEGMENT
        return self._plain

    def open(self, number: int) -> Held:
        if number != SEGMENT:
            raise FileNotFoundError(segment_name(number))
        one = Held(cast(OsFile, self._files.open(self._name)).fileno(), self.word, self.failure)
        self.opened.append(one)
        return one


@pytest.fixture
def segments(tmp_path: Path) -> Segments:
    return Segments(tmp_path / "data")


@pytest.fixture
def large(segments: Segments) -> Iterator[LargeReads]:
    ahead = ThreadPoolExecutor(1)
    reads = LargeReads(cast(JournalBackend, segments), ahead, 2 * PART)
    yield reads
    segments.word.set()
    reads.close()
    ahead.shutdown()


def taken(large: LargeReads, offset: int, size: int = PART) -> bytes:
    data, at = large.read(SEGMENT, offset, size)
    return bytes(data[at : at + size])


def test_each_read_gets_its_own_bytes_while_the_next_is_begun(segments: Segments, large: LargeReads) -> None:
    for part in range(PARTS):
        at = part * PART
        data, begin = large.read(SEGMENT, at, PART)
        large.begin(SEGMENT, at + PART, PART)
        if large._begun is not None:
            large._begun.data.exception()
        assert data[begin : begin + PART] == segments.content[at : at + PART]
    assert large.hits == PARTS - 1
    assert len(segments.opened) == 1


def test_a_read_elsewhere_leaves_what_was_begun(segments: Segments, large: LargeReads) -> None:
    large.begin(SEGMENT, PART, PART)
    assert taken(large, 3 * PART) == segments.content[3 * PART : 4 * PART]
    assert taken(large, PART) == segments.content[PART : 2 * PART]
    assert large.hits == 1


@pytest.mark.parametrize(("size", "hits"), [(PART - 5, 1), (PART, 1), (PART + 5, 0)])
def test_a_part_of_it_will_do_and_less_than_all_will_not(
    segments: Segments, large: LargeReads, size: int, hits: int
) -> None:
    large.begin(SEGMENT, 7, PART)
    assert taken(large, 7, size) == segments.content[7 : 7 + size]
    assert large.hits == hits


def test_what_was_begun_serves_once(segments: Segments, large: LargeReads) -> None:
    large.begin(SEGMENT, 0, PART)
    assert taken(large, 0) == taken(large, 0) == segments.content[:PART]
    assert large.hits == 1


def test_one_at_a_time_is_begun(segments: Segments, large: LargeReads) -> None:
    segments.word.clear()
    large.begin(SEGMENT, 0, PART)
    large.begin(SEGMENT, PART, PART)
    segments.word.set()
    assert taken(large, 0) == segments.content[:PART]
    assert taken(large, PART) == segments.content[PART : 2 * PART]
    assert large.hits == 1


def test_small_ones_are_not_begun(segments: Segments, large: LargeReads) -> None:
    large.begin(SEGMENT, 0, 1000)
    assert not segments.opened


def test_what_failed_is_read_again(segments: Segments, large: LargeReads) -> None:
    segments.failure.append(OSError("bad sector"))
    large.begin(SEGMENT, 0, PART)
    assert taken(large, 0) == segments.content[:PART]
    assert large.hits == 0


def test_a_segment_that_is_gone_is_not_begun(segments: Segments, large: LargeReads) -> None:
    large.begin(SEGMENT + 1, 0, PART)
    assert taken(large, 0) == segments.content[:PART]


def test_what_was_begun_goes_with_its_segment(segments: Segments, large: LargeReads) -> None:
    large.begin(SEGMENT, 0, PART)
    assert large._begun is not None
    large._begun.data.result(PATIENCE)
    large.begin(SEGMENT + 1, 0, PART)
    assert segments.opened[0].fileno() < 0
    assert taken(large, 0) == segments.content[:PART]
    assert large.hits == 0


def test_a_forgotten_segment_is_closed_after_the_disk_is_done(segments: Segments, large: LargeReads) -> None:
    segments.word.clear()
    large.begin(SEGMENT, 0, PART)
    threading.Timer(0.05, segments.word.set).start()
    large.forget(SEGMENT + 1)
    assert segments.opened[0].fileno() >= 0
    large.forget(SEGMENT)
    assert segments.opened[0].fileno() < 0
    assert taken(large, 0) == segments.content[:PART]
    assert large.hits == 0


# a store whose backlog is read --------------------------------------------------------------------------------------


async def found_at(managed: ManagedLedger, start: int) -> StoredRun | Exception:
    cached = managed.cached(start, 10, 1 << 20)
    if cached is not None:
        return cached
    future: asyncio.Future[StoredRun | Exception] = asyncio.get_running_loop().create_future()
    managed.read(start, 10, 1 << 20, future.set_result)
    return await asyncio.wait_for(future, PATIENCE)


def store_at(path: Path) -> LocalLedgerStore:
    store = LocalLedgerStore(OsFileSystem(str(path)), SystemClock(), STORE)
    store.open()
    return store


async def backlog(path: Path, count: int) -> tuple[list[bytes], LocalLedgerStore, ManagedLedger]:
    """So many entries that are on the disk, and the store and log of a later life that has none of them in memory."""
    entries = [bytes([n % 251]) * ENTRY for n in range(count)]
    store = store_at(path)
    managed = store.open_log("a")
    for entry in entries:
        managed.append(entry, 1, None)
        await store.journal.drain()
    await store.close()
    store = store_at(path)
    return entries, store, store.open_log("a")


def test_a_backlog_is_read_ahead_of_the_copying(tmp_path: Path) -> None:
    async def main() -> None:
        entries, store, managed = await backlog(tmp_path, 250)
        found: list[bytes] = []
        while len(found) < len(entries):
            got = await found_at(managed, len(found))
            assert isinstance(got, StoredRun)
            assert got.first == len(found)
            found += got.entries
        assert found == entries
        assert store.reader.large.hits >= 3
        await store.close()

    run(main())


def damaged(path: Path, entry: bytes) -> tuple[Path, bytes]:
    """Put another byte into the entry; return the segment and what it held."""
    segment = min(path.glob("segment-*[0-9a-f]"))
    whole = segment.read_bytes()
    place = whole.index(entry) + 5000
    segment.write_bytes(whole[:place] + b"?" + whole[place + 1 :])
    return segment, whole


def test_damage_that_was_read_ahead_is_named_and_what_was_mended_is_read(tmp_path: Path) -> None:
    async def main() -> None:
        entries, store, managed = await backlog(tmp_path, 120)
        segment, whole = damaged(tmp_path, entries[60])
        at = 0
        while isinstance(got := await found_at(managed, at), StoredRun):
            at = got.first + len(got.entries)
        assert at == 60
        assert isinstance(got, UnreadableError)
        segment.write_bytes(whole)
        got = await found_at(managed, at)
        assert isinstance(got, StoredRun)
        assert got.entries[0] == entries[60]
        await store.close()

    run(main())
