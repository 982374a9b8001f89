"""Segments that someone removes, replaces or takes back under a running broker and before a start."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Sequence
from pathlib import Path

import pytest

from magnetar.model.errors import PersistenceError
from magnetar.runtime.clock import SystemClock
from magnetar.storage.backends.committer import Committer
from magnetar.storage.backends.file_names import segment_numbers
from magnetar.storage.backends.files import File, OsFileSystem
from magnetar.storage.backends.journal_backend import Chunk, Committed, segment_name
from magnetar.storage.backends.segment_writer import LocalSegmentWriter
from magnetar.storage.backends.sync_process import SyncProcess
from magnetar.storage.backends.zeros_ahead import NO_ZEROS, Zeros
from magnetar.storage.local_store import LocalLedgerStore
from magnetar.storage.store import LedgerStore
from magnetar.storage.store_settings import StoreSettings
from magnetar.storage.verify import verify
from tests.support.simulated_store import Disk, publish, read_all, readable, simulated

KEPT = "quarantine-segment-0000000000000001-stranger-0"


def look_again(store: LedgerStore) -> None:
    """The next write is looked at, as one is each second."""
    writer = store.journal._writer
    assert isinstance(writer, LocalSegmentWriter)
    writer._look_at = 0.0


@simulated
async def test_a_removed_segment_is_written_anew_before_the_next_receipt(disk: Disk) -> None:
    disk.settings = StoreSettings(reserve_bytes=0)
    store = disk.open()
    log = store.open_log("a")
    await publish(store, log, 0, 5)
    disk.files.remove(segment_name(1))
    await publish(store, log, 5, 6)
    assert segment_name(1) in disk.files.names(), "there when the receipt is out"
    disk.power_off()
    store = disk.open()
    log = store.open_log("a")
    assert await read_all(log) == [b"entry %d" % i for i in range(6)]
    assert store.damage == []


@simulated
async def test_it_is_looked_at_each_roll_and_at_the_end(disk: Disk) -> None:
    disk.settings = StoreSettings(segment_bytes=400, reserve_bytes=0)
    store = disk.open()
    log = store.open_log("a")
    count = 0
    for _ in range(6):
        await publish(store, log, count, count + 3)
        count += 3
        if segment_name(store.journal.segment) in disk.files.names():
            disk.files.remove(segment_name(store.journal.segment))
    await store.close()
    assert verify(disk.files).damage == []
    store = disk.open()
    assert await read_all(store.open_log("a")) == [b"entry %d" % i for i in range(count)]


@simulated
async def test_a_stranger_at_the_name_is_kept(disk: Disk) -> None:
    disk.settings = StoreSettings(reserve_bytes=0)
    store = disk.open()
    log = store.open_log("a")
    await publish(store, log, 0, 3)
    other = disk.files.open("other", create=True)
    other.append([b"stranger"])
    disk.files.rename("other", segment_name(1))
    await publish(store, log, 3, 4)
    assert disk.files.open(KEPT).read(0, 100) == b"stranger"
    disk.kill()
    assert await read_all(disk.open().open_log("a")) == [b"entry %d" % i for i in range(4)]


class CutAfterwards:
    """A committer whose file is cut when a group is durable."""

    def __init__(self, committer: Committer, size: int) -> None:
        self._committer = committer
        self._size = size

    def commit(
        self, file: File, at: int, chunks: Sequence[Chunk], sync: bool, done: Committed, lead: int | None = None,
        zeros: Zeros = NO_ZEROS,
    ) -> None:  # fmt: skip
        def finished(error: BaseException | None) -> None:
            file.truncate(self._size)
            done(error)

        self._committer.commit(file, at, chunks, sync, finished, lead, zeros)

    def give_back_memory(self) -> None:
        self._committer.give_back_memory()

    def close(self) -> None:
        self._committer.close()


@pytest.mark.parametrize("when", ["before a write", "and removed", "after it"])
def test_a_segment_that_was_cut_is_named_and_nothing_more_is_written_to_it(when: str) -> None:
    @simulated
    async def steps(disk: Disk) -> None:
        disk.settings = StoreSettings(reserve_bytes=0)
        store = disk.open()
        log = store.open_log("a")
        failed: list[object] = []
        log.on_failed = lambda extent, error: failed.append(error)
        await publish(store, log, 0, 2)
        left = store.journal.length
        await publish(store, log, 2, 5)
        writer = store.journal._writer
        assert isinstance(writer, LocalSegmentWriter)
        committer = writer._committer
        if when != "after it":
            disk.files.open(segment_name(1)).truncate(left)
            if when == "and removed":
                disk.files.remove(segment_name(1))
        else:
            writer._committer = CutAfterwards(committer, left)
        await publish(store, log, 5, 6)
        writer._committer = committer
        assert f"{segment_name(1)} was cut to {left} of " in str(failed[0])
        assert log.end == 5, "no receipt for what is gone"
        await publish(store, log, 5, 8)
        assert store.journal.segment == 2
        disk.kill()
        assert any(segment_name(1) in text for text in verify(disk.files).damage)
        store = disk.open()
        kept = await readable(store.open_log("a"))
        assert kept == {ordinal: b"entry %d" % ordinal for ordinal in (0, 1, 5, 6, 7)}

    steps()


@simulated
async def test_without_room_for_the_copy_nothing_is_receipted_until_there_is(disk: Disk) -> None:
    disk.settings = StoreSettings(reserve_bytes=0)
    store = disk.open()
    log = store.open_log("a")
    failed: list[object] = []
    log.on_failed = lambda extent, error: failed.append(error)
    await publish(store, log, 0, 3)
    disk.files.remove(segment_name(1))
    disk.files.faults.capacity_bytes = 60
    await asyncio.sleep(1.1)
    await publish(store, log, 3, 4)
    assert "No space left" in str(failed[0])
    assert log.end == 3
    disk.files.faults.capacity_bytes = None
    await asyncio.sleep(2)
    await publish(store, log, 3, 4)
    disk.power_off()
    store = disk.open()
    assert await read_all(store.open_log("a")) == [b"entry %d" % i for i in range(4)]
    assert store.damage == []


@pytest.mark.parametrize("covered", [False, True], ids=["read again", "a checkpoint covers the one before it"])
@pytest.mark.parametrize("left", [None, 0, 1, 17, 40])
def test_a_start_names_a_newest_segment_that_is_gone_or_cut_and_gives_no_number_again(
    left: int | None, covered: bool
) -> None:
    """It was noted as begun, so receipts were given for what is not there any more."""

    @simulated
    async def steps(disk: Disk) -> None:
        disk.settings = StoreSettings(segment_bytes=400, reserve_bytes=0)
        store = disk.open()
        log = store.open_log("a")
        await publish(store, log, 0, 10)
        lost = store.journal.segment
        before = {log.position(i) for i in range(log.first, log.end)}
        lost_places = {
            log.position(i) for span in log.spans if span.segment == lost for i in range(span.first, span.end)
        }
        if covered:
            await asyncio.sleep(5)
            assert store.keeper.covered()[1] == lost - 1
        disk.kill()
        if left is None:
            disk.files.remove(segment_name(lost))
        else:
            disk.files.open(segment_name(lost)).truncate(left)
        text = f"{segment_name(lost)}, the newest, " + ("is missing" if left is None else "has no readable block")
        assert any(text in named for named in verify(disk.files).damage)
        store = disk.open()
        assert any(text in named for named in store.damage)
        log = store.open_log("a")
        kept = log.end
        assert 0 < kept <= 10
        await publish(store, log, kept, kept + 3)
        assert not before & {log.position(i) for i in range(kept, log.end)}, "a place is its message's for ever"
        assert store.journal.segment > lost
        disk.kill()
        store = disk.open()
        if covered:
            # the checkpoint knew entries of the lost segment: they stay named
            there = [*range(10 - len(before & lost_places)), *range(kept, kept + 3)]
        else:
            assert store.damage == [], "said once"
            there = list(range(kept + 3))
        assert await readable(store.open_log("a")) == {i: b"entry %d" % i for i in there}

    steps()


@simulated
async def test_a_start_that_cannot_write_down_what_is_gone_is_refused_and_may_be_tried_again(disk: Disk) -> None:
    """If it went on, the next start would find a gap before its segments."""
    disk.settings = StoreSettings(segment_bytes=400, reserve_bytes=0)
    store = disk.open()
    await publish(store, store.open_log("a"), 0, 10)
    lost = store.journal.segment
    disk.kill()
    disk.files.remove(segment_name(lost))
    disk.files.fail("rename", code=errno.ENOSPC)
    with pytest.raises(PersistenceError, match="cannot be read or repaired"):
        disk.open()
    assert segment_numbers(disk.files.names())[-1] < lost
    store = disk.open()
    assert any(f"{segment_name(lost)}, the newest, is missing" in named for named in store.damage)
    log = store.open_log("a")
    kept = log.end
    await publish(store, log, kept, kept + 3)
    disk.kill()
    store = disk.open()
    assert store.damage == []
    assert await readable(store.open_log("a")) == {i: b"entry %d" % i for i in range(kept + 3)}


@simulated
async def test_a_start_names_a_covered_segment_that_is_gone(disk: Disk) -> None:
    disk.settings = StoreSettings(segment_bytes=400, reserve_bytes=0)
    store = disk.open()
    await publish(store, store.open_log("a"), 0, 30)
    await store.close()
    gone = segment_numbers(disk.files.names())[1]
    disk.files.remove(segment_name(gone))
    store = disk.open()
    assert [text for text in store.damage if f"{segment_name(gone)} is missing" in text]
    assert verify(disk.files.second_process()).damage if not disk.files.locked else True


async def on_files(path: Path, act: str) -> tuple[list[object], list[str]]:
    """A store on real files with the sync process; what failed after ``act``, and what a later start finds."""
    ledgers = path / "ledgers"
    store = LocalLedgerStore(OsFileSystem(str(ledgers)), SystemClock(), StoreSettings(), committer=SyncProcess)
    store.open()
    log = store.open_log("a")
    failed: list[object] = []
    log.on_failed = lambda extent, error: failed.append(error)
    await publish(store, log, 0, 5)
    if act == "unlink":
        (ledgers / segment_name(1)).unlink()
    else:
        ledgers.rename(path / "moved")
    if act == "replace":
        ledgers.mkdir()
    look_again(store)
    await publish(store, log, 5, 6)
    if act != "unlink":
        assert list(ledgers.iterdir() if ledgers.exists() else []) == []
        if ledgers.exists():
            ledgers.rmdir()
        (path / "moved").rename(ledgers)
    look_again(store)
    await asyncio.sleep(0)
    await publish(store, log, log.end, 8)
    await store.close()
    again = LocalLedgerStore(OsFileSystem(str(ledgers)), SystemClock(), StoreSettings())
    again.open()
    found = [entry.decode() for entry in await read_all(again.open_log("a"))]
    assert again.damage == []
    await again.close()
    return failed, found


@pytest.mark.parametrize("act", ["unlink", "move", "replace"])
def test_real_files_and_a_real_directory(tmp_path: Path, act: str) -> None:
    failed, found = asyncio.run(on_files(tmp_path, act))
    assert found == [f"entry {i}" for i in range(8)]
    if act == "unlink":
        assert failed == []
    else:
        assert "moved, removed or replaced" in str(failed[0]) or "No such file" in str(failed[0])


@pytest.mark.parametrize("skip", [0, 1], ids=["before the write", "after it"])
def test_a_disk_that_says_nothing_of_the_open_file_refuses_the_group_and_is_tried_again(skip: int) -> None:
    """XFS answers `fstat` with an error once it has shut down."""

    @simulated
    async def steps(disk: Disk) -> None:
        disk.settings = StoreSettings(reserve_bytes=0)
        store = disk.open()
        log = store.open_log("a")
        failed: list[object] = []
        log.on_failed = lambda extent, error: failed.append(error)
        await publish(store, log, 0, 3)
        disk.files.fail("stat", skip=skip, times=1)
        await publish(store, log, 3, 4)
        assert len(failed) == 1
        assert log.end == 3
        await asyncio.sleep(2)
        await publish(store, log, 3, 6)
        await store.close()
        assert await read_all(disk.open().open_log("a")) == [b"entry %d" % i for i in range(6)]

    steps()
