"""When a ledger is full: at exactly its limits, but not before it is old enough, and never while it is empty."""

from __future__ import annotations

import pytest

from magnetar.model.ids import Position
from magnetar.storage.ledgers.ledger import Rollover
from tests.support.simulated_store import Disk, read_all, simulated

RULE = Rollover(entries_max=10, bytes_max=1000, min_ms=50, max_ms=200)


@pytest.mark.parametrize(
    ("entries", "size", "age", "due"),
    [
        (9, 999, 50, False), (10, 0, 50, True), (0, 1000, 50, True), (11, 1001, 50, True), (10, 1000, 49, False),
        (1, 1, 199, False), (1, 1, 200, True), (0, 0, 200, False), (0, 0, 10_000, False), (1, 1, 50, False),
    ],
)  # fmt: skip
def test_due(entries: int, size: int, age: int, due: bool) -> None:
    """A ledger is full at its limits, not before it is old enough, and in any case when it is too old (rule 4.2.1)."""
    assert RULE.due(entries, size, 7_000, 7_000 + age) is due


@pytest.mark.parametrize(
    ("entries", "back", "due"), [(1, 49, False), (1, 200, True), (0, 10**12, False), (10, 50, True)]
)
def test_a_clock_that_was_set_back_keeps_no_ledger_open(entries: int, back: int, due: bool) -> None:
    """A ledger goes only when it is closed: one that was opened in 2038 would have kept everything until then."""
    assert RULE.due(entries, 0, 2 * 10**12, 2 * 10**12 - back) is due


@simulated
async def test_what_comes_behind_a_new_ledger_is_in_it_also_within_one_write(disk: Disk) -> None:
    """Truncating a topic opens one between two entries that the journal has not taken yet."""
    store = disk.open()
    log = store.open_log("a")
    log.append(b"0", 1, None)
    first = log.table.ledgers[-1].id
    second = log.open_ledger().id
    for entry in (b"1", b"2"):
        log.append(entry, 1, None)
    await store.journal.drain()
    places = [Position(first, 0), Position(second, 0), Position(second, 1)]
    assert [ledger.entries for ledger in log.table.ledgers] == [1, 2]
    assert [log.position(ordinal) for ordinal in range(3)] == places
    assert await read_all(log) == [b"0", b"1", b"2"]
    await store.close()
    disk.files = disk.files.reopened()
    store = disk.open()
    log = store.open_log("a")
    assert [log.position(ordinal) for ordinal in range(3)] == places
    assert await read_all(log) == [b"0", b"1", b"2"]
    await store.close()
