"""A cursor without a journal (rule 4.3.2): the same acknowledgements, and nothing kept for a disk."""

from __future__ import annotations

import pytest

from magnetar.storage.ledgers.cursor import Cursor
from magnetar.storage.log.records import CursorState

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
