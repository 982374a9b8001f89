"""What versions before the metadata log kept in ``metadata.sqlite``, read once and copied into the log.

::

    records(path TEXT PRIMARY KEY, version INTEGER, data BLOB)      user_version = 1

SQLite takes a damaged frame of its write-ahead log for the end of it and forgets whatever follows, without a word.
So the frames are looked at first. The checksum of each goes on from the one before it *as it is stored*, so a
whole frame after a bad one is recognized: then nothing is read, for what it would say is not what was last written.

Where it stood an empty file of a later format stands afterwards: those versions would make a new one otherwise, know no
policies and delete by that. They refuse this one, by name.
"""

from __future__ import annotations

import os
import sqlite3
import struct
from collections.abc import Iterator
from contextlib import closing, suppress
from typing import Final

from magnetar.metadata.store import Record
from magnetar.model.errors import MetadataError

FORMAT: Final = 1
_MOVED: Final = FORMAT + 1
"""The format of the empty file: the facts are in the metadata log."""
BESIDE: Final = ".new"
"""Ends the name of the empty file while it is made."""
_DATABASE: Final = struct.Struct(">16s44xI")
"""The first bytes of a database: what it is, and its ``user_version``."""
_HEADER: Final = struct.Struct(">8I")
_FRAME: Final = struct.Struct(">6I")
_MAGIC: Final = 0x377F0682
"""The lowest bit says that checksums are of big-endian words."""

Sums = tuple[int, int]


def read_records(path: str) -> list[tuple[str, Record]]:
    """Every record, by path. Raises MetadataError if the file is not ours, of a later format, or damaged."""
    try:
        _check_log(path + "-wal")
        with closing(sqlite3.connect(path, isolation_level=None)) as database:
            return _read(database, path)
    except (sqlite3.Error, OSError) as error:
        raise MetadataError(f"cannot read {path}: {error}; restore it from a copy") from error


def only_refuses(path: str) -> bool:
    """Whether the file is what :func:`refuse_older` left. Raises OSError."""
    with open(path, "rb") as file:
        found = file.read(_DATABASE.size)
    return len(found) == _DATABASE.size and _DATABASE.unpack(found) == (b"SQLite format 3\0", _MOVED)


def refuse_older(path: str) -> None:
    """Leave a file that older versions refuse; none may be there. Durable with its directory. Raises OSError."""
    beside = path + BESIDE
    for left in (beside, beside + "-journal"):
        with suppress(FileNotFoundError):
            os.remove(left)
    try:
        with closing(sqlite3.connect(beside, isolation_level=None)) as database:
            database.execute("PRAGMA synchronous = FULL")
            database.execute(f"PRAGMA user_version = {_MOVED}")
    except sqlite3.Error as error:
        raise OSError(f"cannot write {beside}: {error}") from error
    os.chmod(beside, 0o600)
    os.replace(beside, path)


def _read(database: sqlite3.Connection, path: str) -> list[tuple[str, Record]]:
    (found,) = database.execute("PRAGMA user_version").fetchone()
    if found > FORMAT:
        raise MetadataError(f"{path} has format {found}; this version of magnetar reads up to {FORMAT}")
    (verdict,) = database.execute("PRAGMA quick_check(1)").fetchone()
    if verdict != "ok":
        raise MetadataError(f"{path} is damaged: {verdict}; restore it from a copy")
    if not database.execute("SELECT count(*) FROM sqlite_master WHERE name = 'records'").fetchone()[0]:
        return []
    rows = database.execute("SELECT path, data, version FROM records ORDER BY path").fetchall()
    return [(str(name), Record(bytes(data), int(version))) for name, data, version in rows]


def _check_log(path: str) -> None:
    """Raises MetadataError if frames that were committed stand after a bad one."""
    if not os.path.exists(path):
        return
    with open(path, "rb") as file:
        data = file.read()
    if len(data) <= _HEADER.size:
        return
    bad = None
    for offset, good in _frames(path, data):
        if not good and bad is None:
            bad = offset
        if good and bad is not None:
            raise MetadataError(
                f"{path} is damaged at offset {bad}, and what was written later follows it: restore "
                "metadata.sqlite and metadata.sqlite-wal from a copy; opening them as they are would undo changes"
            )


def _frames(path: str, data: bytes) -> Iterator[tuple[int, bool]]:
    """Offset of each frame of this life of the log, and whether its checksum goes on from the one before it."""
    magic, _, page, _, salt1, salt2, *stored = _HEADER.unpack_from(data)
    big = bool(magic & 1)
    if magic & ~1 != _MAGIC or _sums((0, 0), data[:24], big) != tuple(stored) or not page:
        raise MetadataError(f"{path} has a damaged header: restore metadata.sqlite and metadata.sqlite-wal from a copy")
    before = (stored[0], stored[1])
    size = _FRAME.size + page
    for at in range(_HEADER.size, len(data) - size + 1, size):
        _, _, found1, found2, *sums = _FRAME.unpack_from(data, at)
        now = _sums(_sums(before, data[at : at + 8], big), data[at + _FRAME.size : at + size], big)
        before = (sums[0], sums[1])
        yield at, now == before and (found1, found2) == (salt1, salt2)


def _sums(before: Sums, data: bytes, big: bool) -> Sums:
    """SQLite's checksum over whole pairs of words."""
    one, two = before
    words = struct.unpack(f"{'>' if big else '<'}{len(data) // 4}I", data)
    for even, odd in zip(words[::2], words[1::2], strict=True):
        one = (one + even + two) & 0xFFFFFFFF
        two = (two + odd + one) & 0xFFFFFFFF
    return one, two
