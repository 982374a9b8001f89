"""``magnetar verify``: finds every kind of damage, calls nothing damage that is none, changes nothing."""

from __future__ import annotations

import asyncio
import errno
import os
from pathlib import Path

import pytest
from typer.testing import CliRunner

from magnetar.app.main import app
from magnetar.model.errors import PersistenceError
from magnetar.runtime.clock import SystemClock
from magnetar.storage.backends.file_names import checkpoint_names, segment_numbers
from magnetar.storage.backends.files import OsFileSystem
from magnetar.storage.backends.journal_backend import index_name, segment_name
from magnetar.storage.backends.newest_segment import NAME as NEWEST
from magnetar.storage.local_store import LocalLedgerStore
from magnetar.storage.log import records
from magnetar.storage.verify import verify
from magnetar.testing.faultfiles import FaultFileSystem
from tests.support.loop_turns import settled
from tests.support.store_lives import SMALL, append, disk, killed, numbered, opened, run
from tests.support.whole_files import content


def filled(*, close: bool = True) -> FaultFileSystem:
    async def main() -> FaultFileSystem:
        files = disk()
        store = opened(files)
        managed = store.open_log("a")
        cursor = managed.open_cursor("s", 0)
        await append(store, managed, *numbered(0, 40, 100))
        cursor.acknowledge_until(15)
        managed.trim(16)
        await append(store, store.open_log("b"), *numbered(0, 5, 100))
        await settled()
        if close:
            await store.close()
        return files.reopened()

    return run(main())


def all_files(files: FaultFileSystem) -> dict[str, bytes]:
    return {name: content(files, name) for name in files.names()}


@pytest.mark.parametrize("close", [True, False])
def test_a_whole_directory_is_whole_and_stays_as_it_is(close: bool) -> None:
    files = filled(close=close)
    before = all_files(files)
    report = verify(files)
    assert report.damage == []
    assert any("entries of" in line for line in report.lines)
    assert not any(line.startswith(NEWEST) for line in report.lines)
    assert all_files(files) == before


def test_the_report_says_how_much_each_file_holds() -> None:
    async def main() -> FaultFileSystem:
        files = disk()
        store = opened(files)
        a, b = store.open_log("a"), store.open_log("b")
        for managed, names in ((a, "st"), (b, "u")):
            for name in names:
                managed.open_cursor(name, 0)
        for _ in range(6):
            for managed, entry in zip([a, b, a, a], numbered(0, 4, 60), strict=True):
                managed.append(entry, 1, None)
            await store.journal.drain()
        await store.close()
        return files.reopened()

    files = run(main())
    said = dict(line.split(": ", 1) for line in verify(files).lines)
    for name in checkpoint_names(files.names()):
        number = int(name.rpartition("-")[2], 16)
        assert said[name].startswith(f"up to segment {number}, 2 logs, 3 cursors, 0 feature states"), said
    counted = [0, 0, 0]
    for number in segment_numbers(files.names()):
        words = said[segment_name(number)].split()
        assert int(words[0]) == len(content(files, segment_name(number)))
        indexed = int(said[index_name(number)].split()[0])
        blocks, entries, logs = int(words[2]), int(words[4]), int(words[7])
        assert logs == (2 if entries else 0)
        counted = [sum(pair) for pair in zip(counted, (blocks, entries, indexed), strict=True)]
    assert counted == [6, 24, 13], "a block for each group, in it an extent of each log, and of each ledger"


def test_an_unreadable_note_of_the_newest_segment_is_said_and_is_no_damage() -> None:
    """It is written in place, so that a crash may tear it."""
    files = filled()
    files.flip_bit(NEWEST, 3)
    report = verify(files)
    assert report.damage == []
    assert any(line.startswith(f"{NEWEST}: unreadable") for line in report.lines)


@pytest.mark.parametrize("delete", [True, False])
def test_what_was_let_go_after_the_newest_checkpoint_is_no_damage_after_a_kill(delete: bool) -> None:
    async def main(entries: int) -> FaultFileSystem:
        files = disk()
        store = opened(files)
        managed = store.open_log("a")
        await append(store, managed, *numbered(0, entries, 100))
        await settled()
        if delete:
            store.delete_log("a")
        else:
            managed.trim(150)
        await store.journal.drain()
        assert await store.keeper.remove_dead()
        return await killed(store, files)

    for entries in range(200, 216):
        assert verify(run(main(entries))).damage == [], entries


def test_a_flipped_bit_anywhere_that_counts_is_found() -> None:
    files = filled()
    checked = 0
    for name, data in all_files(files).items():
        if name == NEWEST:
            continue  # what cannot be read of it says nothing
        for at in range(0, len(data), 13):
            files.flip_bit(name, at, at % 8)
            assert verify(files).damage, (name, at)
            files.flip_bit(name, at, at % 8)
            checked += 1
    assert checked > 500
    assert verify(files).damage == []


def test_missing_and_exchanged_files_are_found() -> None:
    for name in (segment_name(4), segment_name(3)):
        files = filled()
        files.remove(name)
        assert verify(files).damage
    files = filled()
    other = content(files, segment_name(4))
    file = files.open(segment_name(3))
    file.truncate(0)
    file.append([other])
    assert any("says that it is" in text for text in verify(files).damage)


def test_what_a_kill_leaves_is_no_damage() -> None:
    files = filled(close=False)
    newest = [n for n in files.names() if n.startswith("segment") and not n.endswith("index")][-1]
    secret = records.parse_segment_header(content(files, newest)).secret
    files.open(newest).append([records.block_header(3, 500, 1 << 40, secret), b"half of it"])
    files.open("checkpoint-0000000000000099.new", create=True).append([b"half"])
    files.remove(next(n for n in files.names() if n.endswith(".index")))
    report = verify(files)
    assert report.damage == []
    assert any("cut off" in line for line in report.lines)
    assert not [name for name in files.names() if name.startswith("quarantine")]


def test_what_a_start_set_aside_or_will_remove_is_said_and_is_no_damage() -> None:
    files = filled()
    for name in ("quarantine-0000000000000001-1", "checkpoint-0000000000000099.new"):
        file = files.open(name, create=True)
        file.append([b"x"])
        file.sync()
        file.close()
    report = verify(files)
    assert report.damage == []
    assert "quarantine-0000000000000001-1: set aside by an earlier start" in report.lines
    assert "checkpoint-0000000000000099.new: half-written, removed at the next start" in report.lines


def test_it_refuses_while_a_broker_runs() -> None:
    files = filled()
    files.second_process().lock()
    with pytest.raises(PersistenceError, match="in use"):
        verify(files)


def test_the_command_says_it_with_its_exit_code(tmp_path: Path) -> None:
    async def fill() -> None:
        store = LocalLedgerStore(OsFileSystem(str(tmp_path / "data" / "ledgers")), SystemClock(), SMALL)
        store.open()
        await append(store, store.open_log("a"), *numbered(0, 30, 100))
        refused = CliRunner().invoke(app, ["verify", str(tmp_path / "data")])
        assert refused.exit_code == 1
        assert "in use" in refused.output
        await store.close()

    asyncio.run(fill())
    (tmp_path / "data" / "metadata.sqlite").touch()  # no metadata here: those are an older version's
    whole = CliRunner().invoke(app, ["verify", str(tmp_path / "data")])
    assert whole.exit_code == 0, whole.output
    assert "no damage found" in whole.output
    path = tmp_path / "data" / "ledgers" / segment_name(2)
    path.write_bytes(path.read_bytes().replace(b"1", b"2", 1))
    broken = CliRunner().invoke(app, ["verify", str(tmp_path / "data")])
    assert broken.exit_code == 1
    assert "DAMAGED: segment-0000000000000002" in broken.output
    assert CliRunner().invoke(app, ["verify", str(tmp_path / "none")]).exit_code == 1
    assert not (tmp_path / "none").exists()


def test_it_changes_nothing_and_needs_no_right_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a snapshot on a read-only file system can be looked at."""

    async def fill() -> None:
        store = LocalLedgerStore(OsFileSystem(str(tmp_path)), SystemClock(), SMALL)
        store.open()
        await append(store, store.open_log("a"), *numbered(0, 30, 100))
        await store.close()

    asyncio.run(fill())
    real = os.open

    def read_only(path: str, flags: int, mode: int = 0o777) -> int:
        if flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC):
            raise OSError(errno.EROFS, os.strerror(errno.EROFS), path)
        return real(path, flags, mode)

    monkeypatch.setattr(os, "open", read_only)
    for lock in (True, False):
        if not lock:
            (tmp_path / "LOCK").unlink()
        assert verify(OsFileSystem(str(tmp_path), only_read=True)).damage == []
    assert not (tmp_path / "LOCK").exists()
    running = OsFileSystem(str(tmp_path), only_read=True)
    running.lock()
    with pytest.raises(PersistenceError, match="in use"):
        verify(OsFileSystem(str(tmp_path), only_read=True))
    running.unlock()


def test_a_start_that_would_be_refused_for_a_missing_segment_is_damage() -> None:
    files = filled()
    for name in checkpoint_names(files.names()):
        files.remove(name)
    assert segment_name(1) not in files.names()
    with pytest.raises(PersistenceError, match="segment-0000000000000001 is"):
        opened(files)
    assert any("segment-0000000000000001 is missing" in text for text in verify(files).damage)
