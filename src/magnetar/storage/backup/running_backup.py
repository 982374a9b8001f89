"""Backups of a running store, one at a time: the state of one moment, copied while the broker goes on serving.

The moment lies between two group commits, on the event loop. What is durable then is a prefix of the log: all segments
but the newest whole, the newest up to its durable length, and both copies of the metadata up to theirs. That is what a
``kill -9`` at that moment would leave, so a start on the copy is a start after a crash and nothing new. Whatever was
given to the journal before is waited for first.

Nothing that the moment consists of may go before it is copied: segments are not removed meanwhile, and checkpoints and
metadata, which are replaced under their names, are opened when the moment comes. No checkpoint is written between the
list of files and the moment: one that is younger than the log beside it would promise entries that are not there.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any, Final, NamedTuple, Protocol

from magnetar.model.errors import (
    ConflictError,
    InvalidValueError,
    MagnetarError,
    PersistenceError,
    PreconditionFailedError,
)
from magnetar.runtime.callbacks import settled
from magnetar.runtime.tasks import TaskGroup
from magnetar.storage.backends.file_names import checkpoint_name, checkpoint_numbers, segment_numbers
from magnetar.storage.backends.files import File, FileSystem
from magnetar.storage.backends.journal_backend import index_name, segment_name
from magnetar.storage.backends.newest_segment import NAME as NEWEST
from magnetar.storage.backends.newest_segment import newest_line
from magnetar.storage.backup.backup_writer import BackupPart, BackupWriter, remove_written
from magnetar.storage.metadata_log.metadata_log import MetadataLog
from magnetar.storage.store import LedgerStore

log = logging.getLogger(__name__)

RUNNING: Final = "RUNNING"
SUCCESS: Final = "SUCCESS"
ERROR: Final = "ERROR"
_REFUSALS: Final = (ConflictError, InvalidValueError, PreconditionFailedError)
"""What is wrong with the request: whoever sent it gets the answer, and nobody else has anything to do."""


class BackupPlace(Protocol):
    """Where backups are written, by name; its calls block."""

    def make(self, name: str) -> FileSystem:
        """Make an empty directory for a backup. Raises InvalidValueError, ConflictError if it is there, OSError."""
        ...

    def remove(self, name: str) -> None:
        """Remove the directory, which is empty. Raises OSError."""
        ...


class BackupStatus:
    """The state of the last backup."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.state = RUNNING
        self.taken_ms = 0
        """The moment that it shows, in milliseconds since 1970."""
        self.bytes = 0
        """Bytes of the backup, as far as it is written."""
        self.total = 0
        """Bytes that it takes in all, as far as is known."""
        self.error = ""


class _Listed(NamedTuple):
    """What was found while no checkpoint is written and nothing removed."""

    segments: list[int]
    indexes: list[int]
    checkpoints: list[BackupPart]
    """Opened."""


class RunningBackups:
    """The backups of one store; lives on its loop and copies in its threads for long work."""

    def __init__(
        self,
        store: LedgerStore,
        files: FileSystem,
        metadata: MetadataLog,
        place: BackupPlace,
        now_ms: Callable[[], int],
    ) -> None:
        self._store = store
        self._files = files
        self._metadata = metadata
        self._place = place
        self._now_ms = now_ms
        self._tasks = TaskGroup("backup")
        self._task: asyncio.Task[Any] | None = None
        self._stopping = False
        self.last: BackupStatus | None = None
        """The backup that is being written, or the last one that was begun; a refused request begins none."""
        self.last_whole: BackupStatus | None = None
        """The last one that is whole, whatever became of those after it."""

    async def begin(self, name: str) -> BackupStatus:
        """Begin a backup; return when its moment has come: everything that was receipted before is in it.

        Raises ConflictError while another is being written, InvalidValueError, MetadataError, PersistenceError.
        """
        if self.last is not None and self.last.state == RUNNING:
            raise ConflictError(
                f"backup {self.last.name} is still being written; one at a time, ask again when it has ended"
            )
        before, status = self.last, BackupStatus(name)
        self.last = status
        begun: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._task = self._tasks.start(self._run(status, before, begun), name)
        await asyncio.shield(begun)
        return status

    async def close(self) -> None:
        """Give up what is being written; return when nothing of it is there any more."""
        self._stopping = True
        if self._task is not None and not self._task.done():
            await asyncio.wait([self._task])

    async def _run(self, status: BackupStatus, before: BackupStatus | None, begun: asyncio.Future[None]) -> None:
        keeper = self._store.keeper
        target: FileSystem | None = None
        try:
            target = await self._blocking(self._place.make, status.name)
            keeper.keeps_all = True
            writer = await self._moment(status, target)
            try:
                if not begun.done():
                    begun.set_result(None)
                await self._write(writer, status)
            finally:
                writer.close()
        except BaseException as error:  # whatever it is: no backup runs for ever
            keeper.keeps_all = False
            if target is not None:
                await self._discard(status.name, target)
            if isinstance(error, _REFUSALS):
                self.last = before
            self._failed(status, error, begun)
            if not isinstance(error, Exception):
                raise
            return
        finally:
            keeper.keeps_all = False
        status.state = SUCCESS
        self.last_whole = status
        log.info("backup %s: %d bytes in %d files", status.name, status.bytes, len(writer.files))

    async def _discard(self, name: str, target: FileSystem) -> None:
        try:
            await self._blocking(remove_written, target)
            await self._blocking(self._place.remove, name)
        except Exception as error:
            log.warning("what was written of backup %s could not be removed: %s", name, error)

    def _failed(self, status: BackupStatus, cause: BaseException, begun: asyncio.Future[None]) -> None:
        error = cause
        if not isinstance(cause, MagnetarError):
            why = cause if isinstance(cause, OSError) else repr(cause)
            error = PersistenceError(f"backup {status.name} could not be written: {why}")
        expected = isinstance(cause, OSError | MagnetarError)
        if isinstance(cause, _REFUSALS):
            log.warning("a backup was refused: %s", error)
        else:
            log.error("%s; nothing of it was left", error, exc_info=None if expected else cause)
        status.error = str(error)
        status.state = ERROR
        if not begun.done():
            begun.set_exception(error)

    # the moment ----------------------------------------------------------------------------------------------------

    async def _moment(self, status: BackupStatus, target: FileSystem) -> BackupWriter:
        store = self._store
        opened: list[File] = []
        try:
            async with store.keeper.no_checkpoint():
                before = store.journal.segment
                listed: _Listed = await store.keeper.blocking(self._list, opened)
                await settled(store.journal.barrier)
                # no await from here on: this is the moment
                status.taken_ms = self._now_ms()
                parts = self._parts(listed, before, opened)
            known = [number for number in listed.segments if number <= store.journal.segment]
            status.total = sum((await self._blocking(store.keeper.sizes, known)).values())
            free, _ = await self._blocking(target.space)
            if free < status.total:
                raise PersistenceError(
                    f"backup {status.name} takes {status.total} bytes and {free} are free where it would be written; "
                    "make room or choose another backupDirectory"
                )
        except BaseException:
            for file in opened:
                file.close()
            raise
        return BackupWriter(self._files, target, parts, status.taken_ms)

    def _list(self, opened: list[File]) -> _Listed:
        """In the keeper's thread: a removal that it was given before is done."""
        names = self._files.names()
        segments = segment_numbers(names)
        checkpoints = []
        for number in checkpoint_numbers(names):
            opened.append(self._files.open(checkpoint_name(number)))
            checkpoints.append(BackupPart(checkpoint_name(number), file=opened[-1]))
        there = set(names)
        return _Listed(segments, [number for number in segments if index_name(number) in there], checkpoints)

    def _parts(self, listed: _Listed, before: int, opened: list[File]) -> list[BackupPart]:
        journal = self._store.journal
        # those that were begun since the list was made stand in it or not; of one that is being begun nothing counts
        numbers = {number for number in listed.segments if number <= journal.segment}
        numbers.update(range(before + 1, journal.segment + 1))
        parts = [*self._metadata_parts(opened), *listed.checkpoints]
        for number in sorted(numbers):
            parts.append(BackupPart(segment_name(number), journal.length if number == journal.segment else None))
        parts += [BackupPart(index_name(number)) for number in listed.indexes if number in numbers]
        if journal.segment in numbers:
            parts.append(BackupPart(NEWEST, data=newest_line(journal.segment)))
        return parts

    def _metadata_parts(self, opened: list[File]) -> list[BackupPart]:
        parts = []
        for name, length in self._metadata.durable_copies():
            opened.append(self._files.open(name))
            parts.append(BackupPart(name, length, opened[-1]))
        return parts

    # copying -------------------------------------------------------------------------------------------------------

    async def _write(self, writer: BackupWriter, status: BackupStatus) -> None:
        while not await self._blocking(writer.step):
            status.bytes = writer.bytes
            status.total = max(status.total, status.bytes)
            if self._stopping:
                raise PersistenceError(f"backup {status.name} was given up: the broker stops")
            full = self._store.journal.full
            if full is not None:
                # what is dead may not go before the backup has ended, and the broker needs the room
                raise PersistenceError(f"backup {status.name} was given up: {full}")
        status.bytes = status.total = writer.bytes

    async def _blocking(self, work: Callable[..., Any], *arguments: Any) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._store.archive_threads, work, *arguments)
