"""A store that cannot be opened gives everything back, whichever step failed: another one opens the directory."""

from __future__ import annotations

import asyncio
import errno
import random
import threading
from typing import get_args

import pytest

from magnetar.model.errors import PersistenceError
from magnetar.runtime.clock import SystemClock
from magnetar.storage.backends.files import File
from magnetar.storage.local_store import LocalLedgerStore
from magnetar.storage.log.journal import Journal
from magnetar.storage.space.full_disk import FullDisk
from magnetar.storage.space.segment_keeper import SegmentKeeper
from magnetar.testing.faultfiles import FaultFile, FaultFileSystem, Operation

LOG = "persistent://public/default/t"


class WatchedFiles(FaultFileSystem):
    """Knows the files that it opened."""

    def __init__(self, seed: int) -> None:
        super().__init__(random.Random(seed))
        self.opened: list[FaultFile] = []

    def open(self, name: str, *, create: bool = False) -> File:
        file = super().open(name, create=create)
        assert isinstance(file, FaultFile)
        self.opened.append(file)
        return file

    def still_open(self) -> list[str]:
        return [file._name for file in self.opened if not file._closed]


async def killed(files: FaultFileSystem, *, entries: int = 3) -> None:
    """Leave what a kill leaves: segments to replay, a checkpoint before them, a file that was half written."""
    store = LocalLedgerStore(files, SystemClock())
    store.open()
    managed = store.open_log(LOG)
    for i in range(entries):
        managed.append(b"entry %d" % i, 1, None)
    await store.close()
    store = LocalLedgerStore(files, SystemClock())
    store.open()
    store.open_log(LOG).append(b"the last", 1, None)
    await store.journal.drain()
    store.journal.close()
    store._reader.close()
    await store._tasks.close()
    store._threads.close()
    store._backend.release()
    files.open("checkpoint-00000000000000ff.new", create=True).close()


def require_nothing_held(files: WatchedFiles, before: set[threading.Thread]) -> None:
    assert not files.locked
    assert files.still_open() == []
    assert set(threading.enumerate()) <= before
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def require_opens(files: FaultFileSystem, entries: int) -> None:
    files._disk.plans.clear()
    store = LocalLedgerStore(files, SystemClock())
    store.open()
    managed = store.find_log(LOG)
    assert managed is not None
    assert managed.end == entries + 1
    await store.close()


@pytest.mark.parametrize("operation", get_args(Operation))
@pytest.mark.parametrize("code", [errno.EIO, errno.ENOSPC])
def test_every_call_of_the_disk_may_fail(operation: Operation, code: int) -> None:
    async def run(skip: int) -> bool:
        """Whether the call came at all."""
        files = WatchedFiles(skip)
        await killed(files)
        before = set(threading.enumerate())
        files.fail(operation, skip=skip, code=code)
        store = LocalLedgerStore(files, SystemClock())
        try:
            store.open()
        except PersistenceError:
            require_nothing_held(files, before)
        else:
            files._disk.plans[operation] = came = [plan for plan in files._disk.plans[operation] if plan.skip == 0]
            happened = not came
            files._disk.plans.clear()
            await store.close()
            require_nothing_held(files, before)
            await require_opens(files, 3)
            return happened
        await require_opens(files, 3)
        return True

    skip = 0
    while asyncio.run(run(skip)):
        skip += 1
    assert skip or operation in ("stat", "truncate"), "no open makes this call"


STEPS: list[tuple[type, str]] = [
    (SegmentKeeper, "start"),
    (Journal, "start"),
    (FullDisk, "before_start"),
    (FullDisk, "start"),
    (LocalLedgerStore, "_name_lost_segments"),
]


@pytest.mark.parametrize(("owner", "step"), STEPS, ids=[f"{owner.__name__}.{step}" for owner, step in STEPS])
@pytest.mark.parametrize("error", [OSError(errno.EIO, "the disk is broken"), RuntimeError("a fault"), MemoryError()])
def test_every_step_may_fail(owner: type, step: str, error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object, **__: object) -> None:
        raise error

    async def run() -> None:
        files = WatchedFiles(1)
        await killed(files)
        before = set(threading.enumerate())
        with monkeypatch.context() as patched:
            patched.setattr(owner, step, fails)
            with pytest.raises(PersistenceError if isinstance(error, OSError) else type(error)):
                LocalLedgerStore(files, SystemClock()).open()
        await asyncio.sleep(0)  # what was scheduled by then writes nothing
        require_nothing_held(files, before)
        await require_opens(files, 3)

    asyncio.run(run())


def test_the_same_directory_is_not_in_use_after_a_start_that_failed() -> None:
    async def run() -> None:
        files = WatchedFiles(1)
        await killed(files)
        files.fail("remove")
        with pytest.raises(PersistenceError, match="start again when that is mended"):
            LocalLedgerStore(files, SystemClock()).open()
        other = LocalLedgerStore(files.second_process(), SystemClock())
        other.open()
        await other.close()

    asyncio.run(run())
