"""The manifest of a backup: the files that belong to it, their lengths and checksums. It is written last.

One line: ``<crc32c of the JSON, 8 hex digits> <JSON>`` and a line feed. A directory without it is no backup, whatever
else is there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from crc32c import crc32c

from magnetar.model.errors import PersistenceError
from magnetar.storage.backends.files import FileSystem

MANIFEST: Final = "manifest.json"
INCOMPLETE: Final = "incomplete"
"""A file that is there while a backup is being written: who finds it without a manifest finds half a backup."""
FORMAT: Final = 1
_BYTES_MAX: Final = 256 << 20
_NAME: Final = re.compile(r"segment-[0-9a-f]{16}(\.index)?|checkpoint-[0-9a-f]{16}|metadata-[ab]|newest")


def may_hold(name: str) -> bool:
    """Whether a directory of a backup may hold a file of this name."""
    return name in (INCOMPLETE, f"{MANIFEST}.new") or _NAME.fullmatch(name) is not None


class BackedUpFile(NamedTuple):
    """One file of a backup."""

    name: str
    length: int
    checksum: int
    """CRC-32C of all of it."""


class BackupManifest(NamedTuple):
    """What one backup holds."""

    taken_ms: int
    """The moment that it shows, in milliseconds since 1970."""
    files: Sequence[BackedUpFile]

    @property
    def bytes(self) -> int:
        """The length of all files together."""
        return sum(file.length for file in self.files)


def manifest_line(manifest: BackupManifest) -> bytes:
    """Return the file's content."""
    said = {
        "magnetar": "backup",
        "format": FORMAT,
        "taken": manifest.taken_ms,
        "files": [list(file) for file in manifest.files],
    }
    text = json.dumps(said, separators=(",", ":")).encode()
    return b"%08x %s\n" % (crc32c(text), text)


def read_manifest(source: FileSystem) -> BackupManifest:
    """Return what a backup says it holds. Raises PersistenceError for what is no whole backup, OSError."""
    try:
        file = source.open(MANIFEST)
    except FileNotFoundError:
        if INCOMPLETE in source.names():
            raise PersistenceError(
                f"this backup is incomplete: it was interrupted while it was written (there is no {MANIFEST}); take it "
                "again, the same name or place may be used"
            ) from None
        raise PersistenceError(
            f"there is no {MANIFEST}: this is no backup, or one that was interrupted; take another"
        ) from None
    try:
        if file.size() > _BYTES_MAX:
            raise PersistenceError(f"{MANIFEST} is longer than {_BYTES_MAX} bytes: no backup of magnetar")
        data = file.read(0, file.size())
    finally:
        file.close()
    text = data[9:-1]
    if data != b"%08x %s\n" % (crc32c(text), text):
        raise PersistenceError(f"{MANIFEST} is damaged: its checksum does not fit; use another backup")
    return _parsed(text)


def _parsed(text: bytes) -> BackupManifest:
    try:
        said = json.loads(text)
        if said["magnetar"] != "backup" or not isinstance(said["format"], int):
            raise ValueError("another program's file")
        if said["format"] > FORMAT:
            raise PersistenceError(
                f"the backup was written by a newer version of magnetar (format {said['format']}, this one knows up to "
                f"{FORMAT}): restore it with that version"
            )
        files = [BackedUpFile(str(name), int(length), int(checksum)) for name, length, checksum in said["files"]]
        manifest = BackupManifest(int(said["taken"]), files)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise PersistenceError(f"{MANIFEST} is no manifest of a backup: {str(error)[:100]}") from None
    for one in manifest.files:
        # a name is a way into the directory that is restored
        if not _NAME.fullmatch(one.name) or one.length < 0:
            raise PersistenceError(f"{MANIFEST} names {one.name[:100]!r}, which no backup of magnetar holds")
    if len({one.name for one in manifest.files}) < len(manifest.files):
        raise PersistenceError(f"{MANIFEST} names a file twice")
    return manifest
