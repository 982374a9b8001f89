"""Copies of ledgers at the store's level: recorded, released, discarded, read back, and all that after every crash."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from magnetar.model.errors import ConflictError, MagnetarError, PersistenceError
from magnetar.runtime.clock import SystemClock
from magnetar.storage.backends.file_names import checkpoint_names
from magnetar.storage.ledgers.archive import ArchivedEntries, Offload
from magnetar.storage.ledgers.managed_ledger import ManagedLedger
from magnetar.storage.local_store import LocalLedgerStore
from magnetar.storage.store import LedgerStore
from magnetar.storage.verify import verify
from magnetar.testing.faultfiles import FaultFileSystem
from magnetar.testing.kit.virtual_loop import InlineExecutor
from tests.support.loop_turns import settled
from tests.support.store_lives import SMALL, append, disk, killed, numbered, read, run


class Copies:
    """An archive that holds whole ledgers."""

    def __init__(self) -> None:
        self.held: dict[str, list[bytes]] = {}
        self.shift = 0
        self.reads = 0

    def piece(self, offload: Offload, ledger: int, entry: int) -> ArchivedEntries:
        self.reads += 1
        if offload.name not in self.held:
            raise FileNotFoundError(offload.name)
        first = entry // 4 * 4 + self.shift
        return ArchivedEntries(first, self.held[offload.name][first : first + 4], None, first)


COPIES = Copies()


@pytest.fixture(autouse=True)
def no_copies() -> None:
    COPIES.held.clear()
    COPIES.shift = COPIES.reads = 0


def opened(files: FaultFileSystem) -> LedgerStore:
    store = LocalLedgerStore(files, SystemClock(), SMALL, lambda name: InlineExecutor(), archive=COPIES)
    store.open()
    return store


def copy_of(managed: ManagedLedger, number: int, name: str = "") -> Offload:
    """Return the copy of the n-th ledger; the object exists."""
    ledger = managed.table.ledgers[number]
    name = name or f"copy-{ledger.id}"
    COPIES.held[name] = numbered(ledger.ordinal, ledger.end)
    return Offload("file:///x", name, "digest", ledger.entries, ledger.bytes, 1, 5)


async def record(managed: ManagedLedger, number: int, copy: Offload) -> None:
    answer: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    managed.record_offload(
        managed.table.ledgers[number].id, copy, lambda: answer.set_result(None), answer.set_exception
    )
    await answer


async def filled(files: FaultFileSystem, entries: int = 35) -> tuple[LedgerStore, ManagedLedger]:
    store = opened(files)
    managed = store.open_log("t")
    await append(store, managed, *numbered(0, entries))
    return store, managed


def found(store: LedgerStore) -> ManagedLedger:
    managed = store.find_log("t")
    assert managed is not None
    return managed


def segments(files: FaultFileSystem) -> int:
    return sum(name.startswith("segment-") and not name.endswith(".index") for name in files.names())


def test_released_entries_come_from_the_copy_and_free_the_disk() -> None:
    async def main() -> None:
        files = disk()
        store, managed = await filled(files, 200)
        before = segments(files)
        for number in range(18):
            copy = copy_of(managed, number)
            await record(managed, number, copy)
        assert await read(managed) == numbered(0, 200)
        assert not COPIES.reads, "what is here is read here"
        for ledger in managed.table.ledgers[:18]:
            assert ledger.offload is not None
            released = ledger.offload._replace(released=True)
            managed.record_offload(ledger.id, released, lambda: None, lambda error: None)
        await store.journal.drain()
        await store.keeper.remove_dead()
        assert segments(files) < before / 2
        assert await read(managed) == numbered(0, 200)
        assert COPIES.reads > 18
        files = await killed(store, files)
        assert not verify(files).damage, "the newest checkpoint is older than the releases"
        store = opened(files)
        assert not store.damage
        assert await read(found(store)) == numbered(0, 200)
        await store.close()
        assert not verify(files).damage
        store = opened(files)
        assert await read(found(store)) == numbered(0, 200)
        await store.close()

    run(main())


def test_nothing_holds_before_it_is_durable() -> None:
    async def main() -> None:
        files = disk()
        _, managed = await filled(files)
        copy = copy_of(managed, 0)
        await record(managed, 0, copy)
        managed.record_offload(managed.table.ledgers[0].id, copy._replace(released=True), lambda: None, lambda e: None)
        managed.record_offload(managed.table.ledgers[1].id, copy_of(managed, 1), lambda: None, lambda e: None)
        lost = files.reopened()  # before the loop had a turn
        assert managed.spans.holding(0) is not None
        other = opened(lost)
        first, second = found(other).table.ledgers[:2]
        assert first.offload == copy and second.offload is None
        COPIES.held.clear()
        assert await read(found(other)) == numbered(0, 35)
        await other.close()

    run(main())


@pytest.mark.parametrize(
    ("what", "reason"),
    [
        (lambda managed: (len(managed.table.ledgers) - 1, copy_of(managed, 0)), "is open"),
        (lambda managed: (1, copy_of(managed, 0)._replace(entries=3)), "has 10 entries"),
        (lambda managed: (0, copy_of(managed, 0, "other")), "only its copy"),
    ],
)
def test_what_is_refused(what: Callable[[ManagedLedger], tuple[int, Offload]], reason: str) -> None:
    async def main() -> None:
        files = disk()
        store, managed = await filled(files)
        await record(managed, 0, copy_of(managed, 0)._replace(released=True))
        number, copy = what(managed)
        with pytest.raises(ConflictError, match=reason):
            await record(managed, number, copy)
        assert await read(managed) == numbered(0, 35)
        await store.close()

    run(main())


def test_a_ledger_whose_last_entries_are_being_written_is_open() -> None:
    async def main() -> None:
        files = disk()
        store, managed = await filled(files, 9)
        managed.append(numbered(9, 10)[0], 1, None)
        managed.append(numbered(10, 11)[0], 1, None)  # into the next ledger; neither is durable
        ledger = managed.table.ledgers[0]
        assert ledger.closed_ms and ledger.entries == 9
        with pytest.raises(ConflictError, match="is open"):
            managed.sealed(ledger.id)
        await store.journal.drain()
        assert managed.sealed(ledger.id).entries == 10
        await store.close()

    run(main())


def test_a_copy_that_gives_other_entries_is_refused_and_one_that_is_gone_is_an_error() -> None:
    async def main() -> None:
        files = disk()
        store, managed = await filled(files)
        await record(managed, 0, copy_of(managed, 0)._replace(released=True))
        COPIES.shift = 4
        with pytest.raises(PersistenceError, match="where entry 0 was asked for"):
            await read(managed)
        COPIES.held.clear()
        with pytest.raises(PersistenceError, match="copy-1"):
            await read(managed)
        assert await read(managed, 10) == numbered(10, 35), "the other ledgers are read"
        await store.close()

    run(main())


@pytest.mark.parametrize("ending", ["kill", "close"])
def test_what_is_trimmed_deleted_or_replaced_is_discarded_once_and_for_all(ending: str) -> None:
    async def life(store: LedgerStore, files: FaultFileSystem) -> tuple[LedgerStore, FaultFileSystem]:
        if ending == "kill":
            files = await killed(store, files)
        else:
            await store.close()
        return opened(files), files

    async def main() -> None:
        files = disk()
        store, managed = await filled(files)
        for number in range(3):
            await record(managed, number, copy_of(managed, number))
        await record(managed, 2, copy_of(managed, 2, "newer"))
        managed.trim(10)
        store, files = await life(store, files)
        assert {copy.name for copy in store.discarded.values()} == {"copy-1", "copy-3"}
        for copy in list(store.discarded.values()):
            store.copy_deleted(copy)
        store, files = await life(store, files)
        assert not store.discarded
        store.delete_log("t")
        store, files = await life(store, files)
        assert {copy.name for copy in store.discarded.values()} == {"copy-2", "newer"}
        store, files = await life(store, files)
        assert {copy.name for copy in store.discarded.values()} == {"copy-2", "newer"}
        await store.close()

    run(main())


def test_a_copy_that_was_begun_is_discarded_unless_it_is_recorded() -> None:
    async def main() -> None:
        files = disk()
        store, managed = await filled(files)
        for number in (0, 1):
            answer: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            begun = copy_of(managed, number)._replace(digest="")
            store.copy_begun(begun, lambda answer=answer: answer.set_result(None), answer.set_exception)  # type: ignore[misc]
            await answer
        await record(managed, 1, copy_of(managed, 1))
        assert [copy.name for copy in store.discarded.values()] == ["copy-1"]
        store = opened(await killed(store, files))
        assert [copy.name for copy in store.discarded.values()] == ["copy-1"]
        await store.close()

    run(main())


def test_a_trim_that_the_kill_prevented_discards_nothing() -> None:
    """The checkpoint may be younger than a log's part in it: the copy that is still needed is left alone."""

    async def main() -> None:
        files = disk()
        store, managed = await filled(files)
        await record(managed, 0, copy_of(managed, 0)._replace(released=True))
        store.copy_discarded(copy_of(managed, 0))
        await store.close()
        store = opened(files)
        assert not store.discarded
        assert await read(found(store)) == numbered(0, 35)
        await store.close()

    run(main())


def test_a_ledger_that_was_trimmed_while_it_was_recorded_has_no_use_for_its_copy() -> None:
    async def main() -> None:
        files = disk()
        store, managed = await filled(files)
        copy = copy_of(managed, 0)
        managed.record_offload(managed.table.ledgers[0].id, copy, lambda: None, lambda e: None)
        managed.trim(10)
        await settled()
        assert list(store.discarded) == [copy.key]
        await store.close()

    run(main())


def test_a_topic_that_was_deleted_while_its_ledgers_were_recorded_leaves_no_object() -> None:
    async def main() -> None:
        files = disk()
        store, managed = await filled(files)
        old, new = copy_of(managed, 0), copy_of(managed, 1)
        await record(managed, 0, old)
        first, second = (ledger.id for ledger in managed.table.ledgers[:2])
        managed.record_offload(first, old._replace(released=True), lambda: None, lambda e: None)
        managed.record_offload(second, new, lambda: None, lambda e: None)
        store.delete_log("t")
        await store.journal.drain()
        assert set(store.discarded) == {old.key, new.key}
        await store.close()
        store = opened(files)
        assert set(store.discarded) == {old.key, new.key}
        await store.close()

    run(main())


@pytest.mark.parametrize("released", [True, False])
def test_a_trim_that_only_a_lost_checkpoint_knew_is_one_where_the_copy_was_deleted_for_it(
    monkeypatch: pytest.MonkeyPatch, released: bool
) -> None:
    """The kill came after the checkpoint and before the record of the trim: the copy is deleted, and no span waits."""

    async def main() -> None:
        files = disk()
        store, managed = await filled(files, 0)
        other = store.open_log("other")
        async with store.keeper.no_checkpoint():
            await append(store, other, b"keeps the first segment")
            await append(store, managed, *numbered(0, 12))
            await record(managed, 0, copy_of(managed, 0)._replace(released=released))
            while store.journal.segment < 2:
                await append(store, other, *numbered(0, 1, 100))
            with monkeypatch.context() as slow:
                slow.setattr(store.journal, "_flush", lambda: None)  # the disk takes its time
                managed.trim(10)
        await settled()
        files = files.reopened()
        store = opened(files)
        assert found(store).first == 10
        (copy,) = store.discarded.values()
        del COPIES.held[copy.name]
        store.copy_deleted(copy)
        await store.journal.drain()
        files = await killed(store, files)
        for name in checkpoint_names(files.names()):
            files.flip_bit(name, 20)
        store = opened(files)
        assert store.damage == []
        assert (found(store).first, store.discarded) == (10, {})
        assert await read(found(store), 10) == numbered(10, 12)
        await store.close()

    run(main())


def test_a_store_that_was_given_no_archive_says_so() -> None:
    async def main() -> None:
        files = disk()
        store, managed = await filled(files)
        await record(managed, 0, copy_of(managed, 0)._replace(released=True))
        await store.close()
        store = LocalLedgerStore(files, SystemClock(), SMALL, lambda name: InlineExecutor())
        store.open()
        with pytest.raises(MagnetarError, match="not given a way"):
            await read(found(store))
        await store.close()

    run(main())
