"""One body for every FileSystem: what the operating system's does, the simulator's twin does too."""

from __future__ import annotations

import errno
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from magnetar.storage.backends.files import File, FileSystem, OsFileSystem
from magnetar.testing.faultfiles import FaultFileSystem

Views = tuple[FileSystem, FileSystem]


def _os_views(path: Path) -> Views:
    return OsFileSystem(str(path)), OsFileSystem(str(path))


def _memory_views(path: Path) -> Views:
    first = FaultFileSystem(random.Random(1))
    return first, first.second_process()


@pytest.fixture(params=[_os_views, _memory_views], ids=["os", "memory"])
def views(request: pytest.FixtureRequest, tmp_path: Path) -> Views:
    """Two views of one disk, as two processes have them."""
    make: Callable[[Path], Views] = request.param
    return make(tmp_path)


@pytest.fixture
def disk(views: Views) -> FileSystem:
    return views[0]


def _write(disk: FileSystem, name: str, content: bytes) -> File:
    file = disk.open(name, create=True)
    file.append([content])
    return file


def _content(disk: FileSystem, name: str) -> bytes:
    file = disk.open(name)
    try:
        return file.read(0, file.size())
    finally:
        file.close()


def test_appends_are_read_back_in_order(disk: FileSystem) -> None:
    file = disk.open("a", create=True)
    file.append([b"one", bytearray(b"two"), memoryview(b"three")])
    file.append([])
    file.append([b""])
    file.append([b"x" for _ in range(3000)])
    file.sync()
    assert file.size() == 3011
    assert file.read(0, 11) == b"onetwothree"
    assert file.read(11, 5000) == b"x" * 3000
    file.close()


def test_reads_are_short_only_at_the_end(disk: FileSystem) -> None:
    file = _write(disk, "a", b"0123456789")
    assert file.read(0, 4) == b"0123"
    assert file.read(8, 4) == b"89"
    assert file.read(10, 4) == b""
    assert file.read(99, 4) == b""
    assert file.read(3, 0) == b""
    with pytest.raises(OSError) as caught:
        file.read(-1, 4)
    assert caught.value.errno == errno.EINVAL
    file.close()


def test_open_creates_only_when_asked_and_keeps_content(disk: FileSystem) -> None:
    with pytest.raises(FileNotFoundError):
        disk.open("a")
    _write(disk, "a", b"kept").close()
    again = disk.open("a", create=True)
    again.append([b" more"])
    again.close()
    assert _content(disk, "a") == b"kept more"


def test_two_handles_see_each_other_and_append_at_the_end(disk: FileSystem) -> None:
    first = _write(disk, "a", b"1")
    second = disk.open("a")
    second.append([b"2"])
    first.append([b"3"])
    assert first.read(0, 9) == second.read(0, 9) == b"123"
    first.close()
    second.close()


def test_a_write_goes_over_what_is_there_and_beyond(disk: FileSystem) -> None:
    file = disk.open("a", create=True)
    file.append([b"0123456789"])
    file.write(2, [b"ab", memoryview(b"c")])
    assert (file.read(0, 100), file.size()) == (b"01abc56789", 10)
    file.write(8, [b"xyz"])
    file.write(14, [b"!"])
    assert file.read(0, 100) == b"01abc567xyz\0\0\0!"
    file.append([b"end"])
    file.sync()
    assert file.read(14, 100) == b"!end"


def test_truncate_cuts_and_extends_with_zeros(disk: FileSystem) -> None:
    file = _write(disk, "a", b"0123456789")
    file.truncate(4)
    file.append([b"x"])
    assert _content(disk, "a") == b"0123x"
    file.truncate(7)
    assert _content(disk, "a") == b"0123x\0\0"
    with pytest.raises(OSError) as caught:
        file.truncate(-1)
    assert caught.value.errno == errno.EINVAL
    file.close()


def test_close_twice_and_use_after_close(disk: FileSystem) -> None:
    file = _write(disk, "a", b"x")
    file.close()
    file.close()
    uses: list[Callable[[], object]] = [
        lambda: file.append([b"y"]),
        file.sync,
        lambda: file.read(0, 1),
        lambda: file.truncate(0),
        file.size,
    ]
    for use in uses:
        with pytest.raises((OSError, ValueError)):  # os.fdatasync(-1) raises the latter
            use()
    assert _content(disk, "a") == b"x"


def test_names_are_sorted_and_rename_replaces(disk: FileSystem) -> None:
    for name in ("b", "a", "c"):
        _write(disk, name, name.encode()).close()
    assert disk.names() == ["a", "b", "c"]
    disk.rename("c", "a")
    disk.rename("b", "b")
    disk.sync()
    assert disk.names() == ["a", "b"]
    assert _content(disk, "a") == b"c"
    with pytest.raises(FileNotFoundError):
        disk.rename("nothing", "b")
    assert _content(disk, "b") == b"b"


def test_an_open_file_outlives_its_name(disk: FileSystem) -> None:
    file = _write(disk, "a", b"1")
    disk.rename("a", "b")
    file.append([b"2"])
    assert _content(disk, "b") == b"12"
    disk.remove("b")
    assert disk.names() == []
    file.append([b"3"])
    assert file.read(0, 9) == b"123"
    file.close()
    with pytest.raises(FileNotFoundError):
        disk.remove("b")


def test_one_process_has_the_lock(views: Views) -> None:
    first, second = views
    first.lock()
    for blocked in (first, second):
        with pytest.raises(BlockingIOError):
            blocked.lock()
    second.unlock()
    with pytest.raises(BlockingIOError):
        second.lock()
    first.unlock()
    first.unlock()
    second.lock()
    assert second.names() == ["LOCK"]
    second.unlock()
