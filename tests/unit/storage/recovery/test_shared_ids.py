"""Two cursors of one id, and two logs of one name: what very old versions and lost blocks leave, kept and parted."""

from __future__ import annotations

from pathlib import Path

import pytest

from magnetar.storage.backends.files import write_atomically
from magnetar.storage.log import checkpoint, cursor_records, log_image, records
from magnetar.storage.verify import verify
from magnetar.testing.faultfiles import FaultFileSystem
from tests.support.loop_turns import settled
from tests.support.store_lives import append, disk, numbered, opened, read, run

A, B = "persistent://public/default/a", "persistent://public/default/b"


def with_one_id(files: FaultFileSystem, *, log: str) -> FaultFileSystem:
    """Have two subscriptions with one id in the newest checkpoint: both of ``log``, or of two logs."""
    name = max(name for name in files.names() if name.startswith("checkpoint-"))
    file = files.open(name)
    head, logs = checkpoint.decode(file.read(0, file.size()))
    blobs = []
    for one in logs:
        cursors = [cursor._replace(state=cursor.state._replace(cursor=1)) for cursor in one.cursors]
        if log:
            cursors = cursors if one.about["name"] == log else []
        bodies = [cursor_records.cursor_record(c.name, c.properties, c.state) for c in cursors]
        blobs.append(log_image.encode(one.about, bodies, one.feature_states))
    write_atomically(files, name, checkpoint.encode(head, blobs))
    return files


async def stopped(*, names: tuple[str, ...]) -> FaultFileSystem:
    files = disk()
    store = opened(files)
    for log in (A, B):
        managed = store.open_log(log)
        await append(store, managed, *numbered(0, 9))
        for i, name in enumerate(names):
            managed.open_cursor(name, 0).acknowledge_until(i)
    await settled()
    await store.close()
    return files


def test_cursors_of_two_logs_keep_an_id_that_both_have() -> None:
    async def main() -> None:
        files = with_one_id(await stopped(names=("s",)), log="")
        assert verify(files).damage == []
        store = opened(files)
        assert store.damage == []
        assert not [name for name in files.names() if name.startswith("quarantine-")]
        for name, mark in ((A, 3), (B, 5)):
            store.open_log(name).cursors["s"].acknowledge_until(mark)
        await store.journal.drain()
        store = opened(files.reopened())
        assert [store.open_log(name).cursors["s"].mark_delete for name in (A, B)] == [3, 5]
        store.open_log(A).delete_cursor("s")
        await store.journal.drain()
        files = store._backend._files.reopened()  # type: ignore[attr-defined]
        store = opened(files)
        assert [list(store.open_log(name).cursors) for name in (A, B)] == [[], ["s"]]
        await store.close()

    run(main())


def test_cursors_of_one_log_get_ids_of_their_own(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        files = with_one_id(await stopped(names=("s", "u")), log=A)
        store = opened(files)
        assert any("s and u had one id" in text for text in caplog.messages)
        managed = store.open_log(A)
        assert [managed.cursors[name].mark_delete for name in ("s", "u")] == [0, 1]
        assert managed.cursors["s"].id != managed.cursors["u"].id
        managed.cursors["s"].acknowledge_until(4)
        managed.cursors["u"].acknowledge_until(6)
        await store.journal.drain()
        store = opened(files := files.reopened())
        managed = store.open_log(A)
        assert [managed.cursors[name].mark_delete for name in ("s", "u")] == [4, 6]
        managed.delete_cursor("u")
        await store.journal.drain()
        store = opened(files := files.reopened())
        assert list(store.open_log(A).cursors) == ["s"]
        await store.close()
        caplog.clear()
        store = opened(files)
        assert list(store.open_log(A).cursors) == ["s"]
        assert not [text for text in caplog.messages if "had one id" in text]
        await store.close()

    run(main())


def test_what_the_log_says_of_a_shared_id_counts_for_none() -> None:
    """An acknowledgement that went to the wrong one would be a message that is never delivered."""

    async def main() -> None:
        files = with_one_id(await stopped(names=("s", "u")), log=A)
        store = opened(files)
        managed = store.open_log(A)
        store.journal.add_record(cursor_records.mark_delete_record(managed.id, 1, 8))
        gone = records.json_record(records.RecordKind.CURSOR_DELETED, log=managed.id, cursor=1)
        store.journal.add_record(gone)
        await store.journal.drain()
        store = opened(files.reopened())
        assert {name: one.mark_delete for name, one in store.open_log(A).cursors.items()} == {"s": 0, "u": 1}
        await store.close()

    run(main())


def test_a_log_whose_deletion_is_lost_is_kept_beside_the_one_that_was_made_again(tmp_path: Path) -> None:
    async def main() -> None:
        files = await stopped(names=())
        store = opened(files)
        second = store.open_log("made again")
        await append(store, second, b"new")
        second.name = A  # what a log says of which the block with the deletion is unreadable
        second.write_birth()
        await store.journal.drain()
        files = files.reopened()
        for name in files.names():
            if name.startswith("checkpoint-"):
                files.remove(name)
        first = next(name for name in files.names() if name.startswith("segment-") and "." not in name)
        file = files.open(first)
        data = file.read(0, file.size())
        assert data.count(b'"made again"') == 0
        newest = max(name for name in files.names() if name.startswith("segment-") and "." not in name)
        file = files.open(newest)
        data = file.read(0, file.size())
        files.flip_bit(newest, data.index(b'"made again"'))
        store = opened(files)
        kept = "persistent://lost/found/log-1"
        assert any(f"two logs are called {A}; the older one is kept as {kept}" in text for text in store.damage)
        assert await read(store.open_log(kept)) == numbered(0, 9)
        await store.close()
        assert opened(files).damage == []

    run(main())
