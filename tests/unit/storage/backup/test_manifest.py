"""The manifest of a backup: read as it was written, and anything else is named and refused."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from crc32c import crc32c

from magnetar.model.errors import PersistenceError
from magnetar.storage.backends.files import File, write_atomically
from magnetar.storage.backup.file_copy import SLICE_BYTES, FileCopy, copy_buffer
from magnetar.storage.backup.manifest import (
    FORMAT,
    INCOMPLETE,
    MANIFEST,
    BackedUpFile,
    BackupManifest,
    manifest_line,
    may_hold,
    read_manifest,
)
from magnetar.storage.backup.restored_files import checked_manifest, restore_files
from magnetar.testing.faultfiles import FaultFileSystem

SEGMENT = "segment-00000000000000ff"
FILES = [
    BackedUpFile(SEGMENT, 10, 1), BackedUpFile(f"{SEGMENT}.index", 0, 2), BackedUpFile("metadata-a", 5, 3),
    BackedUpFile("checkpoint-0000000000000001", 7, 4), BackedUpFile("newest", 1, 5),
]  # fmt: skip


def disk() -> FaultFileSystem:
    return FaultFileSystem(random.Random(0))


def holding(content: bytes) -> FaultFileSystem:
    files = disk()
    write_atomically(files, MANIFEST, content)
    return files


def line(said: Any) -> bytes:
    text = said if isinstance(said, bytes) else json.dumps(said).encode()
    return b"%08x %s\n" % (crc32c(text), text)


def said(**other: Any) -> dict[str, Any]:
    return {"magnetar": "backup", "format": FORMAT, "taken": 5, "files": [[SEGMENT, 1, 2]], **other}


def test_it_is_read_as_it_was_written() -> None:
    manifest = BackupManifest(1_700_000_000_123, FILES)
    assert manifest.bytes == 23
    assert read_manifest(holding(manifest_line(manifest))) == manifest
    assert read_manifest(holding(manifest_line(BackupManifest(0, [])))).bytes == 0


def test_every_byte_of_it_counts() -> None:
    whole = manifest_line(BackupManifest(1, FILES))
    for at in range(len(whole)):
        for damaged in (whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :], whole[:at]):
            with pytest.raises(PersistenceError, match="is damaged: its checksum does not fit"):
                read_manifest(holding(damaged))


def test_without_it_there_is_no_backup_and_half_a_one_is_called_so() -> None:
    files = disk()
    with pytest.raises(PersistenceError, match="this is no backup, or one that was interrupted"):
        read_manifest(files)
    write_atomically(files, INCOMPLETE, b"")
    with pytest.raises(PersistenceError, match="this backup is incomplete"):
        read_manifest(files)


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (said(magnetar="other"), "is no manifest of a backup: another program's file"),
        (said(format="1"), "is no manifest of a backup: another program's file"),
        (
            said(format=FORMAT + 1),
            rf"written by a newer version of magnetar \(format {FORMAT + 1}, .* up to {FORMAT}\)",
        ),
        ([], "is no manifest of a backup"),
        (b"[" * 100_000, "is no manifest of a backup"),
        (b"{", "is no manifest of a backup"),
        ({"magnetar": "backup"}, "is no manifest of a backup: 'format'"),
        (said(taken="soon"), "is no manifest of a backup"),
        (said(files=[[SEGMENT, 1]]), "is no manifest of a backup"),
        (said(files=[[SEGMENT, "x", 1]]), "is no manifest of a backup"),
        (said(files=[[SEGMENT, -1, 1]]), f"names '{SEGMENT}', which no backup of magnetar holds"),
        (said(files=[["../x", 1, 1]]), r"names '\.\./x', which no backup"),
        (said(files=[["incomplete", 1, 1]]), "names 'incomplete', which no backup"),
        (said(files=[[SEGMENT, 1, 1], [SEGMENT, 1, 1]]), "names a file twice"),
    ],
)
def test_what_is_none_is_refused_and_says_why(content: Any, text: str) -> None:
    """A name is a way into the directory that is restored, so only a backup's own names are taken."""
    with pytest.raises(PersistenceError, match=text):
        read_manifest(holding(line(content)))


def test_older_formats_and_a_length_of_nothing_are_read() -> None:
    assert read_manifest(holding(line(said(format=0, files=[[SEGMENT, 0, 1]])))).files == [BackedUpFile(SEGMENT, 0, 1)]


@pytest.mark.parametrize(
    ("name", "may"),
    [
        (SEGMENT, True), (f"{SEGMENT}.index", True), ("checkpoint-0123456789abcdef", True), ("metadata-a", True),
        ("metadata-b", True), ("newest", True), (INCOMPLETE, True), (f"{MANIFEST}.new", True), (MANIFEST, False),
        ("metadata-c", False), ("segment-00000000000000FF", False), ("segment-0", False), (f"{SEGMENT}.new", False),
        ("checkpoint-0123456789abcdef.index", False), ("", False), ("a", False), (f"x{SEGMENT}", False),
    ],
)  # fmt: skip
def test_what_a_half_written_backup_may_hold(name: str, may: bool) -> None:
    """Anything else in the directory is somebody's, and nothing is removed then."""
    assert may_hold(name) == may


@pytest.mark.parametrize(("size", "refused"), [((256 << 20) - 1, False), (256 << 20, False), ((256 << 20) + 1, True)])
def test_a_manifest_of_more_than_256_mb_is_none_and_is_not_read(size: int, refused: bool) -> None:
    """Whatever stands where a manifest belongs, looking at it takes no more memory than that."""
    whole = manifest_line(BackupManifest(5, FILES))

    class Sized(FaultFileSystem):
        def open(self, name: str, *, create: bool = False) -> File:
            file = super().open(name, create=create)
            file.size = lambda: size  # type: ignore[method-assign]
            return file

    files = Sized(random.Random(0))
    write_atomically(files, MANIFEST, whole)
    if refused:
        with pytest.raises(PersistenceError, match=f"longer than {256 << 20} bytes"):
            read_manifest(files)
    else:
        assert read_manifest(files).files == FILES


@pytest.mark.parametrize("size", [0, 1, SLICE_BYTES - 1, SLICE_BYTES, SLICE_BYTES + 1, 3 * SLICE_BYTES])
@pytest.mark.parametrize("said_length", [True, False])
@pytest.mark.parametrize("only_adds_up", [True, False])
def test_a_copy_is_what_it_was_made_of(size: int, said_length: bool, only_adds_up: bool) -> None:
    """In slices, of which one that is not full is the last where no length was said."""
    files, data = disk(), random.Random(size).randbytes(size)
    write_atomically(files, "newest", data + (b"more" if said_length else b""))
    target = None if only_adds_up else files.open("metadata-a", create=True)
    files.sync()
    copy = FileCopy("newest", files.open("newest"), target, size if said_length else None, copy_buffer())
    steps = 1
    while not copy.step():
        steps += 1
        assert copy.copied == min((steps - 1) * SLICE_BYTES, size)
    assert (copy.copied, copy.checksum) == (size, crc32c(data))
    assert steps == (max(1, -(-size // SLICE_BYTES)) if said_length else size // SLICE_BYTES + 1)
    if target is not None:
        assert not files.unsynced
        assert target.read(0, target.size()) == data


def test_a_file_that_ends_too_early_is_named() -> None:
    files = disk()
    write_atomically(files, "newest", bytes(SLICE_BYTES + 7))
    copy = FileCopy("newest", files.open("newest"), None, SLICE_BYTES + 8, copy_buffer())
    assert not copy.step()
    with pytest.raises(OSError, match=f"newest ends after {SLICE_BYTES + 7} bytes of {SLICE_BYTES + 8}"):
        copy.step()


def test_a_large_copy_is_synced_now_and_then_and_at_its_end() -> None:
    """A disk that has gigabytes to write out at once keeps everybody waiting."""
    files = disk()
    write_atomically(files, "newest", bytes(40 * SLICE_BYTES))
    target = files.open("metadata-a", create=True)
    files.sync()
    copy = FileCopy("newest", files.open("newest"), target, None, copy_buffer())
    synced = []
    for step in range(1, 42):
        assert copy.step() == (step == 41)
        if not files.unsynced:
            synced.append(step)
    assert synced == [16, 32, 41]


@pytest.mark.parametrize(
    ("damage", "text"),
    [
        ("missing", f"{SEGMENT} is missing"), ("short", f"{SEGMENT} has 9 bytes instead of 10"),
        ("long", f"{SEGMENT} has 11 bytes instead of 10"), ("flipped", f"{SEGMENT}: its checksum does not fit"),
        ("two", f"{SEGMENT} is missing and 1 more files"),
    ],
)  # fmt: skip
def test_a_backup_that_is_not_as_it_was_written_is_not_restored(damage: str, text: str) -> None:
    files, data = disk(), bytes(range(10))
    parts = {SEGMENT: data, "metadata-a": b"meta"}
    manifest = BackupManifest(5, [BackedUpFile(name, len(part), crc32c(part)) for name, part in parts.items()])
    write_atomically(files, MANIFEST, manifest_line(manifest))
    for name, part in parts.items():
        write_atomically(files, name, part)
    assert checked_manifest(files) == manifest
    target = disk()
    restore_files(files, manifest, target)
    assert not target.unsynced
    assert {name: target.open(name).read(0, 100) for name in target.names()} == parts
    if damage in ("missing", "two"):
        files.remove(SEGMENT)
        if damage == "two":
            files.flip_bit("metadata-a", 0)
    elif damage == "flipped":
        files.flip_bit(SEGMENT, 3)
    else:
        write_atomically(files, SEGMENT, data[:-1] if damage == "short" else data + b"x")
    with pytest.raises(PersistenceError, match=f"the backup is damaged: {text}; nothing was restored"):
        checked_manifest(files)
    with pytest.raises(PersistenceError, match=text.removesuffix(" and 1 more files")):
        restore_files(files, manifest, disk())
