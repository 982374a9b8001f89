"""Writes one backup: file after file in slices, each synced, and the manifest when all of them are durable."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

from crc32c import crc32c

from magnetar.storage.backends.files import File, FileSystem, write_atomically
from magnetar.storage.backup.file_copy import FileCopy, copy_buffer
from magnetar.storage.backup.manifest import INCOMPLETE, MANIFEST, BackedUpFile, BackupManifest, manifest_line, may_hold


class BackupPart(NamedTuple):
    """One file that a backup is made of."""

    name: str
    length: int | None = None
    """How much of it counts; all of it if that is not said."""
    file: File | None = None
    """The file, if it was opened when the moment came: another may have its name by now."""
    data: bytes | None = None
    """Its content, if it is in no file."""


class BackupWriter:
    """Blocks; one thread at a time. To end it early, call :meth:`close` and remove what was written."""

    def __init__(self, source: FileSystem, target: FileSystem, parts: Sequence[BackupPart], taken_ms: int) -> None:
        self._source = source
        self._target = target
        self._left = list(reversed(parts))
        self._taken_ms = taken_ms
        self._buffer = copy_buffer()
        self._copy: FileCopy | None = None
        self._open: list[File] = []
        self.name = ""
        """The file that is being copied."""
        self.files: list[BackedUpFile] = []
        self._whole = 0
        self._marked = False

    def step(self) -> bool:
        """Copy one slice; whether the backup is whole and durable. Raises OSError."""
        if not self._marked:
            self._target.open(INCOMPLETE, create=True).close()
            self._target.sync()
            self._marked = True
        elif self._copy is None:
            if not self._left:
                self._target.sync()
                manifest = BackupManifest(self._taken_ms, self.files)
                write_atomically(self._target, MANIFEST, manifest_line(manifest))
                self._target.remove(INCOMPLETE)
                return True
            self._begin(self._left.pop())
        elif self._copy.step():
            self._note(self._copy.copied, self._copy.checksum)
            self.close_file()
        return False

    def _begin(self, part: BackupPart) -> None:
        self.name = part.name
        target = self._target.open(part.name, create=True)
        self._open.append(target)
        target.truncate(0)  # an interrupted backup's, if the disk did not let us remove it
        if part.data is not None:
            target.append([part.data])
            target.sync()
            self._note(len(part.data), crc32c(part.data))
            self.close_file()
            return
        source = part.file or self._source.open(part.name)
        self._open.append(source)
        self._copy = FileCopy(part.name, source, target, part.length, self._buffer)

    def _note(self, length: int, checksum: int) -> None:
        self.files.append(BackedUpFile(self.name, length, checksum))
        self._whole += length

    @property
    def bytes(self) -> int:
        """What was written so far."""
        return self._whole + (self._copy.copied if self._copy is not None else 0)

    def close_file(self) -> None:
        """Let the files of the current copy go."""
        self._copy = None
        for file in self._open:
            file.close()
        self._open.clear()

    def close(self) -> None:
        """Let all files go, also those that were opened for copies that never began."""
        self.close_file()
        for part in self._left:
            if part.file is not None:
                part.file.close()
        self._left.clear()

    def run(self) -> None:
        """Write all of it. Raises OSError, which names the file."""
        try:
            while not self.step():
                pass
        finally:
            self.close()


def is_half_written(target: FileSystem) -> bool:
    """Whether a directory holds what an interrupted backup has left, and nothing else."""
    names = target.names()
    return INCOMPLETE in names and MANIFEST not in names and all(may_hold(name) for name in names)


def remove_written(target: FileSystem) -> None:
    """Remove what an unfinished backup or restore has written, as far as the disk lets us; the manifest first."""
    # the mark last: without it a half backup is just a directory that is not empty
    order = {MANIFEST: 0, INCOMPLETE: 2}
    for name in sorted(target.names(), key=lambda name: order.get(name, 1)):
        with suppress(OSError):
            target.remove(name)
    with suppress(OSError):
        target.sync()
