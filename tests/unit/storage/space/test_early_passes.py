"""When much has died a pass is asked for at once: what is counted, and what is not."""

from __future__ import annotations

import asyncio

from magnetar.storage.log.segment import Span
from magnetar.storage.space.occupancy import Occupancy
from tests.support.simulated_store import Disk, publish, simulated
from tests.support.sparse_segments import SMALL, emptied, roll, small


def test_what_dies_is_counted_until_it_is_worth_a_pass() -> None:
    occupancy, asked = Occupancy(), list[int]()
    occupancy.worth, occupancy.on_died = 100, lambda: asked.append(1)
    spans = [Span(1, number, 1, 0, 9, 60) for number in (3, 4, 5)]
    for span in spans:
        occupancy.added(span)
    occupancy.dropped(spans[0])
    occupancy.dropped(spans[0])
    assert (occupancy.died, asked) == (60, []), "once each"
    occupancy.shrunk(spans[1], 40)
    assert (occupancy.died, asked) == (0, [1])
    occupancy.moved(5, 9, 60)
    occupancy.dropped(spans[2])
    assert (occupancy.died, asked) == (0, [1]), "what was moved lives on"


@simulated
async def test_a_quarter_of_a_segment_that_dies_asks_for_a_pass(disk: Disk) -> None:
    store = small(disk).open()
    first, second = store.open_log("a"), store.open_log("b")
    await publish(store, first, 0, 10)
    await publish(store, second, 0, 10)
    early = store.cleaner.early
    assert store.occupancy.worth == SMALL.segment_bytes // 4
    await roll(store)
    await emptied(store, next(iter(first.spans)).segment)
    assert not early._asked.is_set(), "moving is not dying"
    store.delete_log("a")
    await store.journal.drain()
    assert not early._asked.is_set(), "too little"
    store.delete_log("b")
    await store.journal.drain()
    assert early._asked.is_set()
    await store.close()


@simulated
async def test_a_segment_that_was_filled_is_told_to_who_trims(disk: Disk) -> None:
    store = small(disk).open()
    told: list[int] = []
    store.keeper.on_checkpoint = lambda: told.append(store.keeper.covered()[1])
    log = store.open_log("a")
    await publish(store, log, 0, 3)
    assert told == []
    segment = store.journal.segment
    await roll(store)
    await asyncio.sleep(1)
    assert told == [segment]
    await store.close()
