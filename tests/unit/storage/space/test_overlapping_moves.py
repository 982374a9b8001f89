"""One slice is being written while the next one is read: whatever happens to either of them meanwhile.

The disk is held in virtual time, so both are under way for as long as the test wants.
"""

from __future__ import annotations

import asyncio
import errno
import gc
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, cast

import pytest

from magnetar.model.errors import PersistenceError
from magnetar.storage.backends.journal_backend import segment_name
from magnetar.storage.ledgers.managed_ledger import ManagedLedger
from magnetar.storage.log.write_group import PendingMove
from magnetar.storage.space import extent_mover, segment_cleaner
from magnetar.storage.space.extent_mover import MovedSlice
from magnetar.storage.store import LedgerStore
from magnetar.storage.verify import verify
from magnetar.testing.simloop import SimLoop
from tests.support.simulated_store import Disk, publish, read_all, simulated
from tests.support.sparse_segments import SMALL, emptied, passes, roll, small, used

_ENTRIES = 20
_WANTED = [b"entry %d" % i for i in range(_ENTRIES)]


@pytest.fixture(autouse=True)
def small_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extent_mover, "_SLICE_BYTES", 300)
    monkeypatch.setattr(extent_mover, "_HURRIED_BYTES", 300)


@dataclass
class Overlap:
    """A segment that is being emptied: its first slice is with the disk, the next one was read."""

    disk: Disk
    store: LedgerStore
    log: ManagedLedger
    number: int
    moving: asyncio.Task[None]

    @property
    def loop(self) -> SimLoop:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, SimLoop)
        return loop

    def release(self) -> None:
        for executor in (self.store._threads.reader, self.store._threads.writer):
            self.loop.release(executor)

    @property
    def moved(self) -> int:
        """Entries that lie elsewhere by now."""
        return sum(span.end - span.first for span in self.log.spans if span.segment > self.number)


async def _segment_of_one_topic(disk: Disk) -> tuple[LedgerStore, ManagedLedger, int]:
    store = small(disk).open()
    log = store.open_log("a")
    await publish(store, log, 0, _ENTRIES)
    log.open_ledger()
    await roll(store)
    (number,) = {span.segment for span in log.spans}
    return store, log, number


@asynccontextmanager
async def overlapping(disk: Disk, *, read: bool = True) -> AsyncIterator[Overlap]:
    """``read``: whether the second slice was read already; else the disk is reading it."""
    store, log, number = await _segment_of_one_topic(disk)
    loop = asyncio.get_running_loop()
    assert isinstance(loop, SimLoop)
    loop.hold(store._threads.writer)
    if not read:
        begun = store.journal.add_move

        def add_move(move: PendingMove) -> None:
            loop.hold(store._threads.reader)
            store.journal.add_move = begun  # type: ignore[method-assign]
            begun(move)

        store.journal.add_move = add_move  # type: ignore[method-assign]
    moving = asyncio.create_task(emptied(store, number))
    await asyncio.sleep(1)
    assert store.journal._writing is not None
    assert store.journal._writing.move is not None
    yield Overlap(disk, store, log, number, moving)


@contextmanager
def only_victim(number: int) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(segment_cleaner, "victims", lambda uses, slack: [use for use in uses if use.number == number])
        yield


async def _started_anew(disk: Disk, wanted: list[bytes]) -> None:
    disk.kill()
    store = disk.open()
    assert store.damage == []
    log = store.open_log("a")
    assert await read_all(log) == wanted
    await passes(store)
    assert await read_all(log) == wanted
    assert used(disk.files) < 2 * SMALL.segment_bytes
    await store.close()
    assert verify(disk.files).damage == []


@simulated
async def test_the_next_slice_is_read_and_given_to_the_next_group_while_one_is_written(disk: Disk) -> None:
    async with overlapping(disk) as now:
        read = disk.files.counters.read_bytes
        await asyncio.sleep(10)
        assert disk.files.counters.read_bytes == read, "no third one"
        assert now.store.journal._group.move is not None
        assert now.moved == 0, "nothing counts before it is durable"
        now.release()
        await now.moving
        assert now.number not in now.store.occupancy
        assert await read_all(now.log) == _WANTED
        await _started_anew(disk, _WANTED)


@simulated
async def test_in_a_hurry_two_are_read(disk: Disk) -> None:
    store, log, number = await _segment_of_one_topic(disk)
    asked = 0
    in_thread = store.reader.in_thread

    def counted(*arguments: object) -> object:
        nonlocal asked
        asked += 1
        return in_thread(*arguments)  # type: ignore[arg-type]

    store.reader.in_thread = counted  # type: ignore[method-assign, assignment]
    loop = asyncio.get_running_loop()
    assert isinstance(loop, SimLoop)
    store.cleaner.mover._urgent = lambda: True
    store.cleaner.mover._pace.behind = lambda: True  # type: ignore[method-assign]
    loop.hold(store._threads.writer)
    moving = asyncio.create_task(emptied(store, number))
    await asyncio.sleep(10)
    assert asked == 1 + 3, "where everything lies, one that is written, one that waits, one that is read"
    loop.release(store._threads.writer)
    await moving
    assert await read_all(log) == _WANTED
    await store.close()


@simulated
async def test_what_is_let_go_after_it_was_read_is_not_written(disk: Disk) -> None:
    async with overlapping(disk, read=False) as now:
        now.loop.release(now.store._threads.reader)
        await asyncio.sleep(0)
        now.log.trim(_ENTRIES)  # in memory at once, on the disk with the next group
        now.release()
        await now.moving
        await now.store.journal.drain()
        assert now.store.cleaner.moved_bytes <= 300 + 100, "the slice that was being written, and no other"
        assert now.number not in now.store.occupancy
        assert await read_all(now.log) == []
        await _started_anew(disk, [])


@simulated
async def test_a_topic_that_is_deleted_between_reading_and_writing_leaves_nothing(disk: Disk) -> None:
    async with overlapping(disk) as now:
        now.store.delete_log("a")
        now.release()
        await now.moving
        await now.store.journal.drain()
        assert [n for n in range(1, now.store.journal.segment + 1) if n in now.store.occupancy] == []
        disk.kill()
        store = disk.open()
        assert store.find_log("a") is None
        assert store.damage == []


@simulated
async def test_a_read_that_fails_while_one_is_written_leaves_that_one_where_it_was_moved(disk: Disk) -> None:
    async with overlapping(disk, read=False) as now:
        disk.files.fail("read")
        now.loop.release(now.store._threads.reader)
        await asyncio.sleep(1)
        assert not now.moving.done(), "what is being written is waited for"
        now.release()
        with pytest.raises(OSError, match="simulated"):
            await now.moving
        assert 0 < now.moved < _ENTRIES
        assert await read_all(now.log) == _WANTED
        await _started_anew(disk, _WANTED)


@simulated
async def test_a_segment_that_cannot_be_read_to_its_end_waits_for_nothing(disk: Disk) -> None:
    """Otherwise what was moved out of it would count as lying there twice for ever, and nothing else would be moved."""
    store, log, number = await _segment_of_one_topic(disk)
    log.trim(0)
    places = store.reader.places(next(iter(log.spans)))
    disk.files.flip_bit(segment_name(number), places.offsets[9] + places.lengths[9] - 2)
    await roll(store)
    await store.keeper.measure()
    with only_victim(number):
        await store.cleaner._empty_victims()
    assert number in store.cleaner._damaged
    assert store.cleaner.moved_bytes > 0
    assert store.occupancy.copied == 0
    await store.close()


@simulated
async def test_a_segment_that_went_while_it_was_to_be_read_is_no_damage(disk: Disk) -> None:
    store, log, number = await _segment_of_one_topic(disk)
    await store.keeper.measure()
    loop = asyncio.get_running_loop()
    assert isinstance(loop, SimLoop)
    await roll(store)
    loop.hold(store._threads.reader)
    with only_victim(number):
        moving = asyncio.create_task(store.cleaner._empty_victims())
        await asyncio.sleep(1)
        log.trim(_ENTRIES)
        await store.journal.drain()
        disk.files.remove(segment_name(number))
        disk.files.remove(segment_name(number) + ".index")
        loop.release(store._threads.reader)
        await moving
    assert number not in store.occupancy
    assert store.cleaner._damaged == set()


@simulated
async def test_a_write_that_fails_while_the_next_slice_is_read_or_waits_moves_neither(disk: Disk) -> None:
    for read in (True, False):
        on = Disk()
        async with overlapping(on, read=read) as now:
            on.files.fail("append")
            now.loop.release(now.store._threads.writer)
            await asyncio.sleep(0.5)
            now.release()
            with pytest.raises(extent_mover.MoveRefusedError):
                await now.moving
            assert now.moved == 0
            assert now.store.journal._group.move is None
            assert await read_all(now.log) == _WANTED
            await emptied(now.store, now.number)
            assert now.number not in now.store.occupancy, "a later pass moves all of it"
            assert await read_all(now.log) == _WANTED
            await _started_anew(on, _WANTED)


@simulated
async def test_a_journal_that_takes_nothing_more_ends_the_pass(disk: Disk) -> None:
    """What is refused before its group was written gives its place back, too."""
    store, log, number = await _segment_of_one_topic(disk)
    store.journal.full = PersistenceError("full")
    with pytest.raises(extent_mover.MoveRefusedError):
        async with asyncio.timeout(60):
            await emptied(store, number)
    store.journal.full = None
    await emptied(store, number)
    assert await read_all(log) == _WANTED


@simulated
async def test_a_disk_that_is_full_in_the_middle_keeps_what_was_moved(disk: Disk) -> None:
    async with overlapping(disk) as now:
        disk.files.fail("append", skip=1, code=errno.ENOSPC)
        now.release()
        with pytest.raises(extent_mover.MoveRefusedError):
            await now.moving
        assert 0 < now.moved < _ENTRIES
        assert now.store.journal.full is not None
        assert await read_all(now.log) == _WANTED
        await asyncio.sleep(5)
        assert now.store.journal.full is None, "there is room again"
        await emptied(now.store, now.number)
        assert now.number not in now.store.occupancy
        await _started_anew(disk, _WANTED)


@simulated
async def test_a_broker_stops_while_both_are_under_way(disk: Disk) -> None:
    for read in (True, False):
        on = Disk()
        async with overlapping(on, read=read) as now:
            now.moving.cancel()
            await asyncio.gather(now.moving, return_exceptions=True)
            closing = asyncio.create_task(now.store.close())
            await asyncio.sleep(1)
            now.release()
            await closing
            await _started_anew(on, _WANTED)


@simulated
async def test_power_fails_while_both_are_under_way(disk: Disk) -> None:
    for calls in range(5):
        on = Disk()
        async with overlapping(on) as now:
            on.files.stop_after(calls, lambda: None)
            now.release()
            await asyncio.sleep(1)
            now.moving.cancel()
            await asyncio.gather(now.moving, return_exceptions=True)
            on.power_off()
            store = on.open()
            assert store.damage == []
            log = store.open_log("a")
            assert await read_all(log) == _WANTED
            await _started_anew(on, _WANTED)


def test_a_move_that_fails_when_no_one_waits_any_more_is_no_error_of_the_loop() -> None:
    """Whoever moved it has ended, with the broker for instance; the refusal has been logged."""

    async def scenario() -> None:
        complaints: list[Any] = []
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: complaints.append(context))
        for error in (PersistenceError("the disk refused"), None):
            moves: list[Any] = []
            moved = MovedSlice(cast(Any, SimpleNamespace(add_move=moves.append)), [], {})
            if error is None:
                moved.durable.cancel()
            else:
                moved.durable.set_exception(error)
            await asyncio.sleep(0)
            del moved, moves
            gc.collect()
        assert complaints == []

    asyncio.run(scenario())
