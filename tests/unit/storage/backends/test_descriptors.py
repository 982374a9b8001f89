"""What storage opens it closes, also where something goes wrong: a broker lives for months."""

from __future__ import annotations

import asyncio
import fcntl
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from magnetar.model.errors import PersistenceError
from magnetar.storage.backends.files import OsFileSystem, write_atomically
from magnetar.storage.backends.journal_backend import segment_name
from magnetar.storage.backends.local_journal import LocalJournal
from magnetar.storage.backup.data_directories import back_up_directory, restore_directory
from magnetar.storage.backup.manifest import MANIFEST, read_manifest
from magnetar.storage.log.segment_scan import SegmentScan
from magnetar.testing.kit.virtual_loop import InlineExecutor
from tests.support.loop_turns import settled
from tests.support.segment_bytes import block, segment
from tests.support.store_lives import append, numbered, run
from tests.support.store_lives import opened as opened_in_memory

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="counts in /proc")


@contextmanager
def none_stays_open() -> Iterator[None]:
    before = sorted(os.readlink(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd") if _there(fd))
    yield
    after = sorted(os.readlink(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd") if _there(fd))
    assert after == before


def _there(fd: str) -> bool:
    return os.path.exists(f"/proc/self/fd/{fd}")


def test_a_scan_that_quarantines(tmp_path: Path) -> None:
    files = OsFileSystem(str(tmp_path))
    lost = block(1, b"lost")
    for data in (segment(block(0, b"x"), b"\xff" * len(lost)) + block(2, b"y"), segment(block(0, b"x"), lost[:-3])):
        with none_stays_open():
            file = files.open(segment_name(1), create=True)
            file.truncate(0)
            file.append([data])
            list(SegmentScan(LocalJournal(files), 1, file))
            file.close()


def test_a_lock_that_somebody_else_has(tmp_path: Path) -> None:
    first, second = OsFileSystem(str(tmp_path)), OsFileSystem(str(tmp_path))
    with none_stays_open():
        first.lock()
        with none_stays_open(), pytest.raises(BlockingIOError):
            second.lock()
        first.unlock()
    with none_stays_open():
        second.lock()
        second.unlock()
    with none_stays_open(), (tmp_path / "LOCK").open("w") as older:
        fcntl.flock(older, fcntl.LOCK_EX)  # as a version does that knows only the file
        with none_stays_open(), pytest.raises(BlockingIOError):
            second.lock()


def test_a_whole_life(tmp_path: Path) -> None:
    async def main() -> None:
        store = opened_in_memory(OsFileSystem(str(tmp_path)))  # type: ignore[arg-type]  # real files instead
        managed = store.open_log("a")
        for start in range(0, 60, 10):
            await append(store, managed, *numbered(start, start + 10, 100))
            managed.open_ledger()
            managed.trim(managed.end)
            await settled()
        await store.close()

    with none_stays_open():
        run(main())


def test_what_is_asked_of_segments_and_forgotten(tmp_path: Path) -> None:
    """Each of these is asked for every segment there ever is, or for each backup."""
    files = OsFileSystem(str(tmp_path))
    with none_stays_open():
        for name in (segment_name(1), MANIFEST):
            write_atomically(files, name, b"no manifest")
        journal = LocalJournal(files)
        assert journal.sizes([1, 2]) == {1: 11}
        with pytest.raises(PersistenceError, match="its checksum does not fit"):
            read_manifest(files)
    with none_stays_open():
        journal.reader(1)
        journal.forget(1)


def test_a_segment_whose_refused_end_is_cut_off(tmp_path: Path) -> None:
    async def main() -> None:
        backend = LocalJournal(OsFileSystem(str(tmp_path)), InlineExecutor())
        begun: asyncio.Future[BaseException | None] = asyncio.get_running_loop().create_future()
        with none_stays_open():
            backend.writer.begin(1, [b"head"], 4, True, begun.set_result)
            assert await begun is None
            assert backend.writer.abandon()
        backend.writer.close()

    run(main())


def test_backup_and_restore(tmp_path: Path) -> None:
    data, backup, again = (str(tmp_path / name) for name in ("data", "backup", "again"))

    async def fill() -> None:
        store = opened_in_memory(OsFileSystem(f"{data}/ledgers"))  # type: ignore[arg-type]  # real files instead
        await append(store, store.open_log("a"), *numbered(0, 30, 100))
        await store.close()

    os.makedirs(f"{data}/ledgers")
    run(fill())
    with none_stays_open():
        back_up_directory(data, backup)
        restore_directory(backup, again)
