"""What storage opens it closes, also where something goes wrong: a broker lives for months."""

from __future__ import annotations

import asyncio
import fcntl
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from magnetar.model.errors import PersistenceError
from magnetar.runtime.clock import SystemClock
from magnetar.storage.backends.files import OsFileSystem, write_atomically
from magnetar.storage.backends.journal_backend import segment_name
from magnetar.storage.backends.local_journal import LocalJournal
from magnetar.storage.backup.data_directories import back_up_directory, restore_directory
from magnetar.storage.backup.manifest import MANIFEST, read_manifest
from magnetar.storage.local_store import LocalLedgerStore
from magnetar.storage.log.segment_scan import SegmentScan, places_of
from magnetar.storage.metadata_log import metadata_copy, metadata_log
from magnetar.storage.metadata_log.metadata_log import MetadataLog
from magnetar.storage.verify import verify
from magnetar.testing.kit.virtual_loop import InlineExecutor
from tests.support.at_once import at_once
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


def test_backup_restore_and_verification(tmp_path: Path) -> None:
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
        assert verify(OsFileSystem(f"{again}/ledgers", only_read=True)).damage == []


def test_a_life_of_the_metadata(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Copies are written anew as they grow, when one is damaged and when somebody takes one away."""
    monkeypatch.setattr(metadata_log, "SLACK_BYTES", 300)
    monkeypatch.setattr(metadata_copy, "STEP_LINES", 2)
    files = OsFileSystem(str(tmp_path))
    for life in range(12):
        with none_stays_open():
            log = MetadataLog(files)
            for i in range(20 + life):
                at_once(log.put(f"/{i % 9}", b"%d" % i))
            (tmp_path / "metadata-b").unlink()
            at_once(log.put("/taken", b"away"))
            log.accept()
            at_once(log.close())
        (tmp_path / "metadata-a").write_bytes(b"damaged")
    assert any(name.startswith("quarantine-metadata-a") for name in os.listdir(tmp_path))


def test_a_start_that_fails(tmp_path: Path) -> None:
    async def main() -> None:
        store = LocalLedgerStore(OsFileSystem(str(tmp_path)), SystemClock())
        store.open()
        await append(store, store.open_log("a"), b"x")
        await store.close()

    async def again() -> None:
        threads = threading.active_count()
        with none_stays_open(), pytest.raises(PersistenceError, match="is gone"):
            LocalLedgerStore(OsFileSystem(str(tmp_path)), SystemClock()).open()
        assert threading.active_count() == threads

    run(main())
    (segment_file,) = tmp_path.glob("segment-????????????????")
    for checkpoint in tmp_path.glob("checkpoint-*"):
        checkpoint.unlink()
    segment_file.rename(tmp_path / segment_name(7))
    run(again())


def test_an_index_that_is_made_anew(tmp_path: Path) -> None:
    write_atomically(OsFileSystem(str(tmp_path)), segment_name(1), segment(block(0, b"x")))
    with none_stays_open():
        places_of(LocalJournal(OsFileSystem(str(tmp_path))), 1)
