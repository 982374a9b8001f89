"""Metadata of versions before the metadata log: read once, and only if nothing that was committed would be lost."""

from __future__ import annotations

import os
import shutil
import sqlite3
import struct
from pathlib import Path

import pytest

from magnetar.metadata.sqlite import only_refuses, read_records, refuse_older
from magnetar.metadata.store import Record
from magnetar.model.errors import MetadataError

HEADER, FRAME = 32, 24
TABLE = "CREATE TABLE records(path TEXT PRIMARY KEY, version INTEGER, data BLOB)"


def copied(tmp_path: Path, changes: int, version: int = 1) -> Path:
    """A copy of a database in use: its last changes stand in the write-ahead log alone."""
    path = tmp_path / "used.sqlite"
    database = sqlite3.connect(path, isolation_level=None)
    database.execute("PRAGMA journal_mode = WAL")
    database.execute("PRAGMA wal_autocheckpoint = 0")
    database.execute(f"PRAGMA user_version = {version}")
    database.execute(TABLE)
    for number in range(changes):
        database.execute("INSERT INTO records VALUES (?, ?, ?)", (f"/n/{number:03}", number, b"%d" % number))
    target = tmp_path / "metadata.sqlite"
    for end in ("", "-wal"):
        shutil.copyfile(f"{path}{end}", f"{target}{end}")
    database.close()
    return target


def frames(path: Path) -> list[int]:
    """Offsets of the frames in its log."""
    data = (path.parent / f"{path.name}-wal").read_bytes()
    (page,) = struct.unpack_from(">I", data, 8)
    return list(range(HEADER, len(data), FRAME + page))


def change(path: Path, offset: int) -> None:
    log = path.parent / f"{path.name}-wal"
    data = bytearray(log.read_bytes())
    data[offset] ^= 1
    log.write_bytes(data)


def test_what_stands_in_the_log_alone_is_read_too(tmp_path: Path) -> None:
    path = copied(tmp_path, 20)
    assert len(frames(path)) > 20
    assert read_records(str(path)) == [(f"/n/{n:03}", Record(b"%d" % n, n)) for n in range(20)]


def test_a_log_that_is_folded_in_or_empty_changes_nothing(tmp_path: Path) -> None:
    path = copied(tmp_path, 3)
    sqlite3.connect(path).execute("PRAGMA wal_checkpoint(TRUNCATE)").connection.close()
    assert len(read_records(str(path))) == 3
    (tmp_path / "metadata.sqlite-wal").write_bytes(b"")
    assert len(read_records(str(path))) == 3


@pytest.mark.parametrize("place", [0, 4, 8, 12, 16, 20, FRAME, FRAME + 100])
def test_damage_before_what_was_committed_later_is_refused(tmp_path: Path, place: int) -> None:
    """SQLite would take it for the end of the log and forget what follows, without a word."""
    path = copied(tmp_path, 10)
    offset = frames(path)[5]
    change(path, offset + place)
    with pytest.raises(MetadataError, match=f"is damaged at offset {offset}, and what was written later follows it"):
        read_records(str(path))


@pytest.mark.parametrize("place", [0, 8, FRAME + 100])
def test_a_damaged_end_is_the_end(tmp_path: Path, place: int) -> None:
    """That is what a crash leaves: what it held was not promised."""
    path = copied(tmp_path, 10)
    change(path, frames(path)[-1] + place)
    assert [name for name, _ in read_records(str(path))] == [f"/n/{n:03}" for n in range(9)]


def test_a_frame_that_was_cut_off_is_the_end(tmp_path: Path) -> None:
    path = copied(tmp_path, 10)
    log = tmp_path / "metadata.sqlite-wal"
    os.truncate(log, log.stat().st_size - 1)
    assert len(read_records(str(path))) == 9


@pytest.mark.parametrize("place", [0, 3, 8, 12, 16, 20, 24, 28])
def test_a_damaged_head_of_the_log_is_refused(tmp_path: Path, place: int) -> None:
    path = copied(tmp_path, 3)
    change(path, place)
    with pytest.raises(MetadataError, match="has a damaged header: restore"):
        read_records(str(path))


@pytest.mark.parametrize(("version", "refused"), [(0, False), (1, False), (2, True)])
def test_a_later_format_is_refused(tmp_path: Path, version: int, refused: bool) -> None:
    path = copied(tmp_path, 2, version)
    if refused:
        with pytest.raises(MetadataError, match="has format 2; this version of magnetar reads up to 1"):
            read_records(str(path))
    else:
        assert len(read_records(str(path))) == 2


def test_a_file_that_is_no_database_and_one_that_is_damaged_are_refused(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_bytes(b"x" * 5000)
    with pytest.raises(MetadataError, match=f"cannot read {other}: .*restore it from a copy"):
        read_records(str(other))
    path = tmp_path / "plain.sqlite"
    with sqlite3.connect(path) as database:
        database.execute(TABLE)
        for number in range(500):
            database.execute("INSERT INTO records VALUES (?, 0, ?)", (f"/{number}", b"x" * 50))
    database.close()
    data = bytearray(path.read_bytes())
    data[4096 * 3 : 4096 * 3 + 200] = bytes(200)
    path.write_bytes(data)
    with pytest.raises(MetadataError, match="restore it from a copy"):
        read_records(str(path))


def test_a_database_that_contradicts_itself_is_refused(tmp_path: Path) -> None:
    """All records can be read, and nobody knows what is missing."""
    path = tmp_path / "plain.sqlite"
    with sqlite3.connect(path) as database:
        database.execute(TABLE)
        for number in range(5):
            database.execute("INSERT INTO records VALUES (?, 0, ?)", (f"/{number}", b"data"))
    database.close()
    data = bytearray(path.read_bytes())
    data[36:40] = struct.pack(">I", 5)  # pages that are free, of which there are none
    path.write_bytes(data)
    with pytest.raises(MetadataError, match=r"(?s)is damaged: .*restore it from a copy"):
        read_records(str(path))


def test_a_database_without_records_holds_none(tmp_path: Path) -> None:
    path = tmp_path / "empty.sqlite"
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE others(a)")
    database.close()
    assert read_records(str(path)) == []


def test_what_is_left_in_its_place_refuses_older_versions_and_nothing_else_does(tmp_path: Path) -> None:
    path = tmp_path / "metadata.sqlite"
    for left in (".new", ".new-journal"):
        Path(f"{path}{left}").write_bytes(b"of an attempt that was cut off")
    refuse_older(str(path))
    assert only_refuses(str(path))
    assert path.stat().st_mode & 0o777 == 0o600
    assert sorted(os.listdir(tmp_path)) == ["metadata.sqlite"]
    with pytest.raises(MetadataError, match="has format 2"):
        read_records(str(path))
    data = path.read_bytes()
    for other in (b"", data[:63], b"x" + data[1:], data[:63] + b"\x01" + data[64:]):
        (tmp_path / "other").write_bytes(other)
        assert not only_refuses(str(tmp_path / "other"))
