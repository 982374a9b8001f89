"""How much storage takes of what all share: descriptors, buffers of one write, the reserve's part of a disk."""

from __future__ import annotations

import os
import random
import sys
from pathlib import Path

import pytest

from magnetar.storage.backends.files import OsFile, OsFileSystem
from magnetar.storage.backends.journal_backend import segment_name
from magnetar.storage.backends.local_journal import LocalJournal
from magnetar.storage.backends.reserve import Reserve
from magnetar.storage.backends.zeros_ahead import NO_ZEROS, Zeros, ZerosAhead
from magnetar.testing.faultfiles import FaultFileSystem, Faults

MB = 1 << 20


@pytest.mark.parametrize("count", [1023, 1024, 1025, 2049])
def test_a_write_may_have_more_pieces_than_the_system_takes_at_once(tmp_path: Path, count: int) -> None:
    """Linux takes 1,024 buffers in one call and refuses one more."""
    pieces = [bytes((number & 255,)) * (number % 3 + 1) for number in range(count)]
    fd = os.open(tmp_path / "f", os.O_RDWR | os.O_CREAT)
    file = OsFile(fd)
    file.write(7, pieces)
    assert file.read(7, 4 * count) == b"".join(pieces)
    file.close()


@pytest.mark.parametrize("taken", [1, 3, 4, 5])
def test_a_write_that_takes_less_than_it_was_given_goes_on_where_it_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, taken: int
) -> None:
    """Linux writes at most 2 GB at once, and less where a signal or the end of the disk's room interrupts it."""
    real, calls = os.pwrite, 0

    def some(fd: int, data: bytes | memoryview, at: int) -> int:
        nonlocal calls
        calls += 1
        return real(fd, bytes(data)[:taken], at)

    monkeypatch.setattr(os, "pwrite", some)
    monkeypatch.setattr(os, "pwritev", lambda fd, part, at: some(fd, b"".join(part), at))
    file = OsFile(os.open(tmp_path / "f", os.O_RDWR | os.O_CREAT))
    file.write(2, [b"abc", b"defg", b"", b"hij"])
    file.append([b"kl"])
    assert file.read(0, 100) == b"\0\0abcdefghijkl"
    assert calls == -(-10 // taken) + -(-2 // taken)
    file.close()


@pytest.mark.skipif(sys.platform != "linux", reason="counts in /proc")
def test_readers_keep_128_files_open_and_those_that_were_used_last(tmp_path: Path) -> None:
    """A process may have 1,024 by default, and clients need them."""
    for number in range(130):
        (tmp_path / segment_name(number)).touch()

    def held() -> set[str]:
        found = set()
        for fd in os.listdir("/proc/self/fd"):
            try:
                found.add(os.readlink(f"/proc/self/fd/{fd}"))
            except FileNotFoundError:
                continue  # the one that lists them
        return {Path(name).name for name in found if name.startswith(f"{tmp_path}/")}

    journal = LocalJournal(OsFileSystem(str(tmp_path)))
    for number in range(128):
        journal.reader(number)
    assert len(held()) == 128
    for number in (128, 129):
        journal.reader(number)
        assert held() == {segment_name(one) for one in range(number - 127, number + 1)}
    journal.release()
    assert held() == set()


@pytest.mark.parametrize(
    ("capacity", "checkpoint", "size"),
    [
        (160 * MB, 0, 16 * MB), (160 * MB - 10, 0, 16 * MB - 1), (50 * MB, 0, 5 * MB), (1 << 40, 0, 16 * MB),
        (1 << 40, 4 * MB, 16 * MB), (1 << 40, 4 * MB + 1, 16 * MB + 4), (1 << 40, 10 * MB, 40 * MB),
        (100 * MB, 10 * MB, 10 * MB),
    ],
)  # fmt: skip
def test_the_reserve_has_room_for_four_checkpoints_and_takes_a_tenth_of_a_small_disk(
    capacity: int, checkpoint: int, size: int
) -> None:
    files = FaultFileSystem(random.Random(0), Faults(capacity_bytes=capacity))
    reserve = Reserve(files)
    reserve.checkpoint_bytes = checkpoint
    assert reserve.size() == size


@pytest.mark.parametrize(("free", "held", "taken"), [(20, 0, True), (19, 0, False), (12, 8, True), (11, 8, False)])
def test_the_reserve_is_taken_where_a_quarter_more_than_it_is_free(
    free: int, held: int, taken: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In megabytes of a large disk; what it holds already is no hindrance."""
    files = FaultFileSystem(random.Random(0))
    if held:
        file = files.open("reserve", create=True)
        file.allocate(held * MB)
        file.close()
    monkeypatch.setattr(files, "space", lambda: (free * MB, 1 << 40))
    assert Reserve(files).take() is taken
    if taken:
        assert files.open("reserve").size() == 16 * MB


def test_zeros_are_at_most_128_kb_and_written_anew_when_a_quarter_of_them_is_left() -> None:
    """A start has to look through them, and each is written twice."""
    ahead = ZerosAhead()
    end = size = 256
    wanted = list[tuple[int, Zeros]]()
    while len(wanted) < 3:
        found = ahead.after(end, size)
        if end >= MB and found != NO_ZEROS:
            wanted.append((end, found))
        end += size
    (first_end, first), (second_end, second), _ = wanted
    assert (first.size, second.size) == (128 << 10,) * 2
    assert first.at + first.size - second_end == 32 << 10, "a quarter is left"
    assert second == Zeros(first.at + first.size, 128 << 10)
    assert second_end - first_end == 128 << 10


def test_a_read_is_whole_though_the_system_gives_it_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Linux reads 2 GB at once: a checkpoint of more looked damaged, and so did the one before it."""
    file = OsFileSystem(str(tmp_path)).open("a", create=True)
    file.append([b"0123456789"])
    pread = os.pread
    monkeypatch.setattr(os, "pread", lambda fd, size, offset: pread(fd, min(size, 3), offset))
    assert file.read(0, 10) == b"0123456789"
    assert file.read(2, 5) == b"23456"
    assert file.read(8, 100) == b"89"
    assert file.read(10, 1) == file.read(99, 1) == b""
    file.close()
