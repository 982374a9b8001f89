"""One copy of the metadata log as an open file: appended to, cut, written anew."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from typing import Final

from magnetar.model.errors import PersistenceError
from magnetar.storage.backends.file_names import checkpoint_names, segment_numbers
from magnetar.storage.backends.files import File, FileSystem
from magnetar.storage.backends.journal_backend import segment_name
from magnetar.storage.log import records
from magnetar.storage.log.checkpoint_head import head_of
from magnetar.storage.metadata_log.metadata_scan import Head, MetadataChange, change_line, head_line

_LOOKED_AT: Final = 64
"""So many of the newest segments are asked whose they are."""
STEP_LINES: Final = 200
STEP_BYTES: Final = 64 << 10
"""What is written anew with one change."""


class MetadataCopy:
    """Knows how long its file is. ``suspect``: what the file holds after that is unknown, it must be written anew."""

    def __init__(self, files: FileSystem, name: str) -> None:
        self.files = files
        self.name = name
        self.length = 0
        self.suspect = False
        self.set_aside = False
        """What stands at the name is kept as ``quarantine-…`` before the new file takes its place."""
        self._file: File | None = None
        self._before = 0

    def open(self) -> None:
        """Open the copy's file, which is whole."""
        self.take(self.files.open(self.name))

    def take(self, file: File) -> None:
        """Make this file, whole and durable, the copy from now on."""
        self.close()
        self._file = file
        self.length = self._before = file.size()
        self.suspect = self.set_aside = False

    def in_place(self) -> bool:
        """Whether the name still leads to the open file; what is to be written anew anyway is not looked at."""
        return self.suspect or self._file is None or self.files.holds(self.name, self._file)

    def append(self, lines: bytes) -> None:
        """Durable on return. Raises OSError; call :meth:`undo` then."""
        assert self._file is not None
        self._before = self.length
        self._file.append([lines])
        self.length += len(lines)
        try:
            self._file.sync()
        except OSError:
            self.suspect = True  # whatever a later sync says, these pages are in doubt
            raise

    def undo(self) -> None:
        """Cut off what was appended last, whole or not."""
        assert self._file is not None
        self.length = self._before
        try:
            self._file.truncate(self.length)
            self._file.sync()
        except OSError:
            self.suspect = True

    def close(self) -> None:
        """Let the file go."""
        if self._file is not None:
            self._file.close()
            self._file = None


class Rewriting:
    """Writes one copy anew beside the old file, a step at a time; the last step puts it in its place."""

    def __init__(self, copy: MetadataCopy, head: Head, living: Iterator[MetadataChange], count: int) -> None:
        self._copy = copy
        self._head = head
        self._living = living
        self._left = count
        self._file: File | None = None
        self.later: list[bytes] = []
        """Lines that came since the head was made; they follow what lived then."""

    def step(self) -> bool:
        """Write and sync some lines; whether the new file is whole and in place. Raises OSError."""
        name = self._copy.name + ".new"
        if self._file is None:
            self._file = self._copy.files.open(name, create=True)
            self._file.truncate(0)
            self._file.append([head_line(self._head)])
        lines: list[bytes] = []
        size = 0
        for change in islice(self._living, STEP_LINES):
            lines.append(change_line(change, self._head.instance))
            size += len(lines[-1])
            self._left -= 1
            if size > STEP_BYTES:
                break
        done = not self._left
        if done:
            lines += self.later
        self._file.append(lines)
        self._file.sync()
        if done:
            self._put_in_place(name, self._file)
        return done

    def _put_in_place(self, name: str, file: File) -> None:
        copy = self._copy
        if copy.set_aside:
            with suppress(FileNotFoundError):
                set_aside(copy.files, copy.name)
        copy.files.rename(name, copy.name)
        copy.suspect = True  # what is open has no name any more, and what has it may lose it
        copy.set_aside = False
        copy.files.sync()
        self._file = None
        copy.take(file)

    def stop(self) -> None:
        """Leave the old file where it is."""
        if self._file is not None:
            self._file.close()
            self._file = None
            with suppress(OSError):
                self._copy.files.remove(self._copy.name + ".new")


def set_aside(files: FileSystem, name: str) -> None:
    """Keep a copy of a file as ``quarantine-…``, or itself if the disk does not give its bytes.

    Raises OSError, FileNotFoundError if it is gone.
    """
    taken = files.names()
    numbered = (f"quarantine-{name}-{i}" for i in range(1, len(taken) + 2))
    free = next(found for found in numbered if found not in taken)
    try:
        data = _read(files, name, None)
    except FileNotFoundError:
        raise
    except OSError:
        files.rename(name, free)
        return
    kept = files.open(free, create=True)
    try:
        kept.append([data])
        kept.sync()
    finally:
        kept.close()


def directory_secrets(files: FileSystem) -> list[int]:
    """The numbers that segments and checkpoints carry, the most frequent first; several if files were mixed up."""
    names = files.names()
    found: Counter[int] = Counter()
    for number in segment_numbers(names)[-_LOOKED_AT:]:
        with suppress(OSError, records.RecordError):
            header = _read(files, segment_name(number), records.SEGMENT_HEADER_SIZE)
            found[records.parse_segment_header(header).secret] += 1
    if len(found) != 1:
        for name in checkpoint_names(names):
            with suppress(OSError, records.RecordError, PersistenceError):  # one of a newer version has no say here
                found[head_of(_read(files, name, None))[0]["secret"]] += 1
    return [secret for secret, _ in found.most_common()]


def own_secrets(found: list[int], known: set[int]) -> list[int]:
    """Which of them may be the directory's, the likeliest first: what its segments (``found``) and its metadata
    (``known``) both say, else what the segments say, else what the metadata say."""
    return [secret for secret in found if secret in known] or found or sorted(known)


def _read(files: FileSystem, name: str, size: int | None) -> bytes:
    file = files.open(name)
    try:
        return file.read(0, file.size() if size is None else size)
    finally:
        file.close()
