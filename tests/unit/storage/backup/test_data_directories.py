"""Backup and restore of a data directory on a real disk: what fails leaves things as they were."""

from __future__ import annotations

import asyncio
import errno
import os
import shutil
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from magnetar.model.errors import ConflictError, PersistenceError
from magnetar.runtime.clock import SystemClock
from magnetar.storage.backends import files as disk
from magnetar.storage.backends.directory import lock_directory
from magnetar.storage.backends.files import OsFileSystem
from magnetar.storage.backup.backup_directory import BackupDirectory
from magnetar.storage.backup.data_directories import back_up_directory, restore_directory
from magnetar.storage.backup.file_copy import FileCopy
from magnetar.storage.backup.manifest import (
    INCOMPLETE,
    MANIFEST,
    BackedUpFile,
    BackupManifest,
    manifest_line,
    read_manifest,
)
from magnetar.storage.verify import verify
from tests.support.real_broker import TOPIC, RealBroker, real_broker


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data directory with three messages, whose broker has stopped."""
    path = tmp_path_factory.mktemp("stopped") / "data"

    async def fill() -> None:
        async with real_broker(path) as broker:
            producer = await (await broker.client()).producer("persistent://public/default/t")
            for number in range(3):
                await producer.publish(b"%d" % number)

    asyncio.run(fill())
    return path


@pytest.fixture
def backup(data: Path, tmp_path: Path) -> Path:
    back_up_directory(str(data), str(tmp_path / "backup"))
    return tmp_path / "backup"


def tree(path: Path) -> dict[str, bytes]:
    return {str(one.relative_to(path)): one.read_bytes() for one in path.rglob("*") if one.is_file()}


def messages(path: Path) -> list[bytes]:
    async def read() -> list[bytes]:
        async with real_broker(path) as broker:
            return [await _message(broker, place) for place in range(1, 4)]

    return asyncio.run(read())


async def _message(broker: RealBroker, place: int) -> bytes:
    status, found = await broker.ask(
        "GET", f"{TOPIC}/t/examinemessage?initialPosition=earliest&messagePosition={place}"
    )
    assert status == 200, found
    return str(found).encode()


def test_there_and_back(data: Path, backup: Path, tmp_path: Path) -> None:
    restored = tmp_path / "restored"
    manifest = restore_directory(str(backup), str(restored))
    ours = {one.name for one in manifest.files}
    assert {name: content for name, content in tree(data / "ledgers").items() if name in ours} == tree(
        restored / "ledgers"
    )
    assert {"metadata-a", "metadata-b", "newest"} < ours and not ours & {"LOCK", "reserve"}
    for directory in (backup, restored, restored / "ledgers"):
        assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    assert {stat.S_IMODE(one.stat().st_mode) for one in backup.iterdir()} == {0o600}
    assert verify(OsFileSystem(str(restored / "ledgers"), only_read=True)).damage == []
    assert messages(restored) == [b"0", b"1", b"2"]


def test_what_is_said_of_a_backup_is_what_stands_in_it(data: Path, tmp_path: Path) -> None:
    before = SystemClock().now_ms()
    made = back_up_directory(str(data), str(tmp_path / "backup"))
    assert made == read_manifest(OsFileSystem(str(tmp_path / "backup"), only_read=True))
    assert before <= made.taken_ms <= SystemClock().now_ms()


def test_every_damaged_byte_is_found_and_nothing_is_made(backup: Path, tmp_path: Path) -> None:
    manifest = read_manifest(OsFileSystem(str(backup), only_read=True))
    for one in [*manifest.files, BackedUpFile(MANIFEST, (backup / MANIFEST).stat().st_size, 0)]:
        for offset in (0, one.length // 2, one.length - 1):
            path = backup / one.name
            content = path.read_bytes()
            path.write_bytes(content[:offset] + bytes([content[offset] ^ 1]) + content[offset + 1 :])
            with pytest.raises(PersistenceError, match=f"{one.name}.* checksum does not fit"):
                restore_directory(str(backup), str(tmp_path / "restored"))
            path.write_bytes(content)
    (backup / "newest").write_bytes(b"")
    with pytest.raises(PersistenceError, match="newest has 0 bytes instead of"):
        restore_directory(str(backup), str(tmp_path / "restored"))
    (backup / "newest").unlink()
    with pytest.raises(PersistenceError, match="newest is missing"):
        restore_directory(str(backup), str(tmp_path / "restored"))
    assert not (tmp_path / "restored").exists()


@pytest.mark.parametrize(
    ("files", "why"),
    [
        ([BackedUpFile("../../etc/passwd", 0, 0)], "which no backup of magnetar holds"),
        ([BackedUpFile("newest", -1, 0)], "which no backup of magnetar holds"),
        ([BackedUpFile("newest", 0, 0)] * 2, "names a file twice"),
    ],
)
def test_a_manifest_that_was_made_up(files: list[BackedUpFile], why: str, tmp_path: Path) -> None:
    (tmp_path / MANIFEST).write_bytes(manifest_line(BackupManifest(0, files)))
    with pytest.raises(PersistenceError, match=why):
        read_manifest(OsFileSystem(str(tmp_path), only_read=True))


def test_older_metadata_are_nobodys_where_a_copy_of_newer_ones_is_there(data: Path, tmp_path: Path) -> None:
    """One copy is enough; without any a broker has to take the older ones over first."""
    old = tmp_path / "old"
    shutil.copytree(data, old)
    (old / "metadata.sqlite").unlink(missing_ok=True)
    (old / "metadata.sqlite").write_bytes(b"an older version's")
    (old / "ledgers" / "metadata-b").unlink()
    back_up_directory(str(old), str(tmp_path / "one"))
    (old / "ledgers" / "metadata-a").unlink()
    with pytest.raises(PersistenceError, match="are still an older version's"):
        back_up_directory(str(old), str(tmp_path / "none"))


def test_an_interrupted_backup_is_refused_by_name(backup: Path, tmp_path: Path) -> None:
    (backup / MANIFEST).unlink()
    with pytest.raises(PersistenceError, match=r"no manifest\.json: this is no backup, or one that was interrupted"):
        restore_directory(str(backup), str(tmp_path / "restored"))
    with pytest.raises(PersistenceError, match="there is no directory"):
        restore_directory(str(tmp_path / "nowhere"), str(tmp_path / "restored"))


def test_the_directory_that_backups_lie_in_is_no_backup(backup: Path, tmp_path: Path) -> None:
    with pytest.raises(PersistenceError, match=r"is no backup, but holds some; name one of them: backup$"):
        restore_directory(str(backup.parent), str(tmp_path.parent / "restored"))


def test_nothing_is_overwritten(data: Path, backup: Path, tmp_path: Path) -> None:
    before = tree(data), tree(backup)
    with pytest.raises(PersistenceError, match="is not empty"):
        back_up_directory(str(data), str(backup))
    with pytest.raises(PersistenceError, match=r"is not empty: it holds ledgers, metadata\.sqlite"):
        restore_directory(str(backup), str(data))
    with pytest.raises(PersistenceError, match="is no data directory"):
        back_up_directory(str(tmp_path), str(tmp_path / "other"))
    assert before == (tree(data), tree(backup)) and not (tmp_path / "other").exists()


def test_a_directory_in_use(data: Path, backup: Path, tmp_path: Path) -> None:
    lock = lock_directory(str(data))
    try:
        with pytest.raises(PersistenceError, match="in use by another process"):
            back_up_directory(str(data), str(tmp_path / "other"))
    finally:
        os.close(lock)
    (tmp_path / "restored").mkdir()
    lock = lock_directory(str(tmp_path / "restored"))
    try:
        with pytest.raises(PersistenceError, match="in use by another process"):
            restore_directory(str(backup), str(tmp_path / "restored"))
    finally:
        os.close(lock)
    assert not (tmp_path / "other").exists() and not list((tmp_path / "restored").iterdir())


def test_a_full_disk_leaves_nothing(data: Path, backup: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "restored").mkdir()
    calls = 0

    def full(file: disk.OsFile, chunks: object) -> None:
        nonlocal calls
        calls += 1
        if calls % 3 == 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        append(file, chunks)  # type: ignore[arg-type]

    append = disk.OsFile.append
    monkeypatch.setattr(disk.OsFile, "append", full)
    with pytest.raises(PersistenceError, match=r"could not be copied: .*No space left"):
        back_up_directory(str(data), str(tmp_path / "other"))
    with pytest.raises(
        PersistenceError, match=r"restored: No space left on device; .*restored is as it was.*restore again"
    ):
        restore_directory(str(backup), str(tmp_path / "restored"))
    assert not (tmp_path / "other").exists() and not list((tmp_path / "restored").iterdir())
    monkeypatch.undo()
    monkeypatch.setattr(OsFileSystem, "space", lambda _: (10, 100))
    with pytest.raises(PersistenceError, match=r"takes \d+ bytes and 10 are free"):
        back_up_directory(str(data), str(tmp_path / "other"))
    with pytest.raises(PersistenceError, match=r"holds \d+ bytes and 10 are free"):
        restore_directory(str(backup), str(tmp_path / "restored"))
    assert not (tmp_path / "other").exists() and not list((tmp_path / "restored").iterdir())


def test_a_backup_that_gets_shorter_while_it_is_restored_is_named(
    backup: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The refusal gave None as its reason."""
    copied = FileCopy.step

    def shortened(copy: FileCopy) -> bool:
        if copy._target is not None:
            monkeypatch.setattr(copy, "_read", lambda _: 0)
        return copied(copy)

    monkeypatch.setattr(FileCopy, "step", shortened)
    with pytest.raises(PersistenceError, match=r"restored: [\w.-]+ ends after 0 bytes of \d+; "):
        restore_directory(str(backup), str(tmp_path / "restored"))
    assert not (tmp_path / "restored").exists()


def test_what_an_interrupted_backup_left_is_removed_and_closed_to_others(data: Path, tmp_path: Path) -> None:
    left = tmp_path / "backup"
    left.mkdir(mode=0o755)
    (left / INCOMPLETE).touch()
    (left / "segment-00000000000000ff").write_bytes(b"half")
    back_up_directory(str(data), str(left))
    assert not (left / "segment-00000000000000ff").exists()
    assert stat.S_IMODE(left.stat().st_mode) == 0o700


def test_a_restore_whose_last_step_fails_leaves_nothing(
    backup: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rename = os.rename

    def refuse(source: str, target: str) -> None:
        if source.endswith(".restoring"):
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        rename(source, target)

    monkeypatch.setattr(os, "rename", refuse)
    with pytest.raises(PersistenceError, match="is as it was"):
        restore_directory(str(backup), str(tmp_path / "restored"))
    assert not (tmp_path / "restored").exists()


def crashing(work: Callable[[], object], step: int) -> bool:
    """Do it in a child that ends without a word before its ``step``th change of the disk; whether it got to its end."""
    child = os.fork()
    if child == 0:
        left = step

        def counted(change: Callable[..., object]) -> Callable[..., object]:
            def called(*given: object, **named: object) -> object:
                nonlocal left
                left -= 1
                if left < 0:
                    os._exit(9)
                return change(*given, **named)

            return called

        for kind, names in ((disk.OsFile, ("append", "sync")), (OsFileSystem, ("rename", "remove", "sync"))):
            for name in names:
                setattr(kind, name, counted(getattr(kind, name)))
        for name in ("mkdir", "rename", "rmdir", "remove"):
            setattr(os, name, counted(getattr(os, name)))
        try:
            work()
        except BaseException:
            os._exit(1)
        os._exit(0)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code in (0, 9), code
    return code == 0


def test_a_crash_at_any_step_of_a_backup_leaves_the_broker_whole_and_a_backup_that_can_be_repeated(
    data: Path, tmp_path: Path
) -> None:
    before, refused = tree(data), 0
    for step in range(1000):
        place, restored = tmp_path / f"backup{step}", tmp_path / f"restored{step}"
        done = crashing(lambda place=place: back_up_directory(str(data), str(place)), step)  # type: ignore[misc]
        assert tree(data) == before
        if not (place / MANIFEST).exists():
            with pytest.raises(PersistenceError, match=r"incomplete: it was|no directory|this is no backup"):
                restore_directory(str(place), str(restored))
            assert not restored.exists()
            refused += "incomplete" in {one.name for one in place.glob("*")}
            back_up_directory(str(data), str(place))
        if done or step % 4 == 0:
            restore_directory(str(place), str(restored))
            assert "incomplete" not in {one.name for one in (restored / "ledgers").iterdir()}
        if done:
            break
    assert 10 < step < 999 and refused > 10


def test_a_crash_at_any_step_of_a_restore_leaves_a_place_where_it_can_be_repeated(backup: Path, tmp_path: Path) -> None:
    whole = tree(backup)
    restore_directory(str(backup), str(tmp_path / "right"))
    right = tree(tmp_path / "right" / "ledgers")
    for step in range(1000):
        place = tmp_path / f"restored{step}"
        done = crashing(lambda place=place: restore_directory(str(backup), str(place)), step)  # type: ignore[misc]
        assert tree(backup) == whole
        if not (place / "ledgers").exists():
            restore_directory(str(backup), str(place))
        assert tree(place / "ledgers") == right, "there is all of it or nothing"
        if done:
            break
    assert 10 < step < 999


def test_an_interrupted_backup_of_a_running_broker_is_begun_again_unless_somebody_writes_it(tmp_path: Path) -> None:
    place = BackupDirectory(str(tmp_path))
    target = place.make("monday")
    target.open("incomplete", create=True).close()
    target.open("segment-0000000000000001", create=True).close()
    with pytest.raises(ConflictError, match="exists"):
        BackupDirectory(str(tmp_path)).make("monday")  # of another broker, while the first one is at work
    place.make("tuesday")  # which lets the lock of monday go
    again = BackupDirectory(str(tmp_path)).make("monday")
    assert again.names() == []
    (tmp_path / "monday" / "notes.txt").write_text("mine")
    (tmp_path / "monday" / "incomplete").write_text("")
    with pytest.raises(ConflictError, match="exists"):
        place.make("monday")
    assert (tmp_path / "monday" / "notes.txt").read_text() == "mine"


def test_a_backup_inside_what_it_protects_is_refused(data: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(data, target_is_directory=True)
    (tmp_path / "way").symlink_to(data / "ledgers", target_is_directory=True)
    before = tree(data)
    for to in (data / "inner", data / "ledgers" / "a" / "b", tmp_path / "link" / "inner", tmp_path / "way" / "x"):
        with pytest.raises(PersistenceError, match="which it is to protect"):
            back_up_directory(str(data), str(to))
    with pytest.raises(PersistenceError, match="which it is to protect"):
        back_up_directory(str(tmp_path / "link"), str(data / "inner"))
    assert tree(data) == before and not (data / "inner").exists()
    back_up_directory(str(data), str(tmp_path / (data.name + "-beside")))


def test_a_restore_into_the_backup_is_refused(backup: Path) -> None:
    before = tree(backup)
    with pytest.raises(PersistenceError, match="lies in the backup"):
        restore_directory(str(backup), str(backup / "data"))
    assert tree(backup) == before and not (backup / "data").exists()


def test_a_running_broker_says_at_once_what_is_wrong_with_its_place(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    inside = home / "backups"
    inside.mkdir(parents=True)
    (tmp_path / "closed").mkdir()
    (tmp_path / "link").symlink_to(inside, target_is_directory=True)

    async def refused(place: Path) -> str:
        caplog.clear()
        async with real_broker(home, backupDirectory=str(place)) as broker:
            status, said = await broker.ask("POST", "/admin/v2/brokers/backup", {"name": "one"})
            assert status == 412, said
            return caplog.text

    for place, words in (
        (tmp_path / "none", "is no directory; make it"),
        (inside, "which backups are to protect"),
        (tmp_path / "link", "which backups are to protect"),
    ):
        assert words in asyncio.run(refused(place))
    assert not list(inside.iterdir())
    monkeypatch.setattr(os, "access", lambda path, mode: str(path) != str(tmp_path / "closed"))
    assert "cannot be written by the user" in asyncio.run(refused(tmp_path / "closed"))


def test_the_half_backup_that_another_broker_is_writing_is_not_taken(tmp_path: Path) -> None:
    """Two brokers may have the same backupDirectory; once the other has gone, what it left is written over."""
    left = tmp_path / "monday"
    left.mkdir(mode=0o700)
    (left / INCOMPLETE).touch()
    other = lock_directory(str(left))
    with pytest.raises(ConflictError, match="monday exists; choose another name"):
        BackupDirectory(str(tmp_path)).make("monday")
    assert [one.name for one in left.iterdir()] == [INCOMPLETE]
    os.close(other)
    assert BackupDirectory(str(tmp_path)).make("monday").names() == []
