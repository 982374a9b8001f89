"""Regressions of start-up and journal on the simulated disk: each is a bug that a simulation found."""

from __future__ import annotations

import asyncio

import pytest

from magnetar.model.errors import PersistenceError
from magnetar.storage.backends.journal_backend import segment_name
from tests.support.directory_image import snapshot
from tests.support.simulated_store import Disk, publish, read_all, simulated


@simulated
async def test_the_first_block_behind_a_checkpoint_is_replayed(disk: Disk) -> None:
    """A checkpoint once named a sequence that was too high, and the replay left a block out."""
    store = disk.open()
    log = store.open_log("a")
    await publish(store, log, 0, 40)
    disk.kill()
    store = disk.open()
    assert store.damage == []
    log = store.open_log("a")
    await store.journal.drain()
    assert await read_all(log) == [b"entry %d" % i for i in range(40)]


@simulated
async def test_what_recovery_found_in_the_page_cache_is_made_durable(disk: Disk) -> None:
    """After kill -9 between write and sync, a start, and a power loss, the checkpoint of the start counted entries that
    were never synced (tests/sim/test_durability.py)."""
    for _ in range(8):
        store = disk.open()
        log = store.open_log("a")
        log.append(b"x" * 700, 1, None)
        await asyncio.sleep(0)
        disk.files.stop_after(3, lambda: None)
        await asyncio.sleep(1)
        disk.kill()
        store = disk.open()
        end = store.open_log("a").end
        disk.power_off()
        store = disk.open()
        log = store.open_log("a")
        assert log.end == end
        assert await read_all(log) == [b"x" * 700] * end
        await store.close()


@simulated
async def test_a_topic_whose_birth_met_a_full_disk_survives_with_what_came_later(disk: Disk) -> None:
    """The record of a log's birth was lost with its group: a restart dropped the log and everything in it."""
    store = disk.open()
    disk.files.faults.capacity_bytes = 0
    answers: list[str] = []
    log = store.open_log("a", lambda: answers.append("born"), lambda error: answers.append(str(error)))
    cursor = log.open_cursor("s", 0, done=lambda: answers.append("cursor"))
    await asyncio.sleep(0.5)
    assert len(answers) == 1, answers
    assert "nothing of it was accepted" in answers[0]
    disk.files.faults.capacity_bytes = None
    await asyncio.sleep(2)
    assert answers[1:] == ["cursor"]
    await publish(store, log, 0, 5)
    cursor.acknowledge((1,))
    await store.journal.drain()
    disk.power_off()
    store = disk.open()
    assert store.names() == ["a"]
    log = store.open_log("a")
    assert await read_all(log) == [b"entry %d" % i for i in range(5)]
    assert [o for o in range(5) if log.cursors["s"].acknowledged(o)] == [1]


@simulated
async def test_a_ledger_that_could_not_be_written_takes_no_entries(disk: Disk) -> None:
    """The failure of its record was reported to no one: the next start stopped at entries of an unknown ledger."""
    store = disk.open()
    log = store.open_log("a")
    await publish(store, log, 0, 3)
    disk.files.fail("append")
    void = log.open_ledger()
    await asyncio.sleep(0.5)
    for i in (3, 4):
        log.append(b"entry %d" % i, 1, None)
        await asyncio.sleep(0.5)
    assert log.position(4).ledger > void.id
    disk.kill()
    store = disk.open()
    assert await read_all(store.open_log("a")) == [b"entry %d" % i for i in range(5)]


@simulated
async def test_a_deletion_that_met_a_full_disk_is_durable_once_it_is_answered(disk: Disk) -> None:
    """The record was dropped with its group, the answer was given with the next one."""
    store = disk.open()
    log, other = store.open_log("a"), store.open_log("b")
    log.open_cursor("s", 0)
    await publish(store, log, 0, 3)
    disk.files.fail("append", times=2)
    answers: list[str] = []
    log.delete_cursor("s", lambda: answers.append("cursor"))
    both = asyncio.Event()
    store.delete_log(other.name, both.set)
    await both.wait()
    assert answers == ["cursor"]
    disk.power_off()
    store = disk.open()
    assert store.names() == ["a"]
    assert store.open_log("a").cursors == {}


@simulated
async def test_a_changed_cursor_that_is_deleted_does_not_come_back(disk: Disk) -> None:
    """A seek and an unsubscribe in one group: the cursor's state was written after its deletion."""
    store = disk.open()
    log = store.open_log("a")
    cursor = log.open_cursor("s", 0)
    await publish(store, log, 0, 3)
    cursor.reset(1)
    log.delete_cursor("s")
    cursor.reset(2)
    await store.journal.drain()
    disk.kill()
    assert disk.open().open_log("a").cursors == {}


@simulated
async def test_a_subscription_made_again_under_its_name_survives_an_older_one_in_the_log(disk: Disk) -> None:
    """The checkpoint knew the new cursor already; replaying the old one's deletion took it away."""
    store = disk.open()
    log = store.open_log("a")
    async with store.keeper._one:  # the checkpoint is slow
        await publish(store, log, 0, 12)
        assert store.journal.segment > 1
        for _ in range(2):
            log.open_cursor("s", 0)
            await store.journal.drain()
            log.delete_cursor("s")
            await store.journal.drain()
        log.open_cursor("s", 5)
        await store.journal.drain()
    await asyncio.sleep(1)
    disk.kill()
    log = disk.open().open_log("a")
    assert log.cursors["s"].mark_delete == 4


@simulated
async def test_acknowledgments_behind_the_end_do_not_swallow_new_entries(disk: Disk) -> None:
    """Entries that are lost to damage give their ordinals to new ones, which no one has acknowledged."""
    store = disk.open()
    log = store.open_log("a")
    cursor = log.open_cursor("s", 0)
    await publish(store, log, 0, 6)
    cursor.acknowledge((0, 2, 4, 5))
    log.end = 4
    cursor.settle()
    assert list(cursor.acked.ranges()) == [(2, 3)]
    assert cursor.next_unacknowledged(3) == 3
    cursor.acked.check()


@simulated
async def test_a_cursor_without_a_journal_keeps_no_list_of_acknowledgments(disk: Disk) -> None:
    """It grew by one number per acknowledgment for ever."""
    store = disk.open()
    log = store.open_log("a")
    cursor = log.open_cursor("reader", 0, durable=False)
    await publish(store, log, 0, 6)
    cursor.acknowledge((0, 1, 2))
    assert cursor._fresh == []


@simulated
async def test_a_damaged_checkpoint_can_be_done_without_after_a_trim(disk: Disk) -> None:
    """After a start that scanned nothing, segments were removed that the older checkpoint on disk still needs."""
    store = disk.open()
    log = store.open_log("a")
    await publish(store, log, 0, 30)
    await store.close()
    disk.kill()
    store = disk.open()
    log = store.open_log("a")
    await publish(store, log, 30, 60)
    await store.close()
    disk.kill()
    store = disk.open()  # from the newest checkpoint; the one before it reaches half as far
    log = store.open_log("a")
    log.trim(log.end)
    await store.journal.drain()
    await store.keeper.remove_dead()
    disk.kill()
    newest = max(name for name in disk.files.names() if name.startswith("checkpoint-"))
    disk.files.flip_bit(newest, 20)
    store = disk.open()
    log = store.open_log("a")
    assert (log.first, log.end) == (60, 60)
    assert [name for name in disk.files.names() if name.startswith("quarantine-checkpoint-")]


@simulated
async def test_a_start_that_is_refused_for_a_missing_segment_renames_no_damaged_checkpoint(disk: Disk) -> None:
    """Whoever puts the segment back, or the checkpoint, finds everything under its name."""
    store = disk.open()
    await publish(store, store.open_log("a"), 0, 60)
    await store.close()
    disk.kill()
    damaged = sorted(name for name in disk.files.names() if name.startswith("checkpoint-"))
    for name in damaged:
        disk.files.flip_bit(name, 20)
    disk.files.remove(segment_name(1))
    before = [name for name in disk.files.names() if name != "LOCK"]
    with pytest.raises(PersistenceError, match=f"Restore {damaged[1]}, {damaged[0]} or the directory"):
        disk.open()
    assert [name for name in disk.files.names() if name != "LOCK"] == before
    disk.files.flip_bit(damaged[1], 20)  # somebody had a good copy of it
    assert disk.open().find_log("a") is not None


@simulated
async def test_a_segment_that_was_sealed_on_a_full_disk_is_indexed_later(disk: Disk) -> None:
    """The seal failed for good, and closing the store with it."""
    store = disk.open()
    log = store.open_log("a")
    await publish(store, log, 0, 9)
    disk.files.fail("rename", times=2)
    await publish(store, log, 9, 40)
    await asyncio.sleep(1)
    sealed = [n for n in store._backend.segments() if n < store.journal.segment]
    assert len(sealed) > 3
    assert {f"segment-{n:016x}.index" for n in sealed} <= set(disk.files.names())
    disk.files.fail("rename", times=100)
    await store.close()
    disk.kill()
    assert await read_all(disk.open().open_log("a")) == [b"entry %d" % i for i in range(40)]


@simulated
async def test_the_counter_of_written_bytes_never_goes_back(disk: Disk) -> None:
    """It lost the length of a segment with every new one."""
    store = disk.open()
    log = store.open_log("a")
    seen = 0
    for i in range(40):
        await publish(store, log, i, i + 1)
        assert store.journal.bytes_written > seen
        seen = store.journal.bytes_written


@simulated
async def test_what_a_failed_sync_refused_is_not_found_again(disk: Disk) -> None:
    """It was still in the page cache: a start took it for durable, a power loss then took it away from under others."""
    store = disk.open()
    log = store.open_log("a")
    await publish(store, log, 0, 3)
    disk.files.fail("sync")
    log.append(b"refused", 1, None)
    await asyncio.sleep(0.5)
    assert log.end == 3
    disk.kill()
    store = disk.open()
    log = store.open_log("a")
    assert log.end == 3
    await publish(store, log, 3, 5)
    disk.power_off()
    store = disk.open()
    assert store.damage == []
    log = store.open_log("a")
    assert await read_all(log) == [b"entry %d" % i for i in range(5)]


@simulated
async def test_what_a_failed_sync_of_a_new_segment_refused_is_not_found_again(disk: Disk) -> None:
    """The new segment was once left as it was until the next write (tests/sim/test_deduplication.py)."""
    store = disk.open()
    log = store.open_log("a")
    await publish(store, log, 0, 3)
    disk.kill()
    store = disk.open()
    log = store.open_log("a")
    disk.files.fail("sync")
    log.append(b"refused", 1, None)
    await asyncio.sleep(0.5)
    assert log.end == 3
    disk.kill()
    store = disk.open()
    log = store.open_log("a")
    assert log.end == 3
    await publish(store, log, 3, 5)
    disk.power_off()
    store = disk.open()
    assert store.damage == []
    assert await read_all(store.open_log("a")) == [b"entry %d" % i for i in range(5)]


@simulated
async def test_a_store_that_closes_on_a_failing_disk_is_closed(disk: Disk) -> None:
    """The next try to write was still on its way, and met executors that were gone."""
    store = disk.open()
    log = store.open_log("a")
    await publish(store, log, 0, 3)
    cursor = log.open_cursor("s", 0)
    disk.files.fail("append", times=100)
    cursor.acknowledge((0,))
    await asyncio.sleep(0.5)
    await store.close()
    await asyncio.sleep(5)


@simulated
async def test_a_store_that_closes_while_a_write_is_in_doubt_leaves_no_checkpoint(disk: Disk) -> None:
    """What its last group left in the file is for the next start to judge."""
    store = disk.open()
    log = store.open_log("a")
    await publish(store, log, 0, 3)
    disk.files.fail("sync", times=2)
    log.append(b"refused", 1, None)
    log.open_cursor("s", 0)
    for _ in range(1000):
        await asyncio.sleep(0.001)
        if store.journal.failing is not None:
            break
    before = set(disk.files.names())
    await store.close()
    assert store.journal.failing is not None
    assert {name for name in set(disk.files.names()) - before if "checkpoint" in name or "index" in name} == set()
    disk.kill()
    store = disk.open()
    assert store.damage == []
    assert await read_all(store.open_log("a")) == [b"entry %d" % i for i in range(3)]
    await store.close()


@simulated
async def test_a_store_that_wrote_nothing_leaves_its_directory_as_it_was(disk: Disk) -> None:
    for count in (0, 3):
        store = disk.open()
        if count:
            await publish(store, store.open_log("a"), 0, count)
        await store.close()
        before = snapshot(disk.files)
        for _ in range(2):
            store = disk.open()
            await store.close()
            assert snapshot(disk.files) == before


@simulated
async def test_what_the_only_checkpoint_covers_stays_until_there_is_another_one(disk: Disk) -> None:
    """Though nothing in it is needed: a start without that checkpoint replays it."""
    store = disk.open()
    await publish(store, store.open_log("a"), 0, 2)
    await store.close()
    disk.kill()
    store = disk.open()
    store.delete_log("a")
    await store.journal.drain()
    assert await store.keeper.remove_dead() == []
    disk.kill()
    (only,) = [name for name in disk.files.names() if name.startswith("checkpoint-")]
    disk.files.flip_bit(only, 20)
    store = disk.open()
    assert list(store.names()) == []
    await store.close()
