"""Moving what lives out of mostly dead segments: what comes back, what stays, what a start and a reader find."""

from __future__ import annotations

import asyncio
import logging
import random
from dataclasses import replace

import pytest

from magnetar.model.errors import PersistenceError
from magnetar.storage.backends.file_names import segment_numbers
from magnetar.storage.backends.journal_backend import index_name, segment_name
from magnetar.storage.backends.local_journal import LocalJournal
from magnetar.storage.ledgers.archive import Offload
from magnetar.storage.ledgers.entry_cache import StoredRun
from magnetar.storage.ledgers.managed_ledger import ManagedLedger
from magnetar.storage.ledgers.span_table import ExtentPlace
from magnetar.storage.log import checkpoint, records
from magnetar.storage.log.segment import ExtentOffsets, Span
from magnetar.storage.space import segment_cleaner
from magnetar.storage.space.occupancy import Occupancy
from magnetar.storage.store import LedgerStore
from magnetar.storage.store_settings import StoreSettings
from magnetar.storage.verify import verify
from magnetar.testing.faultfiles import FaultFileSystem
from tests.unit.storage.recovery.test_recovery_in_simulation import Disk, publish, read_all, simulated

SMALL = StoreSettings(
    segment_bytes=4_000,
    aligned_bytes_min=1_000,
    cache_bytes=1,
    ledger_entries_max=20,
    ledger_min_rollover_ms=0,
    reserve_bytes=0,
)
LIVING = [b"living %d" % i for i in range(4)]


def used(files: FaultFileSystem) -> int:
    """Bytes of segments and their indexes."""
    return sum(files.open(name).size() for name in files.names() if name.startswith("segment-"))


def small(disk: Disk) -> Disk:
    disk.settings = SMALL
    return disk


async def filled(store: LedgerStore, segments: int = 12) -> tuple[list[ManagedLedger], ManagedLedger]:
    """Much traffic that everybody has consumed, and few messages of other topics that nobody has."""
    busy = store.open_log("busy")
    quiet = [store.open_log(f"quiet {i}") for i in range(len(LIVING))]
    for managed in quiet:
        managed.open_cursor("s", 0)
    while store.journal.segment < segments:
        i = store.journal.segment
        if i % 3 == 0 and quiet[i // 3 - 1].end == 0:
            quiet[i // 3 - 1].append(LIVING[i // 3 - 1], 1, None)
        busy.append(b"x" * 200, 1, None)
        await store.journal.drain()
        await asyncio.sleep(0.02)
    busy.open_ledger()
    busy.trim(busy.end)
    await store.journal.drain()
    return quiet, busy


async def passes(store: LedgerStore, count: int = 10, seconds: float = 15.0) -> None:
    for _ in range(count):
        await store.cleaner.run()
        await asyncio.sleep(seconds)


async def check(store: LedgerStore) -> None:
    for i, entry in enumerate(LIVING):
        log = store.find_log(f"quiet {i}")
        assert log is not None
        assert await read_all(log) == [entry]


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
            copy.files = _copy(disk.files)
            if len(names) == 2 and kept == 0:
                copy.files.flip_bit(names[1], 100)
            again = copy.open()
            assert [text for text in again.damage if "missing" in text] == []
            await check(again)
            seen += 1
    assert seen == 24


def _copy(files: FaultFileSystem) -> FaultFileSystem:
    """The same directory on another disk."""
    other = FaultFileSystem(random.Random(3))
    for name in files.names():
        if name == "LOCK":
            continue
        source, target = files.open(name), other.open(name, create=True)
        target.append([source.read(0, source.size())])
        target.sync()
    other.sync()
    return other


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
    places = store._reader._indexes.places(span)
    disk.files.flip_bit(segment_name(span.segment), places.offsets[0] + places.lengths[0] - 2)
    told: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: told.append(record.getMessage())  # type: ignore[method-assign]
    logger = logging.getLogger("magnetar.storage.space.segment_cleaner")
    logger.addHandler(handler)
    try:
        await passes(store)
    finally:
        logger.removeHandler(handler)
    assert [text for text in told if "stays as it is" in text] == [
        text for text in told if segment_name(span.segment) in text
    ]
    assert len([text for text in told if "stays as it is" in text]) == 1


@simulated
async def test_a_hole_in_what_a_span_promises_is_not_moved_over(disk: Disk) -> None:
    """What was damaged before the newest start: the entries in front of it and behind it stay where they are."""
    store = small(disk).open()
    log = store.open_log("a")
    await publish(store, log, 0, 6)
    await roll(store)
    span = next(iter(log.spans))
    places = store._reader._indexes.places(span)
    for where in (places.find(2), places.find(5)):
        short = ExtentOffsets()
        for i in range(len(places.firsts)):
            if i != where:
                short.add(places.firsts[i], places.offsets[i], places.lengths[i])
        span.places = short
        with pytest.raises(PersistenceError, match="is missing"):
            await store._reader.living([(span, 0)], 1 << 20)
    span.places = None
    assert len(await store._reader.living([(span, 0)], 1 << 20)) == 6


async def emptied(store: LedgerStore, number: int) -> None:
    logs = {managed.id: managed for managed in store.logs()}
    await store.cleaner._empty(number, logs)


@simulated
async def test_moved_twice_and_replayed_from_the_older_checkpoint(disk: Disk) -> None:
    store = small(disk).open()
    log = store.open_log("a")
    await publish(store, log, 0, 30)
    spans = list(log.spans)
    first = spans[0].segment
    await roll(store)
    await emptied(store, first)
    moved_to = log.spans.holding(0)
    assert moved_to is not None
    assert moved_to.segment > first
    await roll(store)
    await publish(store, log, 30, 40)
    await emptied(store, moved_to.segment)
    again = log.spans.holding(0)
    assert again is not None
    assert again.segment > moved_to.segment
    wanted = [b"entry %d" % i for i in range(40)]
    assert await read_all(log) == wanted
    for damaged in (False, True):
        copy = Disk(SMALL)
        copy.files = _copy(disk.files)
        if damaged:
            copy.files.flip_bit(max(n for n in copy.files.names() if n.startswith("checkpoint-")), 100)
        store = copy.open()
        assert store.damage == []
        log = store.open_log("a")
        assert await read_all(log) == wanted
        holding = log.spans.holding(0)
        assert holding is not None
        assert holding.segment == again.segment, "the newest place counts"
        await store.close()
        assert verify(copy.files).damage == []


async def roll(store: LedgerStore) -> None:
    store.journal.roll(lambda: None, lambda error: None)
    await store.journal.drain()
    await asyncio.sleep(1)


@simulated
async def test_only_what_lives_of_an_extent_is_moved(disk: Disk) -> None:
    store = small(disk).open()
    log = store.open_log("a")
    entries = [b"%d." % i * (i + 1) for i in range(12)]
    for i, entry in enumerate(entries):
        log.append(entry, 1 + i % 3, None)  # one extent, entries of one and of several messages
    await store.journal.drain()
    log.trim(7, sum(map(len, entries[:7])))
    await roll(store)
    (span,) = log.spans
    assert 0 < span.living < span.bytes
    await emptied(store, span.segment)
    assert span.segment not in store.occupancy
    (moved,) = log.spans
    assert (moved.first, moved.end) == (7, 12)
    assert moved.bytes < span.bytes
    run = await run_at(log, 7)
    assert (run.entries, run.counts) == (entries[7:], [1 + i % 3 for i in range(7, 12)])
    assert (run.ledger, run.entry) == log.position(7)
    await roll(store)
    disk.kill()
    log = disk.open().open_log("a")
    assert await read_all(log) == entries[7:]


async def run_at(log: ManagedLedger, start: int) -> StoredRun:
    future: asyncio.Future[StoredRun | Exception] = asyncio.get_running_loop().create_future()
    log.read(start, 100, 1 << 20, future.set_result)
    found = await future
    assert not isinstance(found, Exception)
    return found


async def _while_moving(disk: Disk, act: str) -> None:
    """Something happens to the log while its extents are on their way."""
    store = small(disk).open()
    log = store.open_log("a")
    await publish(store, log, 0, 30)
    log.open_ledger()
    await publish(store, log, 30, 35)
    await roll(store)
    number = next(iter(log.spans)).segment
    moving = asyncio.create_task(emptied(store, number))
    for _ in range(1000):
        if store.journal._group.move is not None:
            break
        await asyncio.sleep(0.0001)
    if act == "trim":
        log.trim(30)
    elif act == "delete":
        store.delete_log("a")
    else:
        ledger = log.table.ledgers[0]
        copy = Offload("file:///x", "n", "d", ledger.entries, ledger.bytes, 0, 0, released=True)
        log.record_offload(ledger.id, copy, lambda: None, lambda error: None)
    await moving
    await store.journal.drain()
    for living in (True, False):
        assert number not in store.occupancy
        found = store.find_log("a")
        assert (found is None) == (act == "delete")
        if found is not None:
            first = 30 if act == "trim" else found.table.ledgers[1].ordinal
            assert [o for o in range(35) if found.spans.holding(o) is not None] == list(range(first, 35))
        if living:
            disk.kill()
            store = disk.open()
            assert store.damage == []


@simulated
async def test_a_log_whose_deletion_was_durable_before_the_move_keeps_nothing(disk: Disk) -> None:
    store = small(disk).open()
    log = store.open_log("a")
    await publish(store, log, 0, 5)
    await roll(store)
    (span,) = log.spans
    living = await store._reader.living([(span, 0)], 1 << 20)
    store.delete_log("a")
    await store.journal.drain()
    await store.cleaner._write(living, {log.id: log})
    assert [n for n in range(1, store.journal.segment + 1) if n in store.occupancy] == []


@simulated
async def test_of_a_span_that_was_cut_only_its_own_extents_are_read(disk: Disk) -> None:
    store = small(disk).open()
    log = store.open_log("a")
    await publish(store, log, 0, 9)
    await roll(store)
    log.spans.move(ExtentPlace(99, log.table.ledgers[-1].id, 3, 6, 48, 100), 0)
    before, _, behind = log.spans
    for span, first, end in ((before, 0, 3), (behind, 6, 9)):
        living = await store._reader.living([(span, first)], 1 << 20)
        assert [(one.first, one.end) for one in living] == [(o, o + 1) for o in range(first, end)]


@simulated
async def test_trimmed_while_it_is_moved(disk: Disk) -> None:
    await _while_moving(disk, "trim")


@simulated
async def test_deleted_while_it_is_moved(disk: Disk) -> None:
    await _while_moving(disk, "delete")


@simulated
async def test_offloaded_while_it_is_moved(disk: Disk) -> None:
    await _while_moving(disk, "offload")


@simulated
async def test_what_cannot_be_read_is_not_moved_and_its_segment_stays(disk: Disk) -> None:
    store = small(disk).open()
    quiet, _ = await filled(store)
    await roll(store)
    span = next(iter(quiet[1].spans))
    places = store._reader._indexes.places(span)
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
async def test_an_index_that_is_lost_is_made_anew_where_moved_extents_lie(disk: Disk) -> None:
    """Older ordinals stand behind younger ones there."""
    store = small(disk).open()
    log = store.open_log("a")
    await publish(store, log, 0, 8)
    await roll(store)
    await publish(store, log, 8, 12)
    for span in [span for span in log.spans if span.segment < store.journal.segment]:
        await emptied(store, span.segment)
        await publish(store, log, log.end, log.end + 2)
    number = store.journal.segment
    assert [span.segment for span in log.spans] == [number, number]
    await roll(store)
    wanted = [b"entry %d" % i for i in range(log.end)]
    await store.close()
    for broken in (False, True):
        if broken:
            disk.files.flip_bit(index_name(number), 70)
        else:
            disk.files.remove(index_name(number))
        disk.kill()
        store = disk.open()
        log = store.open_log("a")
        assert await read_all(log) == wanted
        await store.close()


@simulated
async def test_in_the_weaker_mode_only_what_is_synced_replaces_old_entries(disk: Disk) -> None:
    """With journalSyncData=false a power loss may take what is young, never what had been on disk for long."""
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


@simulated
async def test_a_moved_extent_that_rots_is_damage_like_any_other(disk: Disk) -> None:
    store = small(disk).open()
    log = store.open_log("a")
    await publish(store, log, 0, 5)
    await roll(store)
    await emptied(store, 1)
    for _ in range(3):
        await roll(store)
    await store.keeper.remove_dead()
    span = next(iter(log.spans))
    places = store._reader._indexes.places(span)
    disk.files.flip_bit(segment_name(span.segment), places.offsets[2] + places.lengths[2] - 1)
    with pytest.raises(PersistenceError, match=segment_name(span.segment)):
        await read_all(log)
    await store.close()
    assert any(segment_name(span.segment) in text for text in verify(disk.files).damage)


@simulated
async def test_a_directory_of_a_newer_format_is_refused_and_left_alone(disk: Disk) -> None:
    store = disk.open()
    await publish(store, store.open_log("a"), 0, 3)
    await store.close()
    disk.kill()
    number, image = checkpoint.load(LocalJournal(disk.files))
    assert image is not None
    assert image.head["format"] == 2
    checkpoint.save(LocalJournal(disk.files), number + 1, checkpoint.encode({**image.head, "format": 3}, []))
    before = disk.files.names()
    with pytest.raises(PersistenceError, match="newer version of magnetar"):
        disk.open()
    assert disk.files.names() == before


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


def test_the_record_of_a_moved_extent_is_its_own_with_a_flag() -> None:
    head = records.ExtentHead(1, 2, 3, 4, 5, 6, 3)
    parts, size = records.extent(head, [b"a", b"bb", b"ccc"], [1, 2, 3])
    raw = records.parse_record(b"".join(parts), 0)
    whole = records.moved_extent(raw, 0)
    assert len(whole) == size
    assert records.parse_record(whole, 0) == raw._replace(flags=records.COUNTED | records.MOVED)
    cut = records.read_extent(records.moved_extent(raw, 1), 0)
    assert cut.head == head._replace(entry=4, ordinal=5, message_index=6, entries=2)
    assert (cut.entries, cut.counts) == ([b"bb", b"ccc"], [2, 3])
    plain = records.parse_record(b"".join(records.extent(head, [b"a", b"bb", b"ccc"], None)[0]), 0)
    assert records.read_extent(records.moved_extent(plain, 2), 0)[:2] == (
        head._replace(entry=5, ordinal=6, message_index=7, entries=1), [b"ccc"]
    )  # fmt: skip
