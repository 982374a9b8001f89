"""Logs that are deleted while something of them is still on its way to the disk, and a start after that."""

from __future__ import annotations

import pytest

from magnetar.storage.backends.journal_backend import segment_name
from magnetar.storage.store import LedgerStore
from magnetar.storage.verify import verify
from tests.support.directory_image import snapshot
from tests.support.loop_turns import settled
from tests.support.store_lives import append, disk, killed, numbered, opened, read, run


def names(store: LedgerStore) -> list[str]:
    return sorted(store.names())


def test_entries_that_came_with_the_deletion_of_their_log_are_not_found_again_after_damage() -> None:
    """Records stand before the entries of their block."""

    async def main() -> None:
        files = disk()
        store = opened(files)
        await append(store, store.open_log("damaged"), b"whole", b"hurt")
        managed = store.open_log("a")
        await append(store, managed, b"there")
        managed.append(b"refused", 1, None)
        store.delete_log("a")
        await store.journal.drain()
        files = await killed(store, files)
        files.flip_bit(segment_name(1), snapshot(files)[segment_name(1)].index(b"hurt"))
        store = opened(files)
        assert store.damage
        assert names(store) == ["damaged"]
        await store.close()

    run(main())


@pytest.mark.parametrize("again", [False, True])
def test_a_deletion_that_only_the_checkpoint_knows_is_carried_out(again: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The topic was made again under its name, and the kill came before the log said either.

    Checkpoints of before 28 November 2026 name logs whose birth is not durable.
    """

    async def main() -> None:
        files = disk()
        store = opened(files)
        monkeypatch.setattr(store, "durable_logs", lambda: list(store.logs()))
        async with store.keeper.no_checkpoint():  # that of the first segment comes late
            other = store.open_log("other")
            while store.journal.segment < 2:
                await append(store, other, *numbered(0, 1, 100))
            await append(store, store.open_log("a"), *numbered(0, 3))
            with monkeypatch.context() as patched:
                patched.setattr(store.journal, "_flush", lambda: None)  # the disk takes its time
                store.delete_log("a")
                store.open_log("a")
        await settled()
        files = files.reopened()
        store = opened(files)
        if again:  # from the checkpoint of that start
            files = await killed(store, files)
            store = opened(files)
        assert store.damage == []
        assert names(store) == ["a", "other"]
        managed = store.open_log("a")
        assert await read(managed) == []
        await append(store, managed, b"new")
        files = await killed(store, files)
        assert verify(files).damage == []
        store = opened(files)
        assert await read(store.open_log("a")) == [b"new"]
        await store.close()

    run(main())


def test_a_deletion_that_did_not_become_durable_leaves_the_topic_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    """It was made again under its name; no record and no checkpoint knows of either."""

    async def main() -> None:
        files = disk()
        store = opened(files)
        async with store.keeper.no_checkpoint():  # that of the first segment comes late
            other = store.open_log("other")
            while store.journal.segment < 2:
                await append(store, other, *numbered(0, 1, 100))
            await append(store, store.open_log("a"), *numbered(0, 3))
            with monkeypatch.context() as patched:
                patched.setattr(store.journal, "_flush", lambda: None)  # the disk takes its time
                store.delete_log("a")
                store.open_log("a")
        await settled()
        files = files.reopened()
        store = opened(files)
        assert store.damage == []
        assert names(store) == ["a", "other"]
        assert await read(store.open_log("a")) == numbered(0, 3)
        await store.close()

    run(main())
