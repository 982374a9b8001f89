"""What a store finds after a kill: every durable entry, exactly once, whatever had been sealed or not."""

from __future__ import annotations

import pytest

from magnetar.model.errors import PersistenceError
from magnetar.storage.backends.journal_backend import index_name, segment_name
from tests.support.loop_turns import settled
from tests.support.store_lives import append, disk, killed, numbered, opened, read, run
from tests.support.whole_files import content


@pytest.mark.parametrize("count", range(1, 60))
def test_a_kill_at_any_distance_from_a_segment_border_loses_nothing(count: int) -> None:
    async def main() -> None:
        files = disk()
        store = opened(files)
        managed = store.open_log("a")
        wanted = numbered(0, count, 100)
        await append(store, managed, *wanted)
        files = await killed(store, files)
        store = opened(files)
        assert store.damage == []
        assert await read(store.open_log("a")) == wanted
        assert not [name for name in files.names() if name.startswith("quarantine")]

    run(main())


def test_files_that_are_not_ours_and_half_written_ones_do_not_disturb() -> None:
    async def main() -> None:
        files = disk()
        store = opened(files)
        await append(store, store.open_log("a"), *numbered(0, 40, 100))
        files = await killed(store, files)
        for name in ("segment-0000000000000001.bak", "checkpoint-0000000000000001-copy", "segment-x", "notes"):
            files.open(name, create=True).append([b"?"])
        for name in (f"{index_name(1)}.new", "checkpoint-0000000000000009.new"):
            files.open(name, create=True).append([b"half"])
        store = opened(files)
        assert store.damage == []
        assert await read(store.open_log("a")) == numbered(0, 40, 100)
        assert not [name for name in files.names() if name.endswith(".new")]
        assert "notes" in files.names()

    run(main())


def test_a_lost_index_is_made_anew_when_somebody_reads() -> None:
    async def main() -> None:
        files = disk()
        store = opened(files)
        await append(store, store.open_log("a"), *numbered(0, 40, 100))
        await store.close()
        before = content(files, index_name(2))
        files.remove(index_name(2))
        files.flip_bit(index_name(3), 30)
        store = opened(files)
        assert await read(store.open_log("a")) == numbered(0, 40, 100)
        assert content(files, index_name(2)) == before
        await store.close()

    run(main())


def test_a_gap_between_segments_that_must_be_replayed_is_refused() -> None:
    async def main() -> None:
        files = disk()
        store = opened(files)
        await append(store, store.open_log("a"), *numbered(0, 60, 100))
        files = await killed(store, files)
        for name in files.names():
            if name.startswith("checkpoint"):
                files.remove(name)
        files.rename(segment_name(3), "elsewhere")
        with pytest.raises(PersistenceError, match="segment-0000000000000003 is missing"):
            opened(files)
        files.rename("elsewhere", segment_name(3))
        assert await read(opened(files).open_log("a")) == numbered(0, 60, 100)

    run(main())


def test_a_ledger_known_only_to_the_checkpoint_does_not_disturb_positions() -> None:
    """The checkpoint saw a ledger that was opened after entries which the kill then prevented."""

    async def main() -> None:
        files = disk()
        store = opened(files)
        managed = store.open_log("a")
        await append(store, managed, *numbered(0, 5))
        for entry in numbered(5, 25):
            managed.append(entry, 1, None)  # opens ledgers at 10 and 20; nothing of it becomes durable
        await store.keeper.seal(store.journal.segment, store.journal.length, store.journal.sequence)
        files = files.reopened()
        await store.journal.drain()
        store = opened(files)
        managed = store.open_log("a")
        assert managed.end == 5
        await append(store, managed, *numbered(5, 8))
        ordinals = [ledger.ordinal for ledger in managed.table.ledgers]
        assert ordinals == sorted(ordinals)
        assert [managed.ordinal(managed.position(o)) for o in range(8)] == list(range(8))
        assert await read(managed) == numbered(0, 8)

    run(main())


def test_a_subscription_made_again_under_its_name_survives_a_replay_over_the_checkpoint() -> None:
    async def main() -> None:
        files = disk()
        store = opened(files)
        managed = store.open_log("a")
        await append(store, managed, *numbered(0, 3))
        managed.open_cursor("s", 0)
        await store.journal.drain()
        managed.delete_cursor("s")
        await store.journal.drain()
        managed.open_cursor("s", 2)
        await store.journal.drain()
        # what a slow keeper does: the checkpoint for an older border holds the state of now
        store.keeper._checkpoints = [-1]
        await store.keeper.seal(0, 0, 0)
        store = opened(await killed(store, files))
        assert store.damage == []
        assert store.open_log("a").cursors["s"].mark_delete == 1

    run(main())


def test_entries_of_a_log_whose_birth_was_damaged_are_kept_under_another_name() -> None:
    async def main() -> None:
        files = disk()
        store = opened(files)
        await append(store, store.open_log("other"), b"x")
        await append(store, store.open_log("a"), *numbered(0, 3))
        born = content(files, segment_name(1)).index(b'"name":"a"')
        files = await killed(store, files)
        files.flip_bit(segment_name(1), born)
        store = opened(files)
        assert any("kept as persistent://lost/found/log-2" in text for text in store.damage)
        kept = store._logs["persistent://lost/found/log-2"]
        assert await read(kept, 1) == numbered(1, 3)  # entry 0 was in the damaged block
        again = store.open_log("a")
        assert again.id > 2, "2 is the other's, and the damaged block may have given more"
        await append(store, again, *numbered(10, 40, 100))
        await store.close()
        store = opened(files)
        assert await read(store._logs["persistent://lost/found/log-2"], 1) == numbered(1, 3)
        assert await read(store._logs["a"]) == numbered(10, 40, 100)

    run(main())


def test_a_damaged_newest_checkpoint_costs_nothing_after_segments_were_removed() -> None:
    """Two are kept, and so is every segment that a replay from the older one needs."""

    async def main() -> None:
        files = disk()
        store = opened(files)
        managed = store.open_log("a")
        for start in range(0, 200, 10):
            await append(store, managed, *numbered(start, start + 10, 100))
            managed.open_ledger()
            managed.trim(managed.end)
            await settled()
            kept = sorted(name for name in files.names() if name.startswith("checkpoint"))
            assert len(kept) <= 2
        await append(store, managed, *numbered(200, 203, 100))
        first, wanted = managed.first, await read(managed, managed.first)
        assert first > 100
        files = await killed(store, files)
        checkpoints = sorted(name for name in files.names() if name.startswith("checkpoint"))
        assert len(checkpoints) == 2
        newest = files.open(checkpoints[-1])
        for offset in range(0, newest.size(), 7):
            files.flip_bit(checkpoints[-1], offset)
        store = opened(files)
        again = store.open_log("a")
        assert await read(again, again.first) == wanted

    run(main())


def test_a_log_whose_birth_was_damaged_has_its_name_again_when_a_later_record_says_it() -> None:
    async def main() -> None:
        files = disk()
        store = opened(files)
        await append(store, store.open_log("other"), b"x")
        managed = store.open_log("a")
        await append(store, managed, *numbered(0, 3))
        managed.properties = {"k": "v"}
        managed.write_birth()
        await store.journal.drain()
        born = content(files, segment_name(1)).index(b'"name":"a"')
        files = await killed(store, files)
        files.flip_bit(segment_name(1), born)
        store = opened(files)
        found = store._logs["a"]
        assert found.properties == {"k": "v"}
        assert await read(found, 1) == numbered(1, 3)
        assert not [name for name in store._logs if "lost/found" in name]
        assert not [text for text in store.damage if "says the name" in text]

    run(main())
