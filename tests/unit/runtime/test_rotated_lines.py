"""Lines in files that are begun anew: nothing waits, nothing is lost without being counted."""

from __future__ import annotations

import errno
import logging
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from magnetar.runtime import rotated_lines
from magnetar.runtime.rotated_lines import RotatedLines


def line_of_lost(count: int) -> bytes:
    return b"lost %d\n" % count


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "audit.log"


def opened(path: Path, size_max: int = 1 << 20, files: int = 3) -> RotatedLines:
    lines = RotatedLines(path, size_max, files, line_of_lost)
    lines.start()
    return lines


def holds(path: Path, wanted: bytes) -> bool:
    """Whether that is all that stands there; there is no file while one is put aside."""
    try:
        return path.read_bytes() == wanted
    except FileNotFoundError:
        return False


class Disk:
    """``os.write`` that refuses while it is told to, and says when it was asked."""

    def __init__(self, patched: pytest.MonkeyPatch) -> None:
        self.refuses = False
        self.asked = threading.Event()
        self._write = os.write
        patched.setattr(os, "write", self.write)
        patched.setattr(rotated_lines, "AGAIN_S", 0.01)

    def write(self, file: int, data: bytes) -> int:
        self.asked.set()
        if self.refuses:
            raise OSError(errno.ENOSPC, "No space left on device")
        return self._write(file, data[: max(1, len(data) // 2)])  # only a part of it, as a full disk does


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Iterator[Disk]:
    yield Disk(monkeypatch)


def test_lines_are_kept_in_order_for_the_owner_only(path: Path) -> None:
    path.write_bytes(b"before\n")
    path.chmod(0o600)
    lines = opened(path)
    for number in range(100):
        lines.put(b"line %d\n" % number)
    lines.close()
    assert path.read_bytes() == b"before\n" + b"".join(b"line %d\n" % number for number in range(100))
    new = path.with_name("new.log")
    opened(new).close()
    assert new.stat().st_mode & 0o777 == 0o600


def test_a_large_file_is_put_aside_and_the_oldest_goes(path: Path) -> None:
    lines = opened(path, size_max=10, files=3)
    for number in range(5):
        lines.put(b"line %d....\n" % number)
        while not holds(path, b"line %d....\n" % number):
            pass
    lines.close()
    assert sorted(one.name for one in path.parent.iterdir()) == ["audit.log", "audit.log.1", "audit.log.2"]
    for name, number in (("audit.log", 4), ("audit.log.1", 3), ("audit.log.2", 2)):
        assert path.with_name(name).read_bytes() == b"line %d....\n" % number


def test_a_file_that_was_moved_away_is_begun_anew(path: Path) -> None:
    lines = opened(path)
    path.rename(path.with_name("moved"))
    lines.put(b"new\n")
    lines.close()
    assert path.read_bytes() == b"new\n"


def test_a_disk_that_refuses_costs_nothing_and_is_said_once(
    path: Path, disk: Disk, caplog: pytest.LogCaptureFixture
) -> None:
    lines = opened(path)
    disk.refuses = True
    with caplog.at_level(logging.INFO):
        for number in range(20):
            lines.put(b"line %d\n" % number)
            disk.asked.wait(5)
            disk.asked.clear()
        assert lines.failing
        disk.refuses = False
        lines.put(b"last\n")
        while lines.failing:
            pass
        lines.close()
    assert path.read_bytes() == b"".join(b"line %d\n" % number for number in range(20)) + b"last\n"
    assert [one.levelname for one in caplog.records] == ["ERROR", "INFO"]
    assert "No space left" in caplog.text and lines.lost == 0


def test_a_full_queue_loses_lines_and_says_how_many(path: Path, disk: Disk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rotated_lines, "QUEUE_BYTES", 100)
    lines = opened(path)
    disk.refuses = True
    lines.put(b"first\n")
    disk.asked.wait(5)
    for _ in range(30):
        lines.put(b"123456789\n")
    assert lines.lost == 20
    disk.refuses = False
    lines.close()
    assert path.read_bytes() == b"first\n" + b"123456789\n" * 10 + b"lost 20\n"


def test_a_disk_that_never_answers_does_not_keep_the_broker_from_ending(path: Path, disk: Disk) -> None:
    lines = opened(path)
    disk.refuses = True
    lines.put(b"x\n")
    lines.close()
    assert lines._thread is None


def test_a_place_that_cannot_be_written_is_told_at_the_start(tmp_path: Path) -> None:
    for place in (tmp_path / "missing" / "audit.log", tmp_path):
        with pytest.raises(OSError):
            opened(place)


def test_putting_waits_for_nobody(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The lock is never held while the disk is asked."""
    held: list[Any] = []
    free = threading.Event()
    lines = opened(path)

    def hanging(file: int, data: bytes) -> int:
        held.append(lines._wake.acquire(blocking=False))
        if held[-1]:
            lines._wake.release()
        free.wait(5)
        return len(data)

    monkeypatch.setattr(os, "write", hanging)
    lines.put(b"a\n")
    while not held:
        pass
    lines.put(b"b\n")
    free.set()
    lines.close()
    assert all(held)


def test_what_somebody_still_has_is_written_at_the_end(tmp_path: Path) -> None:
    lines = RotatedLines(tmp_path / "log", 1000, 2, lambda count: b"")
    lines.before_end = lambda: lines.put(b"last\n")
    lines.start()
    lines.close()
    assert (tmp_path / "log").read_bytes() == b"last\n"


def test_what_is_no_file_is_never_put_aside(path: Path) -> None:
    """``auditLogFile=/dev/stdout`` in a container: the device was renamed, and a file took its place."""
    os.mkfifo(path)
    reading = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        lines = opened(path, size_max=10)
        for number in range(5):
            lines.put(b"line %d....\n" % number)
        lines.close()
        found = os.read(reading, 1 << 10)
    finally:
        os.close(reading)
    assert found == b"".join(b"line %d....\n" % number for number in range(5))
    assert [one.name for one in path.parent.iterdir()] == ["audit.log"]
    assert not RotatedLines(path, 10, 3, line_of_lost)._fixed
    assert RotatedLines(Path("/dev/stdout"), 10, 3, line_of_lost)._fixed


def test_a_file_that_cannot_be_put_aside_goes_on(
    path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Its directory belongs to root, as /var/log does: nothing more was recorded once it was full."""
    replace, refusing = os.replace, True

    def replaced(before: Any, after: Any) -> None:
        if refusing:
            raise PermissionError(errno.EACCES, "Permission denied")
        replace(before, after)

    monkeypatch.setattr(os, "replace", replaced)
    lines = opened(path, size_max=10)
    written = b""
    for number in range(5):
        lines.put(b"line %d....\n" % number)
        written += b"line %d....\n" % number
        while not holds(path, written):
            pass
    assert not lines.failing
    assert [one.getMessage() for one in caplog.records] == [
        f"{path} cannot be put aside and goes on growing: [Errno 13] Permission denied"
    ]
    refusing = False
    lines.put(b"next.......\n")
    while not holds(path, b"next.......\n"):
        pass
    lines.close()
    assert path.with_name("audit.log.1").read_bytes() == written


def test_older_files_stay_where_they_are_while_the_current_one_cannot_be_renamed(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``chattr +a``: each attempt moved the older ones on, until the oldest were gone."""
    older = {1: b"first\n", 2: b"second\n"}
    for number, content in older.items():
        path.with_name(f"audit.log.{number}").write_bytes(content)
    replace = os.replace

    def replaced(before: Any, after: Any) -> None:
        if Path(before) == path:
            raise PermissionError(errno.EPERM, "Operation not permitted")
        replace(before, after)

    with monkeypatch.context() as patched:
        patched.setattr(os, "replace", replaced)
        lines = opened(path, size_max=10)
        written = b""
        for number in range(5):
            written += b"line %d....\n" % number
            lines.put(b"line %d....\n" % number)
            while not holds(path, written):
                pass
        for number, content in older.items():
            assert path.with_name(f"audit.log.{number}").read_bytes() == content
        lines.close()


def test_what_a_process_had_just_put_aside_when_it_ended_gets_its_number(path: Path) -> None:
    path.with_name("audit.log.0").write_bytes(b"aside\n")
    path.with_name("audit.log.1").write_bytes(b"older\n")
    lines = opened(path, size_max=5, files=4)
    for number in range(2):
        lines.put(b"line %d\n" % number)
        while not holds(path, b"line %d\n" % number):
            pass
    lines.close()
    found = {one.name: one.read_bytes() for one in path.parent.iterdir()}
    assert found == {
        "audit.log": b"line 1\n", "audit.log.1": b"line 0\n", "audit.log.2": b"aside\n", "audit.log.3": b"older\n",
    }  # fmt: skip


def test_a_line_of_which_a_part_was_taken_stands_in_one_file(path: Path, disk: Disk) -> None:
    lines = opened(path, size_max=10)
    lines.put(b"a line that is longer than a file may be\n")
    lines.put(b"next\n")
    lines.close()
    kept = [one.read_bytes() for one in sorted(path.parent.iterdir(), reverse=True)]
    assert all(one.endswith(b"\n") for one in kept)
    assert b"".join(kept) == b"a line that is longer than a file may be\nnext\n"


def test_a_file_that_was_made_empty_is_not_put_aside_too_early(path: Path) -> None:
    """As logrotate's copytruncate does."""
    lines = opened(path, size_max=30)
    for _ in range(3):
        lines.put(b"some twenty bytes..\n")
        while not holds(path, b"some twenty bytes..\n"):
            pass
        os.truncate(path, 0)
    lines.close()
    assert [one.name for one in path.parent.iterdir()] == ["audit.log"]


def test_a_file_that_cannot_be_closed_is_let_go_of_nevertheless(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The number of a file may be that of a connection a moment later."""
    close = os.close
    refused: list[int] = []

    def refusing(file: int) -> None:
        close(file)
        if file == lines._file or not refused:
            refused.append(file)
            raise OSError(errno.EIO, "Input/output error")

    lines = opened(path, size_max=10)
    monkeypatch.setattr(os, "close", refusing)
    for number in range(3):
        lines.put(b"line %d....\n" % number)
        while not holds(path, b"line %d....\n" % number):
            pass
    lines.close()
    assert len(refused) == 1 and not lines.failing
