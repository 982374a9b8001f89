"""Where a running broker writes backups: plain names below one directory, and nothing that stands there is lost."""

from __future__ import annotations

import errno
import os
import stat
from contextlib import nullcontext
from pathlib import Path

import pytest

from magnetar.model.errors import ConflictError, InvalidValueError, PersistenceError, PreconditionFailedError
from magnetar.storage.backends.files import OsFileSystem
from magnetar.storage.backup import backup_directory
from magnetar.storage.backup.backup_directory import BackupDirectory
from magnetar.storage.backup.backup_writer import BackupPart, BackupWriter
from magnetar.storage.backup.data_directories import restore_directory
from magnetar.storage.backup.restored_files import checked_manifest, restore_files


@pytest.mark.parametrize("name", ["a", "Z", "9", "monday-1.2_x", "a" * 100])
def test_a_backup_gets_an_empty_directory_of_its_own(tmp_path: Path, name: str) -> None:
    place = BackupDirectory(str(tmp_path))
    assert place.trouble() is None
    made = place.make(name)
    assert os.listdir(tmp_path) == [name]
    assert (made.path, made.names()) == (str(tmp_path / name), [])
    assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o700
    place.remove(name)
    assert os.listdir(tmp_path) == []


def test_a_power_cut_neither_takes_the_directory_nor_brings_it_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[tuple[str, list[str]]] = []
    monkeypatch.setattr(backup_directory, "sync_directory", lambda path: synced.append((path, os.listdir(path))))
    place = BackupDirectory(str(tmp_path))
    place.make("monday")
    place.remove("monday")
    assert synced == [(str(tmp_path), ["monday"]), (str(tmp_path), [])]


@pytest.mark.parametrize("name", ["", ".", "..", ".a", "-a", "_a", "a/b", "/a", "../a", "a" * 101, "a b", "ä", "a\n"])
def test_what_is_no_plain_name_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidValueError, match="cannot be the name of a backup"):
        BackupDirectory(str(tmp_path)).make(name)
    assert os.listdir(tmp_path) == []


def test_without_a_directory_there_are_no_backups_and_that_is_no_trouble() -> None:
    place = BackupDirectory("")
    assert place.trouble() is None
    with pytest.raises(PreconditionFailedError, match="backupDirectory is not set"):
        place.make("monday")


def test_a_directory_that_cannot_be_used_is_named_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, file = tmp_path / "data", tmp_path / "file"
    (data / "inside").mkdir(parents=True)
    file.touch()
    for path, why in (
        (tmp_path / "none", "is no directory; make it"), (file, "is no directory; make it"),
        (data, "which backups are to protect"), (data / "inside", "which backups are to protect"),
    ):  # fmt: skip
        place = BackupDirectory(str(path), str(data))
        trouble = place.trouble()
        assert trouble is not None and trouble.startswith(f"backupDirectory {path}") and why in trouble
        with pytest.raises(PreconditionFailedError, match=why):
            place.make("monday")
    assert BackupDirectory(str(data)).trouble() is None, "where nothing is to be protected"
    beside = BackupDirectory(str(tmp_path), str(data))
    assert beside.trouble() is None, "above it is not in it"
    for denied in (os.W_OK, os.X_OK):
        monkeypatch.setattr(os, "access", lambda path, mode, denied=denied: not mode & denied)
        assert "cannot be written by the user" in (beside.trouble() or "")


@pytest.mark.parametrize(
    "left",
    [(), ("manifest.json",), ("incomplete", "manifest.json"), ("incomplete", "notes.txt"), ("newest",)],
    ids=["empty", "whole", "whole and marked", "somebody's", "unmarked"],
)
def test_what_stands_there_is_not_overwritten(tmp_path: Path, left: tuple[str, ...]) -> None:
    (tmp_path / "monday").mkdir()
    for name in left:
        (tmp_path / "monday" / name).touch()
    with pytest.raises(ConflictError, match="monday exists; choose another name, nothing is overwritten"):
        BackupDirectory(str(tmp_path)).make("monday")
    assert sorted(os.listdir(tmp_path / "monday")) == sorted(left)


def half(path: Path) -> Path:
    """What an interrupted backup has left."""
    path.mkdir()
    for name in ("incomplete", "newest", "segment-0000000000000001"):
        (path / name).touch()
    return path


def test_what_an_interrupted_backup_has_left_makes_room_for_another_of_its_name(tmp_path: Path) -> None:
    left = half(tmp_path / "monday")
    assert BackupDirectory(str(tmp_path)).make("monday").path == str(left)
    assert os.listdir(left) == []


def test_a_link_and_a_file_are_not_followed_or_replaced(tmp_path: Path) -> None:
    elsewhere = half(tmp_path / "elsewhere")
    (tmp_path / "monday").symlink_to(elsewhere)
    (tmp_path / "tuesday").touch()
    for name in ("monday", "tuesday"):
        with pytest.raises(ConflictError, match=f"{name} exists"):
            BackupDirectory(str(tmp_path)).make(name)
    assert len(os.listdir(elsewhere)) == 3


def test_a_backup_that_another_broker_writes_there_is_left_alone(tmp_path: Path) -> None:
    """It holds the directory until its next backup."""
    first, other = BackupDirectory(str(tmp_path)), BackupDirectory(str(tmp_path))
    first.make("monday")
    (tmp_path / "monday" / "incomplete").touch()
    with pytest.raises(ConflictError, match="monday exists"):
        other.make("monday")
    assert os.listdir(tmp_path / "monday") == ["incomplete"]
    first.make("tuesday")
    assert other.make("monday").names() == [], "it was given up"
    with pytest.raises(ConflictError, match="tuesday exists"):
        other.make("tuesday")


@pytest.mark.parametrize("step", ["sync_directory", "lock_directory"])
def test_a_directory_that_could_not_be_made_durable_or_locked_keeps_no_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    def refuse(path: str) -> int:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    place = BackupDirectory(str(tmp_path))
    with monkeypatch.context() as patched:
        patched.setattr(backup_directory, step, refuse)
        with pytest.raises(OSError, match="Too many open files"):
            place.make("monday")
    assert os.listdir(tmp_path) == []
    assert place.make("monday").names() == []


def test_what_an_interrupted_backup_left_and_the_disk_keeps_is_written_over(tmp_path: Path) -> None:
    """The new bytes stood behind the old ones, and the backup that was reported as whole could not be restored."""
    target, source = OsFileSystem(str(tmp_path / "to")), OsFileSystem(str(tmp_path / "from"))
    for files, data in ((target, b"half of an older one"), (source, b"new")):
        file = files.open("segment-0000000000000001", create=True)
        file.append([data])
        file.close()
    parts = [BackupPart("segment-0000000000000001"), BackupPart("newest", data=b"1")]
    writer = BackupWriter(source, target, parts, 1)
    writer.run()
    assert checked_manifest(target).files == writer.files
    again = OsFileSystem(str(tmp_path / "again"))
    again.open("newest", create=True).append([b"half of an older restore"])
    restore_files(target, checked_manifest(target), again)
    assert (tmp_path / "again" / "newest").read_bytes() == b"1"


@pytest.mark.parametrize("end", ["whole", "a file is missing", "given up", "never begun"])
def test_a_backup_lets_all_files_go_however_it_ends(tmp_path: Path, end: str) -> None:
    """Its copies, what they are made of, and what was opened when its moment came."""
    (tmp_path / "data").mkdir()
    source, target = OsFileSystem(str(tmp_path / "data")), BackupDirectory(str(tmp_path)).make("monday")
    for name in ("segment-0000000001", "metadata-a"):
        with_content = source.open(name, create=True)
        with_content.append([b"x" * 1000])
        with_content.close()
    before = set(os.listdir("/proc/self/fd"))
    parts = [
        BackupPart("segment-0000000001"),
        BackupPart("newest", data=b"1"),
        BackupPart("metadata-a", 1000, source.open("metadata-a")),
    ]
    if end == "a file is missing":
        parts.insert(1, BackupPart("segment-0000000002"))
    writer = BackupWriter(source, target, parts, 1)
    if end in ("whole", "a file is missing"):
        with pytest.raises(OSError, match="0000000002") if end == "a file is missing" else nullcontext():
            writer.run()
    else:
        for _ in range(2 if end == "given up" else 0):
            assert not writer.step()
        assert len(os.listdir("/proc/self/fd")) == len(before) + (3 if end == "given up" else 1)
        writer.close()
    assert set(os.listdir("/proc/self/fd")) == before


def test_a_directory_that_is_no_backup_is_named(tmp_path: Path) -> None:
    """It said "there is no manifest.json" and not where."""
    (tmp_path / "etc").mkdir()
    with pytest.raises(PersistenceError) as refused:
        restore_directory(str(tmp_path / "etc"), str(tmp_path / "data"))
    assert str(refused.value).startswith(f"{tmp_path}/etc: there is no manifest.json: this is no backup")
    assert not (tmp_path / "data").exists()
