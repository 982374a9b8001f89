"""Extents that were moved: what they were, whatever happens to them meanwhile and after."""

from __future__ import annotations

import asyncio
from typing import cast

import pytest

from magnetar.model.errors import PersistenceError
from magnetar.storage.backends.journal_backend import Chunk, index_name, segment_name
from magnetar.storage.backends.local_journal import LocalJournal
from magnetar.storage.ledgers.archive import Offload
from magnetar.storage.ledgers.span_table import ExtentPlace
from magnetar.storage.log import checkpoint, records
from magnetar.storage.space.extent_mover import ExtentMover, MovedSlice
from magnetar.storage.space.segment_sweep import LivingExtent, SegmentSweep
from magnetar.storage.verify import verify
from tests.support.simulated_store import Disk, publish, read_all, simulated
from tests.support.sparse_segments import SMALL, complete_segment, copy_of_disk, emptied, living_of, roll, run_at, small


@simulated
async def test_moved_twice_and_replayed_from_the_older_checkpoint(disk: Disk) -> None:
    store, log = await complete_segment(disk, 30)
    spans = list(log.spans)
    first = spans[0].segment
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
        copy.files = copy_of_disk(disk.files)
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
    store, log = await complete_segment(disk, 5)
    (span,) = log.spans
    found = await living_of(store, span)
    moved = MovedSlice(store.journal, found, {log.id: log})
    store.delete_log("a")
    await store.journal.drain()
    await moved.durable
    assert [n for n in range(1, store.journal.segment + 1) if n in store.occupancy] == []


@simulated
async def test_what_was_let_go_after_it_was_read_is_not_written_again(disk: Disk) -> None:
    """Also where an extent's last entry is the last that was let go."""
    store, log = await complete_segment(disk, 6)
    (span,) = log.spans
    found = await living_of(store, span)
    log.trim(3, sum(len(b"entry %d" % i) for i in range(3)))
    await store.journal.drain()
    assert [one.end for one in found if one.end <= log.first] == [1, 2, 3]
    left = sum(len(one.record) for one in found if one.end > log.first)
    mover = ExtentMover(store.journal, 1 << 20, lambda: False)
    await mover.move(cast(SegmentSweep, OneRead(found)), {log.id: log})
    assert mover.moved_bytes == left
    assert [(span.first, span.end) for span in log.spans] == [(3, 6)]
    await store.close()


@simulated
async def test_what_was_let_go_before_it_is_read_is_not_read(disk: Disk) -> None:
    store, log = await complete_segment(disk, 6)
    (span,) = log.spans
    first = 0
    sweep = SegmentSweep(span.segment, store.reader, lambda span: first)
    assert await sweep.find([span]) == []
    one = await sweep.begin(1)
    assert one is not None and [(living.first, living.end) for living in one] == [(0, 1)], "an extent at least"
    first = 3
    rest = await sweep.begin(1 << 20)
    assert rest is not None and [(living.first, living.end) for living in rest] == [(3, 4), (4, 5), (5, 6)]
    assert await sweep.begin(1) is None
    await store.close()


class OneRead:
    """A sweep whose only read has returned already."""

    def __init__(self, found: list[LivingExtent]) -> None:
        self._slices: list[list[LivingExtent] | None] = [None, found]

    def begin(self, size_max: int) -> asyncio.Future[list[LivingExtent] | None]:
        future: asyncio.Future[list[LivingExtent] | None] = asyncio.get_running_loop().create_future()
        future.set_result(self._slices.pop())
        return future


@simulated
async def test_of_a_span_that_was_cut_only_its_own_extents_are_read(disk: Disk) -> None:
    store, log = await complete_segment(disk, 9)
    log.spans.move(ExtentPlace(99, log.table.ledgers[-1].id, 3, 6, 48, 100), 0)
    before, _, after = log.spans
    for span, first, end in ((before, 0, 3), (after, 6, 9)):
        found = await living_of(store, span)
        assert [(one.first, one.end) for one in found] == [(o, o + 1) for o in range(first, end)]


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
async def test_a_moved_extent_that_rots_is_damage_like_any_other(disk: Disk) -> None:
    store, log = await complete_segment(disk, 5)
    await emptied(store, 1)
    for _ in range(3):
        await roll(store)
    await store.keeper.remove_dead()
    span = next(iter(log.spans))
    places = store._reader.places(span)
    disk.files.flip_bit(segment_name(span.segment), places.offsets[2] + places.lengths[2] - 1)
    with pytest.raises(PersistenceError, match=segment_name(span.segment)):
        await read_all(log)
    await store.close()
    assert any(segment_name(span.segment) in text for text in verify(disk.files).damage)


@simulated
async def test_an_index_that_is_lost_is_made_anew_where_moved_extents_lie(disk: Disk) -> None:
    """Older ordinals stand after younger ones there."""
    store, log = await complete_segment(disk, 8)
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


def test_the_record_of_a_moved_extent_is_its_own_with_a_flag() -> None:
    place, entries = (1, 2, 3, 4, 5), [b"a", b"bb", b"ccc"]
    head = records.ExtentHead(*place, 6, 3)
    parts: list[Chunk] = []
    size = records.extent(place, 6, entries, [1, 2, 3], 6, parts)
    raw = records.parse_record(b"".join(parts), 0)
    whole = records.moved_extent(raw, 0)
    assert len(whole) == size
    assert records.parse_record(whole, 0) == raw._replace(flags=records.COUNTED | records.MOVED)
    cut = records.read_extent(records.moved_extent(raw, 1), 0)
    assert cut.head == head._replace(entry=4, ordinal=5, message_index=6, entries=2)
    assert (cut.entries, cut.counts) == ([b"bb", b"ccc"], [2, 3])
    parts = []
    records.extent(place, 6, entries, None, 6, parts)
    plain = records.parse_record(b"".join(parts), 0)
    assert records.read_extent(records.moved_extent(plain, 2), 0)[:2] == (
        head._replace(entry=5, ordinal=6, message_index=7, entries=1), [b"ccc"]
    )  # fmt: skip


@simulated
async def test_a_directory_of_a_newer_format_is_refused_and_left_alone(disk: Disk) -> None:
    store = disk.open()
    await publish(store, store.open_log("a"), 0, 3)
    await store.close()
    disk.kill()
    number, image, _ = checkpoint.find(LocalJournal(disk.files))
    assert image is not None
    assert image.head["format"] == 2
    checkpoint.save(LocalJournal(disk.files), number + 1, checkpoint.encode({**image.head, "format": 3}, []))
    before = disk.files.names()
    with pytest.raises(PersistenceError, match="newer version of magnetar"):
        disk.open()
    assert disk.files.names() == before
