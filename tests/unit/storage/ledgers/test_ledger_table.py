"""The ledgers of a log against a plain list of its entries: both names of each entry, and of places where none is."""

from __future__ import annotations

import random

import pytest

from magnetar.model.ids import EARLIEST, Position
from magnetar.storage.ledgers.ledger import Ledger, LedgerTable


def table_of(sizes: list[int], first: int, rng: random.Random) -> LedgerTable:
    """Ledgers of so many entries from ordinal ``first`` on; ids grow by one or more."""
    table, ledger_id, ordinal = LedgerTable(), rng.randint(0, 3), first
    for size in sizes:
        ledger = Ledger(ledger_id, ordinal, 0, 0)
        ledger.entries = size
        table.add(ledger)
        ordinal += size
        ledger_id += rng.randint(1, 3)
    return table


def check(table: LedgerTable, end: int) -> None:
    """All answers, against lists; ``end`` is where the durable entries end."""
    names = [
        (ledger.ordinal + entry, Position(ledger.id, entry))
        for ledger in table.ledgers
        for entry in range(ledger.entries)
    ]
    first, last = table.ledgers[0], table.ledgers[-1]
    assert table.first == first.ordinal
    for ordinal, position in names:
        assert table.position(ordinal) == position
        assert table.holding(ordinal) is table.of_id(position.ledger)
        assert table.exact(position, end) == (ordinal if ordinal < end else None)
    assert table.position(first.ordinal - 1) == table.position(first.ordinal - 5) == (first.id, -1)
    assert table.holding(last.end) is last
    assert table.position(last.end) == (last.id, last.entries)
    for ledger_id in range(-2, last.id + 3):
        there = [ledger for ledger in table.ledgers if ledger.id == ledger_id]
        assert table.of_id(ledger_id) is (there[0] if there else None)
        assert table.after(ledger_id) is next((one for one in table.ledgers if one.id > ledger_id), None)
        for entry in range(-2, 6):
            asked = Position(ledger_id, entry)
            behind = [ordinal for ordinal, position in names if position >= asked]
            assert table.ordinal(asked, end) == min(behind[0] if behind else last.end, end), (asked, end)
            if all(asked != position for _, position in names):
                assert table.exact(asked, end) is None


@pytest.mark.parametrize("seed", range(20))
def test_entries_have_two_names_and_nothing_else_has_any(seed: int) -> None:
    rng = random.Random(seed)
    sizes = [rng.choice((0, 0, 1, 2, 4)) for _ in range(rng.randint(1, 6))]
    table = table_of(sizes, rng.choice((0, 7)), rng)
    end = table.ledgers[-1].end
    check(table, end)
    check(table, max(end - rng.randint(0, 3), table.first))
    count = rng.randrange(len(sizes))
    ledgers = list(table.ledgers)
    assert table.drop_front(count) == ledgers[:count]
    assert table.ledgers == ledgers[count:]
    check(table, end)
    # what was opened for entries that never became durable
    table.drop_after(end - 1)
    while len(ledgers) > count and not ledgers[-1].entries:
        ledgers.pop()
    assert table.ledgers == ledgers[count:]
    if table.ledgers:
        check(table, end)


def test_ledgers_that_hold_something_or_begin_before_are_not_dropped() -> None:
    table = table_of([2, 0, 0], 5, random.Random(1))
    table.drop_after(7)
    assert len(table.ledgers) == 3
    table.drop_from(8)
    assert len(table.ledgers) == 3
    table.drop_from(7)
    assert len(table.ledgers) == 1
    table.drop_from(0)
    assert len(table.ledgers) == 1


def test_a_log_without_any_ledger_has_the_earliest_position() -> None:
    table = LedgerTable()
    assert table.position(0) == table.position(9) == EARLIEST
    assert table.first == 0
    assert table.ordinal(Position(3, 4), 0) == 0
    assert table.exact(Position(3, 4), 9) is None
    assert table.of_id(0) is table.after(-1) is None


def test_one_whose_birth_is_lost_takes_the_place_of_a_void_one_before_it() -> None:
    """That was opened for entries which are lost: their ordinals were given again."""
    table = table_of([2, 0], 5, random.Random(1))
    kept, void = table.ledgers
    void.ordinal = 20
    table.drop_from(7)
    table.add(void)
    found, later = Ledger(void.id + 1, 7, 0, 0), Ledger(void.id + 2, 9, 0, 0)
    found.entries = 2
    table.add(later)
    table.insert(found)
    assert table.ledgers == [kept, found, later]
    check(table, 9)
