"""Zeros behind the log's end: how many there are, where they lie, and that they are nothing to whoever comes next."""

from __future__ import annotations

import asyncio
import errno
import random
from pathlib import Path

import pytest

from magnetar.runtime.clock import SystemClock
from magnetar.storage.backends.files import OsFile, OsFileSystem
from magnetar.storage.backends.journal_backend import segment_name
from magnetar.storage.backends.local_journal import LocalJournal
from magnetar.storage.backends.segment_writer import LocalSegmentWriter
from magnetar.storage.backends.sync_process import SyncProcess
from magnetar.storage.backends.zeros_ahead import NO_ZEROS, ZerosAhead
from magnetar.storage.local_store import LocalLedgerStore
from magnetar.storage.store_settings import StoreSettings
from magnetar.testing.faultfiles import FaultFileSystem
from magnetar.testing.simloop import run
from tests.support.simulated_store import Disk, readable
from tests.support.store_lives import append, numbered, read

PAGE = 4096


def test_zeros_are_whole_pages_behind_the_end_and_no_more_than_small_groups_had() -> None:
    """Walks of random groups: never over what was written, never twice, within the bound, and soon everywhere."""
    for seed in range(40):
        rng = random.Random(seed)
        ahead, end, zeros_end, zeros, small, over = ZerosAhead(), 60, 0, 0, 0, 0
        largest = rng.choice((300, 16_384, 100_000))
        for _ in range(3000):
            size = rng.randint(1, largest)
            covered = end + size <= zeros_end
            end += size
            small += size * (size <= 16_384)
            over += size * covered
            found = ahead.after(end, size)
            if found == NO_ZEROS:
                continue
            assert size <= 16_384
            assert found.at % PAGE == found.size % PAGE == 0
            assert found.at >= max(end, zeros_end)
            assert 0 < found.size <= 128 << 10
            zeros_end = found.at + found.size
            zeros += found.size
            assert zeros_end - end <= (160 << 10) + PAGE
        assert zeros == ahead.written
        assert zeros <= 2 * small + (640 << 10)
        if largest <= 16_384:
            assert zeros <= small + (640 << 10)
            assert over > small * 0.9


def test_another_segment_has_no_zeros_and_large_groups_get_none() -> None:
    ahead = ZerosAhead()
    first = ahead.after(8192, 8192)
    assert (first.at, first.size) == (8192, 8192)
    ahead.segment_begun()
    assert ahead.after(300, 100) == NO_ZEROS
    again = ahead.after(4300, 4000)
    assert (again.at, again.size) == (8192, 4096)
    assert ahead.after(1 << 20, 16_385) == NO_ZEROS
    assert ahead.after((1 << 20) + 4095, 4095) == NO_ZEROS, "one large group, and small ones have to come anew"


def test_a_start_finds_the_same_behind_zeros_as_behind_nothing(tmp_path: Path) -> None:
    """Small groups through the sync process; killed, read while it runs, and closed."""

    async def main() -> None:
        directory = tmp_path / "killed"
        files = OsFileSystem(str(directory))
        store = LocalLedgerStore(files, SystemClock(), StoreSettings(), committer=SyncProcess)
        store.open()
        log = store.open_log("a")
        for at in range(60):
            await append(store, log, *numbered(at, at + 1, 1000))
        name = f"segment-{store.journal.segment:016x}"
        size = (directory / name).stat().st_size
        assert size > store.journal.length + PAGE, "no zeros were written ahead"
        copy = tmp_path / "copy"
        copy.mkdir()
        for path in directory.iterdir():
            (copy / path.name).write_bytes(path.read_bytes())
        length = store.journal.length
        await store.close()
        assert (directory / name).stat().st_size == length, "a clean end leaves no zeros"

        again = LocalLedgerStore(OsFileSystem(str(copy)), SystemClock(), StoreSettings())
        again.open()
        assert again.damage == []
        found = again.find_log("a")
        assert found is not None
        assert await read(found) == numbered(0, 60, 1000)
        assert (copy / name).stat().st_size == length
        assert not [path.name for path in copy.iterdir() if path.name.startswith("quarantine")]
        await again.close()

    asyncio.run(main())


def test_power_that_fails_among_zeros_takes_nothing_receipted() -> None:
    """Small groups over zeros, large ones across their end, syncs that fail, and power that fails in any call."""

    async def main(seed: int) -> int:
        rng = random.Random(seed)
        disk = Disk(StoreSettings(aligned_bytes_min=10_000, cache_bytes=1))
        receipted: list[bytes] = []
        over = 0
        for _ in range(3):
            disk.files.faults.sync_error_rate = 0.0
            store = disk.open()
            assert store.damage == []
            log = store.open_log("a")
            await store.journal.drain()
            found = await readable(log)
            assert all(entry in found.values() for entry in receipted)
            log.on_durable = lambda extent: receipted.extend(extent.entries)
            disk.files.faults.sync_error_rate = rng.choice((0.0, 0.03))
            disk.files.stop_after(rng.randint(2, 120), lambda: None)
            for _ in range(60):
                log.append(rng.randbytes(rng.choice((10, 900, 3000, 3000, 3000, 12_000))), 1, None)
                await store.journal.drain()
                if store.journal.failing is not None and not disk.files.locked:
                    break
            writer = store.journal._writer
            assert isinstance(writer, LocalSegmentWriter)
            over += writer._ahead.written
            await asyncio.sleep(5)
            disk.files = disk.files.crash(rng)
        return over

    zeros = [run(seed, main(seed)) for seed in range(60)]
    assert sum(map(bool, zeros)) > 40


def test_what_a_seal_cut_off_comes_back_by_no_power_cut() -> None:
    for seed in range(20):
        files = FaultFileSystem(random.Random(seed))
        file = files.open(segment_name(1), create=True)
        file.append([bytes(10_000)])
        file.sync()
        files.sync()
        LocalJournal(files).seal(1, 5000, b"index", sync=False)
        assert files.crash(random.Random(seed)).open(segment_name(1)).size() == 5000


def test_a_seal_that_the_disk_refuses_keeps_no_descriptor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is tried again and again on a disk that cannot be written."""

    def refused(*_: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    files = OsFileSystem(str(tmp_path))
    file = files.open(segment_name(1), create=True)
    file.append([bytes(10_000)])
    file.close()
    monkeypatch.setattr(OsFile, "truncate", refused)
    before = len(list(Path("/proc/self/fd").iterdir()))
    kept = []
    for _ in range(3):
        with pytest.raises(OSError, match="Read-only") as raised:
            LocalJournal(files).seal(1, 5000, b"index", sync=False)
        kept.append(raised)  # and with it the frame that had the file
    assert len(list(Path("/proc/self/fd").iterdir())) == before
