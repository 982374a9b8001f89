"""A checkpoint is written while topics and subscriptions are being made, and the kill comes before the log says so.

Later no checkpoint can be read: nothing that was receipted since is gone, or it is said.
"""

from __future__ import annotations

import pytest

from magnetar.storage.backends.file_names import checkpoint_names
from magnetar.storage.backends.journal_backend import segment_name
from magnetar.storage.ledgers.managed_ledger import ManagedLedger
from magnetar.storage.store import LedgerStore
from magnetar.testing.faultfiles import FaultFileSystem
from tests.support.directory_image import snapshot
from tests.support.loop_turns import settled
from tests.support.store_lives import append, disk, killed, numbered, opened, read, run


async def killed_while(
    files: FaultFileSystem, patched: pytest.MonkeyPatch, name: str, *, log_is_there: bool, old: bool = False
) -> FaultFileSystem:
    """A life in which the first checkpoint is captured while log ``name`` and its subscription are on their way.

    ``old``: by a version of before 28 November 2026, which had everything in it.
    """
    store = opened(files)
    if old:
        patched.setattr(store, "durable_logs", lambda: list(store.logs()))
    async with store.keeper.no_checkpoint():  # that of the first segment comes late
        other = store.open_log("other")
        if log_is_there:
            await append(store, store.open_log(name), b"before")
        while store.journal.segment < 2:
            await append(store, other, *numbered(0, 1, 100))
        with patched.context() as slow:
            slow.setattr(store.journal, "_flush", lambda: None)  # the disk takes its time
            store.open_log(name).open_cursor("s", 0).recorded = old
    await settled()
    assert checkpoint_names(files.names())
    return files.reopened()


def damaged(files: FaultFileSystem) -> None:
    """No checkpoint can be read any more; all segments can."""
    for name in checkpoint_names(files.names()):
        files.flip_bit(name, 20)
    assert segment_name(1) in snapshot(files)


async def used(store: LedgerStore, managed: ManagedLedger) -> None:
    """What a client is told: there is a topic, there is a subscription, entries and acknowledgements are durable."""
    if "s" not in managed.cursors:
        managed.open_cursor("s", 0)
    await append(store, managed, *numbered(0, 3))
    managed.cursors["s"].acknowledge([managed.first])
    await store.journal.drain()


def test_a_topic_that_was_being_made_is_whole_without_that_checkpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        files = await killed_while(disk(), monkeypatch, "a", log_is_there=False)
        store = opened(files)
        await used(store, store.open_log("a"))
        files = await killed(store, files)
        damaged(files)
        store = opened(files)
        managed = store.find_log("a")
        assert managed is not None, (store.names(), store.damage)
        assert await read(managed) == numbered(0, 3)
        assert managed.cursors["s"].mark_delete == 0
        assert store.damage == []
        await store.close()

    run(main())


def test_a_subscription_that_was_being_made_is_whole_without_that_checkpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        files = await killed_while(disk(), monkeypatch, "a", log_is_there=True)
        store = opened(files)
        await used(store, store.open_log("a"))
        files = await killed(store, files)
        damaged(files)
        store = opened(files)
        managed = store.open_log("a")
        assert managed.cursors["s"].mark_delete == 0, store.damage
        await store.close()

    run(main())


def test_a_topic_that_only_lost_checkpoints_of_older_versions_named_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        files = await killed_while(disk(), monkeypatch, "a", log_is_there=False, old=True)
        store = opened(files)
        managed = store.open_log("a")
        await used(store, managed)
        files = await killed(store, files)
        damaged(files)
        store = opened(files)
        kept = f"persistent://lost/found/log-{managed.id}"
        assert any(f"its entries are kept as {kept}" in text for text in store.damage), store.damage
        found = store.find_log(kept)
        assert found is not None
        assert await read(found) == numbered(0, 3)
        await store.close()

    run(main())


def test_a_subscription_that_only_lost_checkpoints_of_older_versions_named_is_missed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def main() -> None:
        files = await killed_while(disk(), monkeypatch, "a", log_is_there=True, old=True)
        store = opened(files)
        managed = store.open_log("a")
        number = managed.cursors["s"].id
        await used(store, managed)
        files = await killed(store, files)
        damaged(files)
        store = opened(files)
        assert [
            text
            for text in store.damage
            if f"a: nothing that can be read says the name of subscription {number}" in text
        ]
        await store.close()

    run(main())


@pytest.mark.parametrize("moved_after", [False, True], ids=["lost", "moved after"])
def test_a_subscription_whose_making_a_checkpoint_left_out_and_a_damaged_block_held_is_missed(
    monkeypatch: pytest.MonkeyPatch, moved_after: bool
) -> None:
    """Its number is none after those that the checkpoint knows: it was given already. A seek says its name again."""

    async def main() -> None:
        files = disk()
        store = opened(files)
        other, managed = store.open_log("other"), store.open_log("a")
        async with store.keeper.no_checkpoint():
            await append(store, managed, *numbered(0, 3))
            while store.journal.segment < 2:
                await append(store, other, *numbered(0, 1, 100))
            flush = store.journal._flush
            monkeypatch.setattr(store.journal, "_flush", lambda: None)  # the disk takes its time
            cursor = managed.open_cursor("sub-that-is-lost", 0)
        await settled()
        assert checkpoint_names(files.names())
        monkeypatch.setattr(store.journal, "_flush", flush)
        flush()
        await store.journal.drain()
        cursor.acknowledge([0])
        await store.journal.drain()
        if moved_after:
            cursor.reset(2)
        await append(store, other, b"so that it is no torn end")
        files = await killed(store, files)
        files.flip_bit(segment_name(2), snapshot(files)[segment_name(2)].index(b"sub-that-is-lost"))
        store = opened(files)
        named = [text for text in store.damage if f"says the name of subscription {cursor.id}," in text]
        found = store.open_log("a").cursors.get("sub-that-is-lost")
        assert (len(named), found and found.mark_delete) == ((0, 1) if moved_after else (1, None)), store.damage
        await store.close()

    run(main())


def test_nothing_is_said_of_what_was_deleted() -> None:
    """Whatever checkpoint a start begins with."""

    async def main() -> None:
        for left in range(3):
            files = disk()
            store = opened(files)
            other = store.open_log("other")
            for i in range(12):
                managed = store.open_log(f"log {i}")
                managed.open_cursor("deleted", 0)
                await used(store, managed)
                managed.cursors["deleted"].acknowledge([1])
                await append(store, other, *numbered(0, 1, 100))
                managed.append(b"on its way", 1, None)
                managed.cursors["s"].acknowledge([2])
                if i % 2:
                    managed.delete_cursor("deleted")
                else:
                    store.delete_log(managed.name)
                await store.journal.drain()
            files = await killed(store, files)
            for name in checkpoint_names(files.names())[left:]:
                files.flip_bit(name, 20)
            if left or segment_name(1) in snapshot(files):
                store = opened(files)
                assert store.damage == []
                assert sorted(store.names()) == sorted(["other", *(f"log {i}" for i in range(1, 12, 2))])
                await store.close()

    run(main())
