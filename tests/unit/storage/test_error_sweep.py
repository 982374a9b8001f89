"""One life of a store in which the n-th call of one kind fails, for every n: what was receipted is there after a power
cut, nothing is receipted that a failed sync left in doubt, and the store goes on when the disk does."""

from __future__ import annotations

import asyncio
import errno
from dataclasses import replace
from functools import partial
from typing import get_args

import pytest

from magnetar.model.errors import MagnetarError, PersistenceError
from magnetar.storage.ledgers.managed_ledger import ManagedLedger
from magnetar.storage.local_store import LocalLedgerStore
from magnetar.storage.log.write_group import PendingExtent
from magnetar.storage.metadata_log.metadata_log import MetadataLog
from magnetar.storage.store import LedgerStore
from magnetar.testing.faultfiles import FaultFile, Operation
from magnetar.testing.simloop import SimClock, run
from tests.support.simulated_store import SIX_HUNDRED_BYTE_SEGMENTS, Disk, _executor, readable

WAYS = [
    (errno.EIO, 1, "power"), (errno.EIO, 4, "kill"), (errno.ENOSPC, 1, "power"), (errno.EDQUOT, 3, "stop"),
    (errno.EROFS, 6, "power"), (errno.EMFILE, 2, "kill"),
]  # fmt: skip
"""What fails, how often, and how the life ends."""
SETTINGS = replace(SIX_HUNDRED_BYTE_SEGMENTS, segment_bytes=2000, aligned_bytes_min=100_000, reserve_bytes=0)
LOGS = ("a", "b")
ROUNDS = 12


class Life:
    """Writes, acknowledges, trims, moves, deletes; knows what was receipted."""

    def __init__(self, disk: Disk) -> None:
        self.disk = disk
        self.store: LedgerStore
        self.metadata: MetadataLog
        self.receipted: dict[str, dict[int, bytes]] = {name: {} for name in LOGS}
        self.acked: dict[str, int] = dict.fromkeys(LOGS, -1)
        self.trimmed: dict[str, int] = dict.fromkeys(LOGS, 0)
        self.facts: dict[str, bytes] = {}
        self.refused = 0

    async def begin(self) -> None:
        self.metadata, self.store = opened(self.disk)
        for name in LOGS:
            managed = self.store.open_log(name)
            managed.on_durable = partial(self._receipt, name)
            managed.on_failed = self._failed
            if "s" not in managed.cursors:
                managed.open_cursor("s", 0)

    def _receipt(self, name: str, extent: PendingExtent) -> None:
        for i, entry in enumerate(extent.entries):
            self.receipted[name][extent.ordinal + i] = entry

    def _failed(self, extent: PendingExtent, error: PersistenceError) -> None:
        self.refused += 1

    async def go(self) -> None:
        for i in range(ROUNDS):
            for name in LOGS:
                managed = self.store.find_log(name)
                assert managed is not None
                for j in range(2):
                    managed.append(b"%s %d %d" % (name.encode() * 60, i, j), 1, None)
                await self.store.journal.drain()
                self._acknowledge(name, managed)
            if i % 4 == 3:
                self._trim("a")
            await self._put(f"/facts/{i}", b"%d" % i)
            await asyncio.sleep(2.0)
            if i % 3 == 2:
                try:
                    await asyncio.wait_for(self.store.cleaner.run(), 10)
                except (OSError, MagnetarError, TimeoutError):
                    self.refused += 1
        await asyncio.sleep(5.0)

    def _acknowledge(self, name: str, managed: ManagedLedger) -> None:
        upto = managed.end - 3
        if upto > managed.cursors["s"].mark_delete:
            managed.cursors["s"].acknowledge_until(upto, lambda: self.acked.update({name: upto}))

    def _trim(self, name: str) -> None:
        managed = self.store.find_log(name)
        assert managed is not None
        managed.open_ledger()
        managed.trim(managed.cursors["s"].mark_delete + 1)
        self.trimmed[name] = managed.first

    async def _put(self, path: str, data: bytes) -> None:
        try:
            await self.metadata.put(path, data)
        except MagnetarError:
            self.refused += 1
        else:
            self.facts[path] = data

    async def check(self) -> None:
        """In the next life."""
        metadata, store = opened(self.disk)
        assert metadata.damage == [] and metadata.doubt is None, metadata.damage
        for path, data in self.facts.items():
            record = metadata.get(path)
            assert record is not None and record.data == data, path
        metadata.let_go()
        assert store.damage == [], store.damage
        for name in LOGS:
            managed = store.find_log(name)
            wanted = {o: e for o, e in self.receipted[name].items() if o >= self.trimmed[name]}
            if managed is None:
                assert not wanted
                continue
            found = await readable(managed)
            assert {o: found.get(o) for o in wanted} == wanted, name
            assert set(found) == set(range(managed.first, managed.end)), name
            cursor = managed.cursors.get("s")
            if cursor is None:
                assert self.acked[name] == -1
            else:
                assert self.acked[name] <= cursor.mark_delete < managed.end
        await store.close()


def opened(disk: Disk) -> tuple[MetadataLog, LedgerStore]:
    """As a broker does: the metadata first, whose number is the store's."""
    disk.files.lock()
    metadata = MetadataLog(disk.files, imported=())
    store = LocalLedgerStore(disk.files, SimClock(asyncio.get_running_loop()), disk.settings, _executor)
    store.belong_to(metadata.instance)
    store.open()
    return metadata, store


async def lived(operation: Operation, skip: int, times: int, code: int, *, end: str) -> bool:
    """Whether the call came at all."""
    disk = Disk(SETTINGS)
    life = Life(disk)
    await life.begin()
    await life.store.journal.drain()
    disk.files.fail(operation, skip=skip, times=times, code=code)
    await life.go()
    left = disk.files._disk.plans.get(operation, [])
    came = not left or left[0].skip == 0
    disk.files._disk.plans.clear()
    before = {name: len(found) for name, found in life.receipted.items()}
    await asyncio.sleep(3.0)
    for name in LOGS:
        managed = life.store.find_log(name)
        assert managed is not None
        managed.append(b"after", 1, None)
    await asyncio.sleep(3.0)
    assert all(len(life.receipted[name]) > before[name] for name in LOGS), "the disk is well again"
    if end == "stop":
        life.metadata.let_go()
        await life.store.close()
        disk.kill()
    elif end == "power":
        disk.power_off()
    else:
        disk.kill()
    await life.check()
    return came


OPERATIONS: list[Operation] = [one for one in get_args(Operation) if one != "lock"]
EVERY = 6
"""Every sixth call, beginning with another one for each kind of error and of end."""


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize(("code", "times", "end"), WAYS)
def test_the_nth_call_fails(operation: Operation, code: int, times: int, end: str) -> None:
    skip = WAYS.index((code, times, end)) + OPERATIONS.index(operation)
    came = True
    for n in range(skip % EVERY, 1000, EVERY):
        try:
            came = run(n, lived(operation, n, times, code, end=end))
        except AssertionError as error:
            raise AssertionError(f"call {n} of {operation}: {error}") from error
        if not came:
            break
    assert not came, "a life makes fewer calls"


def test_a_sync_that_is_asked_again_and_believed_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = FaultFile.sync

    def once_more(file: FaultFile) -> None:
        try:
            whole(file)
        except OSError:
            whole(file)

    monkeypatch.setattr(FaultFile, "sync", once_more)
    lost = 0
    for n in range(0, 60, 2):
        try:
            run(n, lived("sync", n, 1, errno.EIO, end="power"))
        except AssertionError:
            lost += 1
    assert lost
