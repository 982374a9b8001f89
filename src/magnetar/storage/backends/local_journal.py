"""A journal's segments and checkpoints as files of one directory (docs/disk.md)."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from concurrent.futures import Executor
from contextlib import suppress
from typing import Final

from magnetar.model.errors import PersistenceError
from magnetar.storage.backends.committer import Committer
from magnetar.storage.backends.file_names import (
    checkpoint_name,
    checkpoint_numbers,
    disk_sizes,
    remove_segment,
    segment_numbers,
)
from magnetar.storage.backends.files import File, FileSystem, write_atomically
from magnetar.storage.backends.journal_backend import index_name, is_shortage, segment_name
from magnetar.storage.backends.newest_segment import noted_newest
from magnetar.storage.backends.reserve import Reserve
from magnetar.storage.backends.segment_writer import LocalSegmentWriter

_OPEN_FILES_MAX: Final = 128


class LocalJournal:
    """Implements :class:`magnetar.storage.backends.journal_backend.JournalBackend` over a file system.

    Without ``executor`` it only reads. The file system may be locked already; it is unlocked by :meth:`release`.
    """

    def __init__(self, files: FileSystem, executor: Executor | None = None, committer: Committer | None = None) -> None:
        self._files = files
        self._writer = None if executor is None else LocalSegmentWriter(files, executor, committer)
        self._open: OrderedDict[int, File] = OrderedDict()
        """What :meth:`reader` gave, the last used at the end."""

    @property
    def writer(self) -> LocalSegmentWriter:
        if self._writer is None:
            raise PersistenceError("this directory was opened to be read")
        return self._writer

    def acquire(self) -> None:
        """See :class:`JournalBackend`; the directory survives a power cut from now on."""
        take(self._files)

    def release(self) -> None:
        """See :class:`JournalBackend`."""
        for file in self._open.values():
            file.close()
        self._open.clear()
        self._files.unlock()

    # segments ------------------------------------------------------------------------------------------------------

    def segments(self) -> list[int]:
        return segment_numbers(self._files.names())

    def noted_newest(self) -> int | None:
        return noted_newest(self._files)

    def open(self, number: int) -> File:
        return self._files.open(segment_name(number))

    def reader(self, number: int) -> File:
        found = self._open.get(number)
        if found is None:
            found = self._open[number] = self._open_one(segment_name(number))
            while len(self._open) > _OPEN_FILES_MAX:
                self._open.popitem(last=False)[1].close()
        return found

    def _open_one(self, name: str) -> File:
        """Open what the reader's thread asks for."""
        while True:
            try:
                return self._files.open(name)
            except OSError as error:
                if not is_shortage(error) or not self._open:
                    raise
                # the process may have fewer than we keep: what was not asked for lately is closed
                self._open.popitem(last=False)[1].close()

    def forget(self, number: int) -> None:
        file = self._open.pop(number, None)
        if file is not None:
            file.close()

    def seal(self, number: int, length: int, index: bytes, *, sync: bool) -> None:
        try:
            file = self.open(number)
        except FileNotFoundError:
            pass  # all that was in it is dead and gone already
        else:
            try:
                longer = file.size() > length
                if longer:
                    file.truncate(length)
                if sync or longer:  # or a power cut brings back zeros written ahead, which are in no count
                    file.sync()
            finally:
                file.close()
        self.write_index(number, index)

    def read_index(self, number: int) -> bytes:
        return _content(self._open_one(index_name(number)))

    def write_index(self, number: int, index: bytes) -> None:
        write_atomically(self._files, index_name(number), index)

    def sizes(self, numbers: Iterable[int]) -> dict[int, int]:
        return disk_sizes(self._files, numbers)

    def remove(self, number: int) -> None:
        remove_segment(self._files, number)

    def keep_aside(self, number: int, offset: int, why: str, parts: Iterable[bytes]) -> str:
        name = f"quarantine-{segment_name(number)}-{offset:x}-{why}"
        try:
            file = self._files.open(name, create=True)
            try:
                file.truncate(0)
                for part in parts:
                    file.append([part])
                file.sync()
            finally:
                file.close()
            self._files.sync()
        except OSError:
            with suppress(OSError):
                self._files.remove(name)  # half a copy of what stays where it is
            raise
        return name

    # checkpoints ---------------------------------------------------------------------------------------------------

    def checkpoints(self) -> list[int]:
        return checkpoint_numbers(self._files.names())

    def read_checkpoint(self, number: int) -> bytes:
        return _content(self._files.open(checkpoint_name(number)))

    def write_checkpoint(self, number: int, data: bytes) -> None:
        write_atomically(self._files, checkpoint_name(number), data)

    def remove_checkpoint(self, number: int) -> None:
        self._files.remove(checkpoint_name(number))

    def reject_checkpoint(self, number: int) -> str:
        base, names = f"quarantine-{checkpoint_name(number)}", self._files.names()
        # the number is given again, so one that was set aside before may have the name
        name = next(one for i in range(len(names) + 1) if (one := f"{base}-{i}" if i else base) not in names)
        self._files.rename(checkpoint_name(number), name)
        return name

    # the directory -------------------------------------------------------------------------------------------------

    def sync(self) -> None:
        self._files.sync()

    def remove_unfinished(self) -> None:
        for name in self._files.names():
            if name.endswith(".new") and not name.startswith("metadata-"):
                self._files.remove(name)

    def reserve(self, size: int) -> Reserve:
        return Reserve(self._files, size)


def take(files: FileSystem) -> None:
    """Make the directory last and lock it, unless that was done. Raises PersistenceError."""
    if files.locked:
        return
    try:
        files.make()
        files.lock()
    except BlockingIOError:
        raise PersistenceError(
            "the data directory is in use by another process; stop that one or choose another directory"
        ) from None
    except OSError as error:
        raise PersistenceError(f"the data directory cannot be used: {error}") from error


def _content(file: File) -> bytes:
    """All of a file, which is closed."""
    try:
        return file.read(0, file.size())
    finally:
        file.close()
