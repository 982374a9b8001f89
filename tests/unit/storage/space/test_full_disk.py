"""A full disk: the reserve is given up once, it is looked each second for room, and what is dead is removed."""

from __future__ import annotations

import asyncio
import logging
from types import SimpleNamespace
from typing import Any, cast

import pytest

from magnetar.model.errors import PersistenceError
from magnetar.runtime.tasks import TaskGroup
from magnetar.storage.space.full_disk import FullDisk
from magnetar.storage.space.segment_keeper import SegmentKeeper
from magnetar.testing.simloop import run
from tests.support.simulated_store import Disk, publish, simulated


class Reserve:
    """There or not; ``room`` says how often it cannot be had yet."""

    def __init__(self) -> None:
        self.there = True
        self.is_short = False
        self.refused = 0
        self.taken = 0

    def take(self) -> bool:
        self.taken += 1
        if self.refused:
            self.refused -= 1
            return False
        self.there = True
        return True

    def give_up(self) -> bool:
        given, self.there = self.there, False
        return given

    def short(self) -> bool:
        return self.is_short

    def size(self) -> int:
        return 1003


class Stand:
    """A full disk and what it did, in order."""

    def __init__(self) -> None:
        self.reserve, self.did = Reserve(), list[object]()
        self.fails: Exception | None = None
        self.journal = SimpleNamespace(full=None, on_full=None)
        self.tasks = TaskGroup("store")
        self.disk = FullDisk(cast("Any", self.reserve), cast("Any", self.journal), self.remove, self.tasks)
        self.disk.let_go = self.let_go

    async def let_go(self) -> None:
        self.did.append("let go")
        if self.fails is not None:
            raise self.fails

    async def remove(self, least: int) -> None:
        self.did.append(least)


@pytest.mark.parametrize("short", [False, True])
def test_a_start_on_a_disk_with_less_free_than_the_reserve_gives_it_up_first(short: bool) -> None:
    stand = Stand()
    stand.reserve.is_short = short
    stand.disk.before_start()
    assert stand.reserve.there is not short
    assert stand.journal.full is None


def test_publishing_ends_once_and_goes_on_when_the_reserve_can_be_had_again(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        stand = Stand()
        stand.disk.start()
        assert (stand.reserve.taken, stand.journal.full) == (1, None), "it has the reserve, and nothing is wrong"
        stand.reserve.refused = 3
        assert stand.journal.on_full() is True, "there was a reserve to give up: the write may be tried again"
        assert stand.journal.on_full() is False, "and now there is none"
        first = stand.journal.full
        assert isinstance(first, PersistenceError) and "the disk is full: nothing is published" in str(first)
        assert caplog.text.count("the disk is full") == 1
        await asyncio.sleep(0.1)
        for second in range(1, 4):
            await asyncio.sleep(1)
            assert stand.did == ["let go", 250] * second, "a quarter of the reserve is worth a checkpoint"
            assert stand.journal.full is first
        await asyncio.sleep(1)
        assert stand.journal.full is None and stand.reserve.there
        assert "publishing goes on" in caplog.text
        await asyncio.sleep(10)
        assert (len(stand.did), stand.reserve.taken) == (6, 5), "it is not looked any more"
        stand.reserve.refused = 1
        assert stand.journal.on_full() is True
        await asyncio.sleep(2.5)
        assert (len(stand.did), stand.journal.full) == (8, None), "a second time is like the first"
        await stand.tasks.close()

    caplog.set_level(logging.WARNING)
    run(1, main())


@pytest.mark.parametrize("known", [False, True])
def test_a_broker_that_starts_on_a_full_disk_publishes_nothing_until_there_is_room(known: bool) -> None:
    """There is no room for the reserve, or a write of recovery has been refused: then it is not asked for."""

    async def main() -> None:
        stand = Stand()
        stand.reserve.there, stand.reserve.refused = False, 2
        if known:
            assert stand.journal.on_full() is False
        await asyncio.sleep(5)
        assert stand.did == [], "before the start nothing is removed"
        stand.disk.start()
        assert stand.reserve.taken == (not known)
        assert stand.journal.full is not None
        await asyncio.sleep(1.5)
        assert stand.did == ["let go", 250]
        await asyncio.sleep(2)
        assert stand.journal.full is None
        await stand.tasks.close()

    run(1, main())


@pytest.mark.parametrize("error", [OSError("refused"), PersistenceError("refused"), RuntimeError("refused")])
def test_what_cannot_be_removed_is_named_and_tried_again(error: Exception, caplog: pytest.LogCaptureFixture) -> None:
    """Whatever a topic's trim raises: without the look at the disk nothing would ever be published again."""

    async def main() -> None:
        stand = Stand()
        stand.disk.start()
        stand.reserve.refused, stand.fails = 3, error
        stand.disk.run_out()
        await asyncio.sleep(2.5)
        assert stand.did == ["let go", "let go"]
        assert caplog.text.count("nothing could be removed from the full disk: refused") == 2
        stand.fails = None
        await asyncio.sleep(2)
        assert stand.did == ["let go", "let go", "let go", 250]
        assert stand.journal.full is None
        await stand.tasks.close()

    caplog.set_level(logging.WARNING)
    run(1, main())


@pytest.mark.parametrize(("written", "dead"), [(0, [5, 7, 9]), (100, [5, 7])])
def test_dead_without_a_checkpoint_is_what_lies_between_the_last_one_and_the_newest_segment(
    written: int, dead: list[int]
) -> None:
    """The newest counts if nothing was written to it by this process: then it is one that was found at the start."""
    asked: list[int] = []

    def sizes(numbers: list[int]) -> dict[int, int]:
        asked.extend(numbers)
        return dict.fromkeys(numbers, 10)

    async def blocking(work: Any, *arguments: Any) -> Any:
        return work(*arguments)

    keeper: Any = SimpleNamespace(
        _checkpoints=[2, 4], _home=SimpleNamespace(journal=SimpleNamespace(segment=9, open_bytes=written)),
        occupancy={6, 8}, _backend=SimpleNamespace(sizes=sizes), blocking=blocking,
    )  # fmt: skip
    found = asyncio.run(SegmentKeeper.dead_without_checkpoint(keeper, range(1, 11)))
    assert (asked, found) == (dead, 10 * len(dead))


@simulated
async def test_an_acknowledgement_beside_a_publish_that_a_full_disk_refuses_is_written_at_once(disk: Disk) -> None:
    """It makes room; only what is published waits for it."""
    store = disk.open()
    log = store.open_log("a")
    await publish(store, log, 0, 2)
    cursor = log.open_cursor("s", 0)
    await store.journal.drain()
    loop, refused = asyncio.get_running_loop(), list[object]()
    durable: asyncio.Future[None] = loop.create_future()
    log.on_failed = lambda extent, error: refused.append(error)
    store.journal.full = PersistenceError("full")
    begun = loop.time()
    log.append(b"x", 1, None)
    cursor.acknowledge([0], lambda: durable.set_result(None))
    await durable
    assert loop.time() - begun < 0.5
    assert refused == [store.journal.full]
    await store.close()
