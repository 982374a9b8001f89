"""A backup that is being written when the broker stops: stopping waits until nothing of it is there."""

from __future__ import annotations

import asyncio
import errno
import random
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from types import SimpleNamespace
from typing import Any, cast

import pytest

from magnetar.model.errors import (
    ConflictError,
    InvalidValueError,
    MagnetarError,
    PersistenceError,
    PreconditionFailedError,
)
from magnetar.storage.backup.backup_writer import BackupWriter
from magnetar.storage.backup.running_backup import ERROR, RUNNING, SUCCESS, BackupStatus, RunningBackups
from magnetar.storage.metadata_log.metadata_log import MetadataLog
from magnetar.storage.store import LedgerStore
from magnetar.testing.faultfiles import FaultFileSystem, Faults, Operation
from magnetar.testing.simloop import run
from tests.support.simulated_store import Disk, publish, simulated


def test_closing_waits_for_the_backup_that_is_under_way_and_for_no_other() -> None:
    async def main() -> None:
        let_go = threading.Event()

        def make(name: str) -> None:
            assert let_go.wait(30)
            raise OSError("no room for it")

        threads = ThreadPoolExecutor(1)
        store = SimpleNamespace(archive_threads=threads, keeper=SimpleNamespace(keeps_all=False))
        place = SimpleNamespace(make=make, check=lambda name: None)
        backups = RunningBackups(
            cast("Any", store), cast("Any", None), cast("Any", None), cast("Any", place), lambda: 0
        )
        await asyncio.wait_for(backups.close(), 5)
        beginning = asyncio.ensure_future(backups.begin("monday"))
        await asyncio.sleep(0.05)
        with pytest.raises(ConflictError, match="monday is still being written"):
            await backups.begin("tuesday")
        closing = asyncio.ensure_future(backups.close())
        await asyncio.sleep(0.05)
        assert not closing.done()
        let_go.set()
        await asyncio.wait_for(closing, 30)
        with pytest.raises(MagnetarError, match="no room for it"):
            await beginning
        assert backups.last is not None
        assert backups.last.error
        await asyncio.wait_for(backups.close(), 5)
        threads.shutdown()

    asyncio.run(main())


class Disks:
    """Implements :class:`magnetar.storage.backup.running_backup.BackupPlace` with a disk for each backup."""

    def __init__(self, **faults: Any) -> None:
        self.faults = faults
        self.there: dict[str, FaultFileSystem] = {}
        self.refuses: Operation | None = None

    def make(self, name: str) -> FaultFileSystem:
        made = self.there[name] = FaultFileSystem(random.Random(1), Faults(**self.faults))
        if self.refuses is not None:
            made.fail(self.refuses, skip=1, code=errno.ENOSPC)
        return made

    def remove(self, name: str) -> None:
        assert not self.there[name].names(), "nothing is left in it"
        del self.there[name]


async def ended(backups: RunningBackups) -> BackupStatus:
    assert backups._task is not None and backups.last is not None
    await asyncio.wait([backups._task])
    assert backups.last.state != RUNNING
    return backups.last


async def backed_up(disk: Disk, place: Disks) -> tuple[RunningBackups, LedgerStore]:
    store = disk.open()
    await publish(store, store.open_log("t"), 0, 5)
    return RunningBackups(store, disk.files, MetadataLog(disk.files), place, lambda: 5), store


@simulated
async def test_a_backup_for_which_there_is_no_room_is_refused_and_leaves_nothing(disk: Disk) -> None:
    place = Disks(capacity_bytes=700)
    backups, store = await backed_up(disk, place)
    with pytest.raises(PersistenceError, match=r"backup monday takes [0-9]+ bytes and 700 are free where it would be"):
        await asyncio.wait_for(backups.begin("monday"), 60)
    status = await ended(backups)
    assert (status.state, "make room" in status.error) == (ERROR, True)
    assert (place.there, store.keeper.keeps_all) == ({}, False)
    place.faults = {}
    await backups.begin("tuesday")
    status = await ended(backups)
    assert (status.state, status.error, status.bytes == status.total > 700) == (SUCCESS, "", True)
    assert (list(place.there), store.keeper.keeps_all) == (["tuesday"], False)
    await store.close()


@simulated
async def test_a_backup_that_cannot_be_written_to_its_end_says_so_and_leaves_nothing(disk: Disk) -> None:
    """Another one can be begun: no backup runs for ever."""
    place = Disks()
    backups, store = await backed_up(disk, place)
    place.refuses = "append"
    await asyncio.wait_for(backups.begin("monday"), 60)
    status = await ended(backups)
    assert status.state == ERROR
    assert status.error.startswith("backup monday could not be written: [Errno 28]")
    assert (place.there, store.keeper.keeps_all) == ({}, False)
    place.refuses = None
    await backups.begin("tuesday")
    assert (await ended(backups)).state == SUCCESS
    await store.close()


@simulated
async def test_the_last_whole_backup_stays_known_whatever_comes_after_it(disk: Disk) -> None:
    class Choosy(Disks):
        def make(self, name: str) -> FaultFileSystem:
            if name in self.there:
                raise ConflictError(f"{name} is there")
            return super().make(name)

    place = Choosy()
    backups, store = await backed_up(disk, place)
    place.refuses = "append"
    await asyncio.wait_for(backups.begin("sunday"), 60)
    assert ((await ended(backups)).name, backups.last_whole) == ("sunday", None)
    place.refuses = None
    whole = await asyncio.wait_for(backups.begin("monday"), 60)
    assert await ended(backups) is backups.last_whole is whole
    with pytest.raises(ConflictError):
        await asyncio.wait_for(backups.begin("monday"), 60)
    assert backups.last is backups.last_whole is whole, "a refused request begins none"
    place.refuses = "append"
    failed = await asyncio.wait_for(backups.begin("tuesday"), 60)
    assert await ended(backups) is failed
    assert (failed.state, backups.last_whole) == (ERROR, whole)
    await store.close()


def test_a_backup_that_grows_over_what_it_was_to_take_shows_the_larger_size() -> None:
    """What is written and what it takes together stand in the answer of GET: no more is written than it takes."""

    async def main() -> None:
        threads = ThreadPoolExecutor(1)
        journal = SimpleNamespace(full=None)
        store = SimpleNamespace(archive_threads=threads, keeper=SimpleNamespace(keeps_all=False), journal=journal)
        backups = RunningBackups(cast("Any", store), cast("Any", None), cast("Any", None), cast("Any", None), lambda: 0)
        status = BackupStatus("monday")
        status.total = 100
        shown: list[tuple[int, int]] = []

        class Writer:
            bytes = 0

            def step(self) -> bool:
                shown.append((status.bytes, status.total))
                self.bytes += 60
                return self.bytes > 180

        await backups._write(cast("Any", Writer()), status)
        assert shown == [(0, 100), (60, 100), (120, 120), (180, 180)]
        assert (status.bytes, status.total) == (240, 240)
        threads.shutdown()

    asyncio.run(main())


@pytest.mark.parametrize("why", ["the broker stops", "no room is left"])
def test_a_backup_that_is_given_up_leaves_nothing(why: str) -> None:
    """What is dead may not go while it is written: a broker whose disk is full needs the room."""

    async def main() -> None:
        place = Disks()
        backups, store = await backed_up(Disk(), place)
        await backups.begin("monday")
        if why == "the broker stops":
            await backups.close()
        else:
            store.journal.full = PersistenceError(why)
        status = await ended(backups)
        assert (status.state, status.error) == (ERROR, f"backup monday was given up: {why}")
        assert (place.there, store.keeper.keeps_all) == ({}, False)
        store.journal.full = None
        await store.close()

    run(1, main())


@pytest.mark.parametrize("refusal", [ConflictError, InvalidValueError, PreconditionFailedError])
def test_a_request_that_is_refused_is_no_error_of_the_broker(
    refusal: type[MagnetarError], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A client that asked for a name that is taken filled the log with errors."""

    def refuse(*_: object) -> None:
        raise refusal("monday exists; choose another name")

    async def main() -> None:
        place = Disks()
        backups, store = await backed_up(Disk(), place)
        monkeypatch.setattr(place, "make", refuse)
        with pytest.raises(refusal):
            await backups.begin("monday")
        (line,) = [one for one in caplog.records if "monday" in one.getMessage()]
        assert (line.levelname, line.getMessage()) == (
            "WARNING", "a backup was refused: monday exists; choose another name"
        )  # fmt: skip
        await store.close()

    run(1, main())


def test_a_backup_whose_moment_cannot_be_made_durable_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was receipted before must be in it: without the journal there is no such moment."""

    def refuse(done: object, failed: Callable[[PersistenceError], None]) -> None:
        failed(PersistenceError("nothing of it was accepted"))

    async def main() -> None:
        place = Disks()
        backups, store = await backed_up(Disk(), place)
        with monkeypatch.context() as patched:
            patched.setattr(type(store.journal), "barrier", lambda self, done, failed: refuse(done, failed))
            with pytest.raises(PersistenceError, match="nothing of it was accepted"):
                await asyncio.wait_for(backups.begin("monday"), 60)
        assert (await ended(backups)).state == ERROR
        assert (place.there, store.keeper.keeps_all) == ({}, False)
        await backups.begin("tuesday")
        assert (await ended(backups)).state == SUCCESS
        await store.close()

    run(1, main())


@pytest.mark.parametrize("step", ["make", "list", "space", "write"])
@pytest.mark.parametrize("error", [ValueError("a fault"), MemoryError(), asyncio.CancelledError()])
def test_a_backup_that_fails_with_anything_has_ended(
    step: str, error: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It stayed RUNNING, the request for it was never answered, and no later one was begun."""

    def fails(*_: object, **__: object) -> None:
        raise error

    async def main() -> None:
        place = Disks()
        backups, store = await backed_up(Disk(), place)
        owner, name = {
            "make": (Disks, "make"), "list": (RunningBackups, "_list"),
            "space": (FaultFileSystem, "space"), "write": (BackupWriter, "step"),
        }[step]  # fmt: skip
        with monkeypatch.context() as patched:
            patched.setattr(owner, name, fails)
            with suppress(MagnetarError):
                await asyncio.wait_for(backups.begin("monday"), 60)
            assert backups._task is not None
            await asyncio.wait([backups._task])
        status = backups.last
        assert status is not None
        assert status.state == ERROR
        assert status.error.startswith("backup monday could not be written")
        assert (place.there, store.keeper.keeps_all) == ({}, False)
        await backups.begin("tuesday")
        assert (await ended(backups)).state == SUCCESS
        await store.close()

    run(1, main())
