"""How far a record may be ahead of what a start knows, and what may not overlap: anything else is left out as damage.

The numbers are those that lost blocks can leave: 2**40 ids, 2**32 entries, 2**50 messages.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import pytest

from magnetar.storage.log import cursor_records, records
from magnetar.storage.log.records import RecordKind
from magnetar.storage.replay.recovered import CURSOR, LEDGER, LOG, Recovered
from magnetar.storage.replay.replay import Replay
from tests.support.store_lives import disk, opened, run

IDS, ENTRIES, MESSAGES = 1 << 40, 1 << 32, 1 << 50


def extent(
    log: int, ledger: int, entry: int, ordinal: int, index: int | None = None, *, entries: int = 1, moved: bool = False
) -> records.RawRecord:
    head = log, ledger, entry, ordinal, ordinal if index is None else index, 0, entries
    body = struct.pack(f"<QQQQQQI{entries}I", *head, *[1] * entries) + b"x" * entries
    return records.RawRecord(RecordKind.EXTENT, records.MOVED if moved else 0, 0, body)


def rare(kind: RecordKind, **fields: Any) -> records.RawRecord:
    return records.RawRecord(kind, 0, 0, records.as_json(fields).encode())


def ledger(number: int, ordinal: int, log: int = 1, index: int = 0) -> records.RawRecord:
    return rare(RecordKind.LEDGER, log=log, ledger=number, ordinal=ordinal, index=index, ms=5)


def cursor(number: int, *ranges: tuple[int, int]) -> records.RawRecord:
    body = cursor_records.cursor_record("s", {}, cursor_records.CursorState(1, number, -1, ranges, []))
    return records.RawRecord(RecordKind.CURSOR, 0, 0, body)


def acks(number: int, *ranges: tuple[int, int]) -> records.RawRecord:
    body = cursor_records.cursor_state(cursor_records.CursorState(1, number, -1, ranges, []))
    return records.RawRecord(RecordKind.ACKS, 0, 0, body)


def replayed(scenario: Callable[[Replay, Recovered], None]) -> None:
    """A start that knows log 1 with ledger 1, of which entries 0 to 4 are there."""

    async def main() -> None:
        store = opened(disk())
        found = Recovered()
        replay = Replay(found, store)
        for record in (
            rare(RecordKind.LOG, log=1, name="t", properties={}),
            ledger(1, 0),
            extent(1, 1, 0, 0, entries=5),
        ):
            replay.record(1, 64, record)
        scenario(replay, found)
        await store.close()

    run(main())


def takes(replay: Replay, record: records.RawRecord) -> bool:
    try:
        replay.record(1, 640, record)
    except records.RecordError:
        return False
    return True


@pytest.mark.parametrize(
    ("which", "make"),
    [
        (LOG, lambda number: rare(RecordKind.LOG, log=number, name="u", properties={})),
        (LOG, lambda number: extent(number, 2, 0, 0)),
        (LEDGER, lambda number: ledger(number, 5)),
        (LEDGER, lambda number: extent(1, number, 0, 5)),
        (CURSOR, cursor),
        (CURSOR, acks),
    ],
)  # fmt: skip
def test_an_id_is_not_too_far_ahead_of_the_highest_one(which: int, make: Callable[[int], records.RawRecord]) -> None:
    def scenario(replay: Replay, found: Recovered) -> None:
        last = found.ids[which] + IDS
        before = list(found.ids)
        assert not takes(replay, make(last + 1))
        assert found.ids[which] == before[which]
        assert takes(replay, make(last))
        assert found.ids[which] == last
        assert takes(replay, make(max(last - 1, 2))), "those below are no news"
        assert found.ids[which] == last

    replayed(scenario)


@pytest.mark.parametrize(
    "make",
    [
        lambda ordinal: extent(1, 1, ordinal, ordinal, 5),
        lambda ordinal: ledger(2, ordinal),
        lambda ordinal: rare(RecordKind.TRIMMED, log=1, ordinal=ordinal),
        lambda ordinal: cursor(1, (0, 3), (7, ordinal)),
    ],
)
def test_entries_are_not_too_far_ahead_of_those_that_are_there(make: Callable[[int], records.RawRecord]) -> None:
    def scenario(replay: Replay, found: Recovered) -> None:
        assert not takes(replay, make(5 + ENTRIES + 1))
        assert found.logs[1].end == 5
        assert takes(replay, make(5 + ENTRIES))

    replayed(scenario)


def test_acknowledgements_of_a_cursor_that_is_known_are_judged_as_well() -> None:
    def scenario(replay: Replay, found: Recovered) -> None:
        assert takes(replay, cursor(1))
        assert not takes(replay, acks(1, (0, 3), (7, 5 + ENTRIES + 1)))
        assert takes(replay, acks(1, (0, 3), (7, 5 + ENTRIES)))

    replayed(scenario)


def test_messages_are_not_too_far_ahead_of_those_that_were_counted() -> None:
    def scenario(replay: Replay, found: Recovered) -> None:
        assert not takes(replay, extent(1, 1, 5, 5, 5 + MESSAGES + 1))
        assert takes(replay, extent(1, 1, 5, 5, 5 + MESSAGES))
        assert found.logs[1].index == 5 + MESSAGES + 1

    replayed(scenario)


@pytest.mark.parametrize("field", ["ordinal", "index"])
def test_a_log_whose_birth_is_lost_begins_somewhere_below_2_61(field: str) -> None:
    def scenario(replay: Replay, found: Recovered) -> None:
        def begins(log: int, at: int) -> records.RawRecord:
            return extent(log, log, 3, at, 7) if field == "ordinal" else extent(log, log, 3, 7, at)

        assert not takes(replay, begins(2, 1 << 61))
        assert set(found.logs) == {1}
        assert takes(replay, begins(3, (1 << 61) - 1))
        assert set(found.logs) == {1, 3}

    replayed(scenario)


@pytest.mark.parametrize(("known", "damaged", "kept"), [(1, False, True), (2, False, False), (2, True, True)])
def test_what_the_checkpoint_does_not_know_of_earlier_logs_was_deleted(known: int, damaged: bool, kept: bool) -> None:
    """Unless blocks before it cannot be read, which may have said their names."""

    def scenario(replay: Replay, found: Recovered) -> None:
        replay.logs.oldest, replay.logs.damaged = known, damaged
        assert takes(replay, extent(2, 2, 0, 0))
        assert (2 in found.logs) is kept

    replayed(scenario)


@pytest.mark.parametrize(
    ("record", "good"),
    [
        (ledger(2, 5), True), (ledger(2, 4), False), (ledger(2, 9), True),
        (extent(1, 1, 5, 5), True), (extent(1, 1, 6, 5), False), (extent(1, 1, 4, 5), False),
        (extent(1, 2, 0, 5), True), (extent(1, 2, 1, 6), True), (extent(1, 2, 1, 5), False),
    ],
)  # fmt: skip
def test_a_ledger_lies_in_no_other_one(record: records.RawRecord, good: bool) -> None:
    def scenario(replay: Replay, found: Recovered) -> None:
        assert takes(replay, record) is good
        assert found.logs[1].table.ledgers[0].entries == (6 if good and record == extent(1, 1, 5, 5) else 5)

    replayed(scenario)


@pytest.mark.parametrize(("entries", "good"), [(4, True), (5, False)])
def test_a_ledger_ends_before_the_next_one_begins(entries: int, good: bool) -> None:
    """Entries that stand in the log behind those of a later ledger: it began where room was left for them."""

    def scenario(replay: Replay, found: Recovered) -> None:
        assert takes(replay, ledger(3, 9))
        assert takes(replay, extent(1, 1, 5, 5, entries=entries)) is good

    replayed(scenario)


@pytest.mark.parametrize(
    ("number", "later", "lost"),
    [
        (8, None, True), (8, cursor(8), False), (8, rare(RecordKind.CURSOR_DELETED, log=1, cursor=8), False),
        (8, rare(RecordKind.CURSOR_DELETED, log=1, cursor=9), True), (8, rare(RecordKind.LOG_DELETED, log=1), False),
        (7, None, False),
    ],
)  # fmt: skip
def test_a_cursor_of_which_acknowledgements_alone_are_left_is_named_as_lost(
    number: int, later: records.RawRecord | None, lost: bool
) -> None:
    """Unless a later record says its name or that it was deleted, or the checkpoint would have known of it."""

    def scenario(replay: Replay, found: Recovered) -> None:
        replay._cursors.oldest = 7
        assert takes(replay, acks(number, (0, 3)))
        assert later is None or takes(replay, later)
        replay.settle()
        said = [f"t: nothing that can be read says the name of subscription {number}, on which entries were"] * lost
        assert [text.partition(" acknowledged")[0] for text in found.damage] == said

    replayed(scenario)


@pytest.mark.parametrize(
    ("record", "good"),
    [
        (extent(1, 2, 0, 5), True), (extent(1, 2, 1, 6), True), (extent(1, 2, 1, 5), False),
        (extent(1, 1, 0, 5), False), (extent(1, 1, 5, 5), False), (extent(1, 3, 0, 5), True),
    ],
)  # fmt: skip
def test_entries_of_a_ledger_count_from_where_it_began(record: records.RawRecord, good: bool) -> None:
    """Ledger 2 was opened behind the five entries and has none yet; of ledger 3 the opening is lost."""

    def scenario(replay: Replay, found: Recovered) -> None:
        assert takes(replay, ledger(2, 5))
        assert takes(replay, record) is good

    replayed(scenario)
