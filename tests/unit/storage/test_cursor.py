"""A cursor without a journal (SEMANTICS 4.3.2): the same acknowledgements, and nothing kept for a disk."""

from __future__ import annotations

from magnetar.storage.cursor import Cursor

ENTRIES = 1000


class Ends:
    id = 1
    first = 0
    end = ENTRIES


def test_a_non_durable_cursor_remembers_no_changes_for_a_record() -> None:
    """Readers may live for weeks: every acknowledged entry once stayed in a list that nobody emptied."""
    cursor = Cursor(Ends(), 1, "reader", -1, None)
    told: list[str] = []
    for ordinal in range(0, ENTRIES, 2):
        cursor.acknowledge((ordinal,), lambda: told.append("whole"))
        cursor.acknowledge_indexes(ordinal + 1, (0b10,), 2, lambda: told.append("part"))
    assert len(told) == ENTRIES
    assert not cursor._fresh
    assert not cursor._dirty_partial
    assert cursor.backlog() == ENTRIES // 2
    assert cursor.remaining_indexes(1) == (0b10,)


def test_the_last_partly_acknowledged_batch_switches_the_question_off() -> None:
    """``has_partial_batches`` is what lets delivery go in slices; it went back to False only by the batch's own ack."""
    cursor = Cursor(Ends(), 1, "reader", -1, None)
    cursor.acknowledge_indexes(3, (0b10,), 2)
    assert cursor.has_partial_batches
    cursor.acknowledge((3,))
    assert not cursor.has_partial_batches
