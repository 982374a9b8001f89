"""Moving what lives out of mostly dead segments: what comes back, what stays, what a start and a reader find."""

from __future__ import annotations

import asyncio
import logging
import random
from dataclasses import replace

import pytest

from magnetar.model.errors import PersistenceError
from magnetar.storage.backends.file_names import segment_numbers
from magnetar.storage.backends.journal_backend import segment_name
from magnetar.storage.log.segment import ExtentOffsets, Span
from magnetar.storage.space import segment_cleaner
from magnetar.storage.space.extent_mover import MovingPace
from magnetar.storage.space.occupancy import Occupancy
from magnetar.storage.verify import verify
from tests.support.simulated_store import Disk, publish, read_all, simulated, used_bytes
from tests.support.sparse_segments import (
    LIVING,
    SMALL,
    check,
    complete_segment,
    copy_of_disk,
    emptied,
    filled,
    living_of,
    passes,
    roll,
    small,
    used,
)


@simulated
async def test_few_living_messages_keep_nothing_else_on_an_idle_broker(disk: Disk) -> None:
    store = small(disk).open()
    await filled(store)
    before = used(disk.files)
    await passes(store)
    assert before > 10 * SMALL.segment_bytes / 2
    assert used(disk.files) < SMALL.segment_bytes / 2, disk.files.names()
    await check(store)
    assert store.cleaner.moved_bytes < 1000
    await store.close()
    assert verify(disk.files).damage == []
    for end in (disk.kill, disk.power_off):
        end()
        store = disk.open()
        assert store.damage == []
        await check(store)


@simulated
async def test_an_idle_broker_that_was_started_anew_gives_space_back_too(disk: Disk) -> None:
    store = small(disk).open()
    await filled(store)
    await store.close()
    disk.kill()
    store = disk.open()
    await passes(store, 16)
    assert used(disk.files) < SMALL.segment_bytes / 2, disk.files.names()
    await check(store)


@simulated
async def test_without_a_rate_nothing_is_moved(disk: Disk) -> None:
    small(disk).settings = replace(SMALL, reclaim_bytes_per_second=0)
    store = disk.open()
    await filled(store)
    await passes(store)
    assert store.cleaner.moved_bytes == 0
    assert used(disk.files) > SMALL.segment_bytes
    await check(store)


@simulated
async def test_a_pass_ends_though_segments_are_so_small_that_moving_does_not_help(disk: Disk) -> None:
    disk.settings = replace(SMALL, segment_bytes=100)
    store = disk.open()
    log = store.open_log("t")
    for i in range(60):
        await publish(store, log, i, i + 1)
        await asyncio.sleep(1)
    await asyncio.wait_for(store.cleaner.run(), 3600)
    assert store.cleaner.moved_bytes
    assert await read_all(log) == [b"entry %d" % i for i in range(60)]
    await store.close()


@simulated
async def test_a_pass_that_can_move_nothing_more_looks_again_once_a_second(disk: Disk) -> None:
    """What is too much may be freed by others; asking without a pause would take the processor from them."""
    store = small(disk).open()
    await filled(store)
    await passes(store)
    cleaner, looks = store.cleaner, []
    measure = cleaner._keeper.measure

    async def counted() -> list[int]:
        looks.append(asyncio.get_running_loop().time())
        assert len(looks) < 50
        return await measure()

    cleaner._urgent, cleaner._keeper.measure = lambda: True, counted  # type: ignore[method-assign]
    running = asyncio.ensure_future(cleaner.run())
    await asyncio.sleep(10.5)
    assert not running.done() and 9 <= len(looks) <= 11
    cleaner._urgent = lambda: False  # type: ignore[method-assign]
    await asyncio.wait_for(running, 5)
    await store.close()


@simulated
async def test_the_rate_is_kept(disk: Disk) -> None:
    small(disk).settings = replace(SMALL, reclaim_bytes_per_second=10)
    store = disk.open()
    await filled(store)
    loop = asyncio.get_running_loop()
    begun = loop.time()
    await store.cleaner.run()
    await store.cleaner.run()
    assert store.cleaner.moved_bytes > 100
    assert loop.time() - begun >= store.cleaner.moved_bytes / 10


@simulated
async def test_while_too_much_is_there_moving_follows_what_others_write(disk: Disk) -> None:
    """Also what they write while moving pauses for its rate: otherwise they fill the disk faster than it is emptied."""
    disk.settings = replace(SMALL, reclaim_bytes_per_second=10)
    store = disk.open()
    loop, urgent = asyncio.get_running_loop(), True
    pace = MovingPace(store.journal, 10, lambda: urgent)
    pace.begin()
    begun = loop.time()
    pause = asyncio.ensure_future(pace.wait(1000))
    while not pause.done():
        store.journal.bytes_written += 100
        await asyncio.sleep(0.1)
    assert 0.8 <= loop.time() - begun <= 1.2, "at 1,000 bytes a second of others, and ten of its own"
    pace.begin()
    urgent, pace._owed, begun = False, 0.0, loop.time()
    await pace.wait(100)
    assert loop.time() - begun == pytest.approx(10.0, abs=0.01)
    await store.close()


@simulated
async def test_what_was_not_moved_is_caught_up_with_but_not_all_of_it(disk: Disk) -> None:
    """Others write in bursts; an hour without anything to move is no credit for a gigabyte."""
    store = disk.open()
    loop = asyncio.get_running_loop()
    pace = MovingPace(store.journal, 1 << 20, lambda: True)
    pace.begin()
    store.journal.bytes_written += 3 << 20
    begun = loop.time()
    for _ in range(3):
        await pace.wait(1 << 20)
    assert loop.time() == begun
    assert not pace.behind()
    await asyncio.sleep(3600)
    begun = loop.time()
    await pace.wait(0)
    assert pace.behind(), "then slices are larger"
    for _ in range(6):
        await pace.wait(1 << 20)
    assert loop.time() - begun == pytest.approx(2.0, abs=0.02), "four of six are on credit"
    await pace.wait(5 << 20)
    owed = loop.time()
    pace.begin()
    await pace.wait(1 << 20)
    assert loop.time() - owed == pytest.approx(1.0, abs=0.02)
    await store.close()


@simulated
async def test_a_segment_goes_only_when_both_checkpoints_know_of_the_move(disk: Disk) -> None:
    """Either checkpoint may turn out damaged; nothing may be missing then."""
    store = small(disk).open()
    await filled(store)
    seen = 0
    for _ in range(12):
        await store.cleaner.run()
        await asyncio.sleep(12)
        for kept in (0, 1):
            names = [name for name in disk.files.names() if name.startswith("checkpoint-")]
            copy = Disk(SMALL)
            copy.files = copy_of_disk(disk.files)
            if len(names) == 2 and kept == 0:
                copy.files.flip_bit(names[1], 100)
            again = copy.open()
            assert [text for text in again.damage if "missing" in text] == []
            await check(again)
            seen += 1
    assert seen == 24


def test_a_segment_goes_when_checkpoints_know_of_everything_that_left_it() -> None:
    occupancy = Occupancy()
    span = Span(1, 3, 1, 0, 9, 90)
    occupancy.added(span)
    assert not occupancy.removable(3, 9), "something lives in it"
    occupancy.moved(3, 7, 60)
    occupancy.moved(3, 8, 30)
    occupancy.moved(3, 7, 0)
    occupancy.dropped(span)
    assert [occupancy.removable(3, border) for border in (2, 3, 7, 8, 9)] == [False, False, False, True, True]
    occupancy.sizes[3] = 100
    assert (occupancy.copied, occupancy.waiting([3], 7), occupancy.waiting([3], 8)) == (90, 100, 0)
    occupancy.removed(3)
    assert (occupancy.copied, occupancy.sizes) == (0, {})
    occupancy.moved(4, 9, 50)
    occupancy.stays(4)
    assert occupancy.copied == 0


@simulated
async def test_a_segment_that_cannot_be_read_is_named_once(disk: Disk) -> None:
    store = small(disk).open()
    quiet, _ = await filled(store)
    await roll(store)
    span = next(iter(quiet[1].spans))
    places = store._reader.places(span)
    disk.files.flip_bit(segment_name(span.segment), places.offsets[0] + places.lengths[0] - 2)
    logged: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: logged.append(record.getMessage())  # type: ignore[method-assign]
    logger = logging.getLogger("magnetar.storage.space.segment_cleaner")
    logger.addHandler(handler)
    try:
        await passes(store)
    finally:
        logger.removeHandler(handler)
    assert [text for text in logged if "stays as it is" in text] == [
        text for text in logged if segment_name(span.segment) in text
    ]
    assert len([text for text in logged if "stays as it is" in text]) == 1


@simulated
async def test_a_hole_in_what_a_span_promises_is_not_moved_over(disk: Disk) -> None:
    """What was damaged before the newest start: the entries before it and after it stay where they are."""
    store, log = await complete_segment(disk, 6)
    span = next(iter(log.spans))
    places = store._reader.places(span)
    for where in (places.find(2), places.find(5)):
        short = ExtentOffsets()
        for i in range(len(places.firsts)):
            if i != where:
                short.add(places.firsts[i], places.offsets[i], places.lengths[i])
        span.places = short
        with pytest.raises(PersistenceError, match="is missing"):
            await living_of(store, span)
    span.places = None
    assert len(await living_of(store, span)) == 6


@simulated
async def test_what_cannot_be_read_is_not_moved_and_its_segment_stays(disk: Disk) -> None:
    store = small(disk).open()
    quiet, _ = await filled(store)
    await roll(store)
    span = next(iter(quiet[1].spans))
    places = store._reader.places(span)
    disk.files.flip_bit(segment_name(span.segment), places.offsets[0] + places.lengths[0] - 2)
    await passes(store)
    assert [n for n in segment_numbers(disk.files.names()) if n == span.segment]
    assert used(disk.files) < 2 * SMALL.segment_bytes, "all others are gone"
    for i in (0, 2, 3):
        assert await read_all(quiet[i]) == [LIVING[i]]
    with pytest.raises(PersistenceError):
        await read_all(quiet[1])


@simulated
async def test_a_disk_that_refuses_a_move_costs_nothing_and_is_left_alone_for_a_while(disk: Disk) -> None:
    store = small(disk).open()
    await filled(store)
    await roll(store)
    disk.files.faults.capacity_bytes = used(disk.files) + 2000
    for name in ("append", "sync"):
        disk.files.fail(name, times=1)
        await store.cleaner.run()
        moved = store.cleaner.moved_bytes
        await store.cleaner.run()
        assert store.cleaner.moved_bytes == moved, "not at once again"
        await check(store)
        await asyncio.sleep(61)
    disk.files.faults.capacity_bytes = None
    await asyncio.sleep(61)  # the store sees within a second that there is room
    await passes(store)
    assert used(disk.files) < SMALL.segment_bytes / 2
    await check(store)


@simulated
async def test_a_full_disk_is_emptied_of_what_is_dead_although_the_checkpoint_of_the_start_was_refused(
    disk: Disk,
) -> None:
    """No checkpoint covers the segments that the start read, so their sizes are not known: they count nevertheless."""
    disk.settings = replace(SMALL, segment_bytes=100_000, reserve_bytes=2000)
    store = disk.open()
    await publish(store, store.open_log("a"), 0, 200)
    disk.kill()
    disk.files.remove("reserve")
    disk.files.fail("append", times=2)  # neither the checkpoint of the start nor the reserve
    store = disk.open()
    large = disk.files.open(segment_name(1)).size()
    disk.files.faults.capacity_bytes = used_bytes(disk.files) + 1000
    assert store.journal.full is not None
    assert store.keeper.covered()[1] == 0
    store.delete_log("a")
    for _ in range(200):
        await asyncio.sleep(1)
        if store.journal.full is None:
            break
    assert store.journal.full is None, "publishing goes on by itself"
    assert used(disk.files) < large
    await store.close()
    assert verify(disk.files).damage == []


@simulated
async def test_in_the_weaker_mode_only_what_is_synced_replaces_old_entries(disk: Disk) -> None:
    """A power loss with journalSyncData=false may take what is young, never what had been on disk for long."""
    small(disk).settings = replace(SMALL, sync_data=False)
    store = disk.open()
    log = store.open_log("a")
    await publish(store, log, 0, 30)
    await roll(store)
    await roll(store)
    disk.power_off()
    store = disk.open()
    log = store.open_log("a")
    await roll(store)
    number = next(iter(log.spans)).segment
    await emptied(store, number)
    for _ in range(3):
        await roll(store)
    await store.keeper.remove_dead()
    assert segment_name(number) not in disk.files.names()
    disk.power_off()
    store = disk.open()
    assert store.damage == []
    assert await read_all(store.open_log("a")) == [b"entry %d" % i for i in range(30)]


@simulated
async def test_a_trim_that_only_a_checkpoint_knew_of_is_carried_out_by_the_next_start(disk: Disk) -> None:
    store = small(disk).open()
    log = store.open_log("a")
    await publish(store, log, 0, 30)
    log.open_ledger()
    await publish(store, log, 30, 31)
    disk.files.fail("append", times=1)
    log.trim(30)
    await asyncio.sleep(0.5)
    assert log.first == 30
    assert log.spans.holding(0) is not None, "not before it is durable"
    await store.keeper.seal(store.journal.segment, store.journal.length, store.journal.sequence)
    disk.kill()
    store = disk.open()
    log = store.open_log("a")
    await store.journal.drain()
    assert (log.first, log.end) == (30, 31)
    assert [span.first for span in log.spans] == [30]


def test_spans_of_a_hundred_thousand_topics_are_sorted_a_few_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The loop turns in between: what is sorted at once is counted, not timed."""
    monkeypatch.setattr(segment_cleaner, "_SORTED_AT_ONCE", 50)
    rng = random.Random(7)
    spans = [Span(rng.randrange(100), 1, 1, first, first + 1, 10) for first in rng.sample(range(5000), 1030)]
    since_turn, most = 0, 0

    def place(span: Span) -> tuple[int, int]:
        nonlocal since_turn, most
        since_turn += 1
        most = max(most, since_turn)
        return span.log, span.first

    def turned() -> None:
        nonlocal since_turn
        since_turn = 0
        asyncio.get_running_loop().call_soon(turned)

    monkeypatch.setattr(segment_cleaner, "_place", place)

    async def sort() -> list[Span]:
        turned()
        return [span async for span in segment_cleaner._in_order(spans)]

    ordered = asyncio.run(sort())
    assert ordered == sorted(spans, key=lambda span: (span.log, span.first))
    assert most <= 150
