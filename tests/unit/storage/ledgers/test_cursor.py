"""A cursor against sets of messages, in memory and from its records; without a journal nothing is kept for a disk."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, cast

import pytest

from magnetar.storage.ledgers.cursor import Cursor
from magnetar.storage.log import records
from magnetar.storage.log.cursor_records import (
    CursorState,
    cursor_state,
    mark_delete_record,
    parse_cursor_record,
    parse_cursor_state,
)
from magnetar.storage.log.records import RecordKind, parse_record

ENTRIES = 1000


class Ends:
    id = 1
    first = 0
    end = ENTRIES


def test_a_non_durable_cursor_remembers_no_changes_for_a_record() -> None:
    """Readers may live for weeks: every acknowledged entry once stayed in a list that no one emptied."""
    cursor = Cursor(Ends(), 1, "reader", -1, None)
    answers: list[str] = []
    for ordinal in range(0, ENTRIES, 2):
        cursor.acknowledge((ordinal,), lambda: answers.append("whole"))
        cursor.acknowledge_indexes(ordinal + 1, (0b10,), 2, lambda: answers.append("part"))
    assert len(answers) == ENTRIES
    assert not cursor._fresh
    assert not cursor._dirty_partial
    assert cursor.backlog() == ENTRIES // 2
    assert cursor.remaining_indexes(1) == (0b10,)


def test_a_reader_has_lost_what_was_trimmed_before_it_had_acknowledged_it() -> None:
    """And nothing else, however often the log is trimmed; a batch of which it has acknowledged a part is one entry."""
    ends = Ends()
    cursor = Cursor(ends, 1, "reader", -1, None)
    cursor.acknowledge([0, 1, 2, 5])
    cursor.acknowledge_indexes(7, (0b10,), 2)
    for first, lost, backlog in ((0, 0, 996), (3, 0, 996), (4, 1, 995), (10, 6, 990), (10, 6, 990), (12, 8, 988)):
        ends.first = first
        cursor.trimmed()
        assert (cursor.jumped, cursor.backlog()) == (lost, backlog)
        assert cursor.mark_delete == max(first - 1, 2)
    assert not cursor.has_partial_batches
    cursor.acknowledge_until(500)
    ends.first = 400
    cursor.trimmed()
    assert (cursor.jumped, cursor.mark_delete) == (8, 500), "it was ahead of the log's front"


def test_who_acknowledges_what_is_acknowledged_or_not_there_hears_when_all_before_is_durable() -> None:
    """It asked, and what it repeats may be on its way to the disk still."""
    journal = Waiting()
    cursor = Cursor(Ends(), 1, "s", -1, cast("Any", journal))
    answers: list[str] = []
    cursor.acknowledge((3,), lambda: answers.append("first"))
    cursor.acknowledge((3,), lambda: answers.append("again"))
    assert cursor.acknowledge_indexes(3, (0b10,), 2, lambda: answers.append("a part of it"))
    assert not cursor.acknowledge_indexes(ENTRIES, (0b10,), 2, lambda: answers.append("beyond"))
    cursor.acknowledge_until(-1, lambda: answers.append("nothing"))
    assert answers == []
    for durable in journal.waiting:
        durable()
    assert answers == ["first", "again", "a part of it", "beyond", "nothing"]
    assert cursor.backlog() == ENTRIES - 1


class Waiting:
    """A journal that keeps everybody waiting."""

    def __init__(self) -> None:
        self.waiting: list[Callable[[], None]] = []

    def touch(self, cursor: Cursor, durable: Callable[[], None] | None = None) -> None:
        if durable is not None:
            self.waiting.append(durable)


class Touched:
    """A journal that notes who asked for a record and renders none."""

    def __init__(self) -> None:
        self.touched = 0

    def touch(self, cursor: Cursor, durable: Callable[[], None] | None = None) -> None:
        self.touched += 1


@pytest.mark.parametrize("whole", [True, False])
def test_a_record_says_what_changed_since_the_one_before_it(whole: bool) -> None:
    """Whether that was of everything (the first one, and after one that was lost) or of a change."""
    journal = Touched()
    cursor = Cursor(Ends(), 1, "s", -1, cast("Any", journal))
    if not whole:
        cursor.render()
    cursor.acknowledge_indexes(3, (0b10,), 2)
    cursor.acknowledge((7,))
    assert journal.touched == 2
    kind = RecordKind.CURSOR if whole else RecordKind.ACKS
    assert parse_record(cursor.render(), 0).kind == kind
    cursor.acknowledge_indexes(5, (0b01,), 2)
    state, _ = parse_cursor_state(parse_record(cursor.render(), 0).body)
    assert (state.ranges, [ordinal for ordinal, _ in state.partial]) == ([], [5])
    cursor.acknowledge((9,))
    state, _ = parse_cursor_state(parse_record(cursor.render(), 0).body)
    assert (list(state.ranges), list(state.partial)) == ([(9, 10)], [])
    cursor.lost()
    assert parse_record(cursor.render(), 0).kind == RecordKind.CURSOR
    cursor.acknowledge_until(20)
    assert cursor.render() == mark_delete_record(1, 1, 20)
    assert (cursor.times_written, cursor.times_lost) == (5 + (not whole), 1)


@pytest.mark.parametrize("whole", [True, False])
def test_a_mark_beyond_everything_is_a_short_record(whole: bool) -> None:
    cursor = Cursor(Ends(), 1, "s", -1, cast("Any", Touched()))
    if not whole:
        cursor.render()
    cursor.acknowledge_indexes(3, (0b10,), 2)
    cursor.render()
    cursor.acknowledge_until(3)
    assert cursor.render() == mark_delete_record(1, 1, 3)


def test_the_last_partly_acknowledged_batch_switches_the_question_off() -> None:
    """``has_partial_batches`` is what lets delivery go in slices; it went back to False only by the batch's own ack."""
    cursor = Cursor(Ends(), 1, "reader", -1, None)
    cursor.acknowledge_indexes(3, (0b10,), 2)
    assert cursor.has_partial_batches
    cursor.acknowledge((3,))
    assert not cursor.has_partial_batches


@pytest.mark.parametrize("mark", [ENTRIES - 2, ENTRIES - 1, ENTRIES, ENTRIES + 5])
@pytest.mark.parametrize("ranges", [(), ((ENTRIES + 1, ENTRIES + 3),), ((ENTRIES - 1, ENTRIES + 1),)])
def test_nothing_is_born_acknowledged_after_recovery(mark: int, ranges: tuple[tuple[int, int], ...]) -> None:
    """Acknowledgements of entries that a crash took with it must not meet the entries that get their places."""
    cursor = Cursor(Ends(), 1, "s", -1, None)
    above = [pair for pair in ranges if pair[0] > mark]
    cursor.replay(CursorState(1, 1, mark, above, [(ENTRIES + 2, (1,)), (ENTRIES, (1,))]))
    cursor.settle()
    assert cursor.mark_delete <= ENTRIES - 1
    for ordinal in range(ENTRIES, ENTRIES + 10):
        assert not cursor.acknowledged(ordinal)
        assert cursor.remaining_indexes(ordinal) == ()
    assert not cursor.has_partial_batches
    wanted = [o for o in range(ENTRIES) if o > mark and not any(start <= o < stop for start, stop in above)]
    assert [o for o in range(ENTRIES) if not cursor.acknowledged(o)] == wanted


class Few(Ends):
    end = 12


class Journal:
    """Writes when the test says so."""

    def __init__(self) -> None:
        self.waiting: list[Callable[[], None]] = []

    def touch(self, cursor: Cursor, durable: Callable[[], None] | None) -> None:
        if durable is not None:
            self.waiting.append(durable)


def words_of(bits: set[int]) -> tuple[int, ...]:
    """Java's BitSet.toLongArray."""
    return tuple(
        sum(1 << bit % 64 for bit in bits if bit // 64 == word) for word in range(max(bits, default=-1) // 64 + 1)
    )


def taken_over(disk: Cursor | None, data: bytes) -> Cursor:
    """What a start knows after this record."""
    raw = parse_record(data, 0)
    if raw.kind == RecordKind.CURSOR:
        name, properties, state, _ = parse_cursor_record(raw.body)
        disk = Cursor(Few(), state.cursor, name, -1, None, properties)
        disk.restore(state)
    else:
        assert disk is not None
        disk.replay(parse_cursor_state(raw.body)[0])
    return disk


@pytest.mark.parametrize("seed", range(25))
def test_against_sets_of_messages_of_batches_of_any_size(seed: int) -> None:
    """Memory, and what records on the disk bring back, against a set per entry; batches of up to four words."""
    rng = random.Random(seed)
    journal = Journal()
    cursor = Cursor(Few(), 7, "s", -1, cast("Any", journal), {"a": 1})
    sizes = [rng.choice((1, 2, 63, 64, 65, 128, 129, 200)) for _ in range(Few.end)]
    left: list[set[int]] = [set(range(size)) for size in sizes]
    disk: Cursor | None = None
    for _ in range(80):
        ordinal = rng.randrange(len(sizes))
        match rng.randrange(12):
            case 0:
                cursor.acknowledge([ordinal, rng.randrange(len(sizes)), ordinal][: rng.randint(1, 3)])
                left = [set() if cursor.acknowledged(o) else has for o, has in enumerate(left)]
                assert not left[ordinal]
            case 1 if rng.random() < 0.2:
                cursor.acknowledge_until(ordinal)
                left = [set() if o <= ordinal else has for o, has in enumerate(left)]
            case 2 if rng.random() < 0.3:
                cursor.reset(ordinal)
                left = [set(range(size)) if o >= ordinal else set() for o, size in enumerate(sizes)]
            case 3 | 4:
                if data := cursor.render():
                    if rng.random() < 0.3:
                        cursor.lost()
                    else:
                        disk = taken_over(disk, data)
                        assert contents(disk, sizes) == [words_of(has) for has in left]
                        assert disk.has_partial_batches is cursor.has_partial_batches
            case _:
                stays = {bit for bit in range(sizes[ordinal]) if rng.random() < 0.7}
                beyond = {bit for bit in range(sizes[ordinal], sizes[ordinal] + 9) if rng.random() < 0.2}
                gone = cursor.acknowledge_indexes(ordinal, words_of(stays | beyond), sizes[ordinal])
                left[ordinal] &= stays
                assert gone is (not left[ordinal])
        assert contents(cursor, sizes) == [words_of(has) for has in left]
        assert cursor.backlog() == sum(map(bool, left))
        assert cursor.mark_delete == next((o for o, has in enumerate(left) if has), len(left)) - 1
        assert cursor.has_partial_batches is any(cursor.remaining_indexes(o) for o in range(len(sizes)))


def contents(cursor: Cursor, sizes: list[int]) -> list[tuple[int, ...]]:
    """Words of what is left of each batch."""
    every = [words_of(set(range(size))) for size in sizes]
    assert not any(cursor.acknowledged(o) and cursor.remaining_indexes(o) for o in range(len(sizes)))
    return [
        () if cursor.acknowledged(o) else cursor.remaining_indexes(o) or all_of_it for o, all_of_it in enumerate(every)
    ]


@pytest.mark.parametrize("mark", [-1, 0, 7, 1 << 40])
def test_the_record_of_a_moved_mark_is_that_of_any_change(mark: int) -> None:
    plain = records.record(records.RecordKind.ACKS, cursor_state(CursorState(3, 1 << 33, mark, [], [])))
    assert mark_delete_record(3, 1 << 33, mark) == plain
