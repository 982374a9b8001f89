"""What a reader of files is given instead of what was written: newer formats, tables that lead outside, no files."""

from __future__ import annotations

import asyncio
import ctypes
import errno
import mmap
import os
import platform
import socket
import struct
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from crc32c import crc32c

from magnetar.model.errors import ConflictError, PersistenceError, UnreadableError
from magnetar.storage.backends import sync_process
from magnetar.storage.backends.directory import close_to_others, is_directory, why_no_file
from magnetar.storage.backends.files import OsFileSystem
from magnetar.storage.backends.lost_segment import restore
from magnetar.storage.backends.reserve import Reserve
from magnetar.storage.ledgers.entry_reader import EntryReader
from magnetar.storage.log import judged_records, records
from magnetar.storage.log.cursor_records import CursorState, cursor_record
from magnetar.storage.log.records import RECORD_HEADER_SIZE, RawRecord, RecordError, RecordKind
from magnetar.storage.log.segment import ExtentOffsets, SegmentIndex, Span, index_bytes
from tests.support.simulated_store import Disk, publish, simulated


def signed(body: bytes) -> bytes:
    return body + struct.pack("<I", crc32c(body))


def with_checksum(record: bytearray) -> bytes:
    """A record of which somebody has changed something, with the checksum of what it is now."""
    start = RECORD_HEADER_SIZE
    crc = crc32c(bytes(record[start:]), crc32c(bytes(record[: start - 4])))
    record[start - 4 : start] = struct.pack("<I", crc)
    return bytes(record)


def one_extent() -> bytearray:
    out: list[Any] = []
    records.extent((7, 8, 9, 10, 11), 1234, [b"first", b"second"], None, 11, out)
    return bytearray(b"".join(out))


def test_an_extent_of_a_newer_version_or_whose_entries_do_not_fill_it_is_refused() -> None:
    assert records.read_extent(with_checksum(one_extent()), 0).entries == [b"first", b"second"]
    newer = one_extent()
    newer[1] |= 0x80
    with pytest.raises(RecordError, match="was written by a newer version of magnetar"):
        records.read_extent(with_checksum(newer), 0)
    for at in (2, 3):
        later = one_extent()
        later[at] = 1
        with pytest.raises(RecordError, match="was written by a newer version of magnetar"):
            records.read_extent(with_checksum(later), 0)
    for length in (4, 6):
        other = one_extent()
        place = RECORD_HEADER_SIZE + records.EXTENT_HEAD_SIZE
        assert other[place : place + 4] == struct.pack("<I", 5)
        other[place : place + 4] = struct.pack("<I", length)
        with pytest.raises(RecordError, match="the entries of the extent at offset 0 do not fill it"):
            records.read_extent(with_checksum(other), 0)


def test_an_index_whose_table_leads_outside_is_refused() -> None:
    span = Span(7, 3, 9, 100, 100, 0)
    span.places = ExtentOffsets()
    span.places.add(100, 40, 50)
    sound = index_bytes(3, [span])[:-4]
    SegmentIndex(3, signed(sound))
    count = struct.calcsize("<8sQ")
    more = sound[:count] + struct.pack("<I", 1000) + sound[count + 4 :]
    with pytest.raises(RecordError, match="is shorter than its table"):
        SegmentIndex(3, signed(more))
    for other in (sound + b"x", sound[:-1]):
        with pytest.raises(RecordError, match="does not hold the places that it lists"):
            SegmentIndex(3, signed(other))


def test_records_that_cannot_be_read_are_refused_by_those_who_judge_them() -> None:
    with pytest.raises(RecordError, match="an extent that is shorter than its tables"):
        judged_records.extent_of(RawRecord(RecordKind.EXTENT, 0, 0, bytes(10)))
    for body in (b"", b"\x01", b"\xff" * 7):
        with pytest.raises(RecordError, match="a feature's state that cannot be read"):
            judged_records.feature_state_of(RawRecord(RecordKind.FEATURE_STATE, 0, 0, body))
    with pytest.raises(PersistenceError, match="newer version of magnetar"):
        judged_records.feature_state_of(RawRecord(RecordKind.FEATURE_STATE, 1, 0, b""))


@pytest.mark.parametrize("name", ["plain", "ä", "\ud800", 5, None])
def test_a_name_is_a_text_that_can_be_written(name: Any) -> None:
    """What JSON lets through as half of a character would fail wherever it is written next."""
    assert judged_records._is_text(name) is (name in ("plain", "ä"))


def test_what_stands_instead_of_a_file_is_named_with_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_bytes(b"x")
    (tmp_path / "link").symlink_to(tmp_path / "file")
    (tmp_path / "directory").mkdir()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "device").symlink_to("/dev/null")
    (tmp_path / "nowhere").symlink_to(tmp_path / "gone")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    listening = socket.socket(socket.AF_UNIX)
    monkeypatch.chdir(tmp_path)
    listening.bind("socket")  # an address has 107 bytes at most, and the path of a test may be longer
    listening.close()
    found = {name: why_no_file(str(tmp_path / name)) for name in (*os.listdir(tmp_path), "nothing")}
    assert [name for name, words in found.items() if words is None] == [
        name for name in found if name in ("file", "link", "nothing")
    ]
    loop = f"{tmp_path / 'loop'}, which leads nowhere (Too many levels of symbolic links)"
    for name, words in (
        ("directory", "is a directory and no file: "),
        ("pipe", "is a named pipe and no file: "),
        ("socket", "is a socket and no file: "),
        ("device", "is a device and no file: "),
        ("nowhere", f"is a symbolic link to {tmp_path / 'gone'}, which is not there: "),
        (
            "loop",
            f"is a symbolic link to {loop}: ",
        ),
    ):
        assert str(found[name]).startswith(f"{tmp_path / name} {words}"), name
        assert str(found[name]).endswith("Nothing was changed")


def test_a_directory_that_may_not_be_looked_at_is_not_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert is_directory(str(tmp_path))
    (tmp_path / "file").write_bytes(b"")
    assert not is_directory(str(tmp_path / "file"))
    assert not is_directory(str(tmp_path / "file" / "below"))
    assert not is_directory(str(tmp_path / "none"))

    def forbidden(path: str) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)

    monkeypatch.setattr(os, "stat", forbidden)
    with pytest.raises(PersistenceError, match="cannot be looked at: Permission denied; run this as the user that"):
        is_directory("/somewhere")


def test_only_files_and_the_directory_itself_are_closed_to_others(tmp_path: Path) -> None:
    for name in ("file", "other"):
        (tmp_path / name).write_bytes(b"")
        (tmp_path / name).chmod(0o644)
    (tmp_path / "below").mkdir(mode=0o755)
    (tmp_path / "below").chmod(0o755)
    tmp_path.chmod(0o755)
    close_to_others(str(tmp_path), ["file", "below", "none"])
    modes = {name: (tmp_path / name).stat().st_mode & 0o777 for name in ("file", "other", "below", ".")}
    assert modes == {"file": 0o600, "other": 0o644, "below": 0o755, ".": 0o700}
    tmp_path.chmod(0o755)
    close_to_others(str(tmp_path), [], itself=False)
    assert tmp_path.stat().st_mode & 0o777 == 0o755


@pytest.mark.parametrize("refuses", [True, False])
def test_a_large_read_is_made_the_usual_way_where_the_disk_refuses_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refuses: bool
) -> None:
    files = OsFileSystem(str(tmp_path))
    file = files.open("large", create=True)
    content = bytes(range(256)) * 2048
    file.append([content])
    file.sync()
    preadv = os.preadv

    def read(fd: int, buffers: list[Any], offset: int) -> int:
        if refuses:
            raise OSError(errno.EINVAL, "no direct reads")
        return preadv(fd, buffers, offset)

    monkeypatch.setattr(os, "preadv", read)
    buffer = mmap.mmap(-1, 1 << 20)
    for at, size in ((5, 200_000), (4096, 131_072), (400_000, 131_072)):
        found, skip = file.read_large(at, size, buffer)
        wanted = content[at : at + size]
        assert bytes(found[skip : skip + size])[: len(wanted)] == wanted
    file.close()


def test_a_disk_that_does_not_say_how_full_it_is_is_not_called_short() -> None:
    class Unsaid:
        def space(self) -> tuple[int, int]:
            raise OSError(errno.EIO, "no answer")

    reserve = Reserve(Unsaid(), 1000)  # type: ignore[arg-type]
    assert reserve.short() is False


@simulated
async def test_what_is_not_there_is_neither_sealed_nor_read_nor_trimmed_while_all_is_kept(disk: Disk) -> None:
    store = disk.open()
    log = store.open_log("t")
    await publish(store, log, 0, 25)
    assert log.cached(log.end, 1, 1) is None
    with pytest.raises(ConflictError, match="t has no ledger 999: it was trimmed, or never was"):
        log.sealed(999)
    first = log.table.ledgers[0].id
    assert log.sealed(first).id == first
    store.keep_all = "a test wants it"
    assert log.trim(25) == 0
    store.keep_all = None
    assert log.trim(25) > 0
    with pytest.raises(ConflictError, match=f"t has no ledger {first}"):
        log.sealed(first)
    await store.close()
    await asyncio.sleep(0)


def test_damage_is_named_once_for_each_place_and_ten_thousand_are_remembered() -> None:
    """What is no damage, a disk that does not answer for instance, is news each time."""
    reader: Any = SimpleNamespace(_named=set())

    def named(log: int, start: int, error: BaseException) -> bool:
        reading: Any = SimpleNamespace(managed=SimpleNamespace(id=log), start=start)
        return EntryReader._is_news(reader, reading, error)

    damage = UnreadableError("damaged", 5)
    assert [named(1, 5, damage), named(1, 5, damage), named(2, 5, damage), named(1, 6, damage)] == [
        True, False, True, True,
    ]  # fmt: skip
    assert named(1, 5, OSError()) and named(1, 5, OSError())
    for start in range(7, 7 + 10_000 - 3):
        assert named(1, start, damage)
    assert not named(1, 5, damage) and len(reader._named) == 10_000
    assert named(3, 0, damage)
    assert len(reader._named) == 1


def test_an_index_that_leads_to_another_logs_entries_gives_nobody_elses() -> None:
    data = bytes(one_extent())
    head = records.read_extent(data, 0).head
    found = EntryReader._extent(cast(Any, None), Span(head.log, 3, head.ledger, head.ordinal, head.ordinal, 0), data, 0)
    assert found.run.entries == [b"first", b"second"]
    with pytest.raises(PersistenceError, match=r"segment-0000000000000003\.index leads to another log's entries"):
        EntryReader._extent(cast(Any, None), Span(head.log + 1, 3, head.ledger, head.ordinal, head.ordinal, 0), data, 0)


@pytest.mark.parametrize("size", [0, 9, 10])
def test_a_segment_that_has_lost_its_name_and_its_bytes_is_not_restored_in_part(tmp_path: Path, size: int) -> None:
    files = OsFileSystem(str(tmp_path))
    files.lock()
    lost = files.open("lost", create=True)
    lost.append([b"x" * size])
    before = len(os.listdir("/proc/self/fd"))
    if size < 10:
        with pytest.raises(OSError, match="segment-0000000000000003 has no name any more and cannot be read"):
            restore(files, 3, lost, 10)
        assert "segment-0000000000000003" not in files.names()
        assert len(os.listdir("/proc/self/fd")) == before
    else:
        restored = restore(files, 3, lost, 10)
        assert restored.read(0, 100) == b"x" * 10 and "segment-0000000000000003" in files.names()
        restored.close()
    lost.close()


@pytest.mark.parametrize("why", ["another policy", "another machine", "no answer"])
def test_the_turns_of_a_process_stay_as_they_are_where_they_are_not_ours_to_change(
    why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def calls(name: None) -> None:
        raise AssertionError("the kernel is asked to change it")

    def policy(pid: int) -> int:
        if why == "no answer":
            raise OSError(errno.ESRCH, "no such process")
        return os.SCHED_BATCH if why == "another policy" else os.SCHED_OTHER

    monkeypatch.setattr(os, "sched_getscheduler", policy)
    monkeypatch.setattr(ctypes, "CDLL", calls)
    if why == "another machine":
        monkeypatch.setattr(platform, "machine", lambda: "riscv64")
    sync_process.shorten_turns(os.getpid())


@pytest.mark.parametrize("name", ["s", 5, None, "\ud800", ["s"]])
@pytest.mark.parametrize("properties", [{}, [], None, "x"])
def test_a_cursor_has_a_text_for_a_name_and_properties_by_name(name: Any, properties: Any) -> None:
    body = cursor_record(name, properties, CursorState(1, 2, 3, [], []))
    record = RawRecord(RecordKind.CURSOR, 0, 0, body)
    if name == "s" and properties == {}:
        assert judged_records.cursor_of(record)[0] == "s"
    else:
        with pytest.raises(RecordError, match="a name or properties that are none"):
            judged_records.judge(record)
