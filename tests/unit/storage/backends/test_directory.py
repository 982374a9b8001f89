"""Names last, others cannot read, and no one gets in by deleting a file."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from magnetar.app.data_directory import DataDirectory
from magnetar.model.errors import PersistenceError
from magnetar.storage.backends.directory import close_to_others, make_directory
from magnetar.storage.backends.files import OsFileSystem

SECOND = """
import sys
from magnetar.storage.backends.files import OsFileSystem
try:
    OsFileSystem(sys.argv[1]).lock()
except BlockingIOError:
    print("refused")
else:
    print("admitted")
"""


def modes(*paths: Path) -> list[int]:
    return [stat.S_IMODE(path.stat().st_mode) for path in paths]


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Directories that were really synced, by the kernel's name for the descriptor."""
    found: list[str] = []
    fsync = os.fsync

    def record(fd: int) -> None:
        fsync(fd)
        found.append(os.readlink(f"/proc/self/fd/{fd}"))

    monkeypatch.setattr(os, "fsync", record)
    return found


def test_every_name_on_the_way_is_synced(tmp_path: Path, synced: list[str]) -> None:
    make_directory(str(tmp_path / "a" / "data" / "ledgers"))
    assert {str(tmp_path), str(tmp_path / "a"), str(tmp_path / "a" / "data")} <= set(synced)


def test_the_names_of_a_directory_somebody_else_made_are_synced_too(tmp_path: Path, synced: list[str]) -> None:
    (tmp_path / "data" / "ledgers").mkdir(parents=True)
    OsFileSystem(str(tmp_path / "data" / "ledgers")).make()
    assert {str(tmp_path), str(tmp_path / "data")} <= set(synced)


def test_new_files_and_directories_are_the_owners_whatever_the_umask(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        files = OsFileSystem(str(tmp_path / "data" / "ledgers"))
        files.make()
        files.lock()
        files.open("segment-1", create=True).close()
        files.unlock()
    finally:
        os.umask(old)
    ledgers = tmp_path / "data" / "ledgers"
    assert modes(tmp_path / "data", ledgers) == [0o700, 0o700]
    assert modes(ledgers / "segment-1", ledgers / "LOCK") == [0o600, 0o600]


def test_old_permissions_are_tightened_once_and_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    data = tmp_path / "data"
    ledgers = data / "ledgers"
    ledgers.mkdir(parents=True, mode=0o755)
    for path in (data / "metadata.sqlite", ledgers / "segment-0000000000000001", ledgers / "notes.txt"):
        path.write_bytes(b"x")
        path.chmod(0o644)
    for _ in range(2):
        DataDirectory(data).close()
        OsFileSystem(str(ledgers)).make()
    assert modes(data, ledgers) == [0o700, 0o700]
    assert modes(data / "metadata.sqlite", ledgers / "segment-0000000000000001") == [0o600, 0o600]
    assert modes(ledgers / "notes.txt") == [0o644], "not ours"
    assert len(caplog.records) == 2, [record.getMessage() for record in caplog.records]


def test_what_is_no_file_keeps_its_permissions_and_what_follows_does_not(tmp_path: Path) -> None:
    """Directories beside ours are another program's, wherever they stand in the list."""
    (tmp_path / "a").mkdir(mode=0o755)
    (tmp_path / "b").touch(0o644)
    close_to_others(str(tmp_path), ["a", "b"])
    assert modes(tmp_path / "a", tmp_path / "b") == [0o755, 0o600]


def test_a_directory_with_other_peoples_things_keeps_its_permissions(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    (tmp_path / "thesis.txt").write_bytes(b"x")
    DataDirectory(tmp_path).close()
    assert modes(tmp_path) == [0o755]


def test_deleting_the_lock_file_lets_no_second_process_in(tmp_path: Path) -> None:
    first = OsFileSystem(str(tmp_path))
    first.lock()
    (tmp_path / "LOCK").unlink()

    def second() -> str:
        command = [sys.executable, "-c", SECOND, str(tmp_path)]
        return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout.strip()

    assert second() == "refused"
    assert second() == "refused", "the first refusal left a lock file of its own"
    first.unlock()
    assert second() == "admitted"


def test_moving_the_ledgers_away_lets_no_second_broker_in(tmp_path: Path) -> None:
    first = DataDirectory(tmp_path)
    (tmp_path / "ledgers").mkdir()
    (tmp_path / "ledgers").rename(tmp_path / "elsewhere")
    with pytest.raises(PersistenceError, match="in use by another process"):
        DataDirectory(tmp_path)
    first.close()
    DataDirectory(tmp_path).close()


@pytest.mark.parametrize("code", [errno.EROFS, errno.EACCES, errno.EMFILE])
def test_on_a_disk_that_turned_read_only_what_is_there_can_be_read_and_nothing_else_is_opened_otherwise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    """Whatever else is wrong, a file that was asked for is not opened for reading alone."""
    files = OsFileSystem(str(tmp_path))
    file = files.open("there", create=True)
    file.append([b"content"])
    file.close()
    real = os.open

    def refusing(path: str, flags: int, mode: int = 0o777) -> int:
        if flags & (os.O_RDWR | os.O_CREAT):
            raise OSError(code, os.strerror(code), path)
        return real(path, flags, mode)

    monkeypatch.setattr(os, "open", refusing)
    if code == errno.EROFS:
        file = files.open("there")
        assert file.read(0, 100) == b"content"
        file.close()
    for name, create in (("there", True), ("new", True)) if code == errno.EROFS else (("there", False), ("new", True)):
        with pytest.raises(OSError, match=name) as refused:
            files.open(name, create=create)
        assert refused.value.errno == code
