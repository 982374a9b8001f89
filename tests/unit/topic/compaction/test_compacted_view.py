"""Which places of the topic a view knows: ledgers of which something stays, each to the end of what stays."""

from __future__ import annotations

from typing import Any, cast

import pytest

from magnetar.broker.topic.compaction.compacted_view import CompactedView, unpack
from magnetar.compaction.compaction_cursor import CompactedLedger, ViewFacts
from magnetar.compaction.view_entries import pack
from magnetar.model.ids import Position
from magnetar.storage.ledgers.stored_run import StoredRun

VIEW = CompactedView(
    cast("Any", None),
    ViewFacts(
        1, 1, 30, 100,
        tuple(CompactedLedger(*one) for one in ((7, 2, 10), (9, 15, 21), (12, 23, 26), (13, 28, 29))),
    ),
)  # fmt: skip


@pytest.mark.parametrize(
    ("position", "ordinal"),
    [
        *(((5, 0), 2), ((7, -1), 2), ((7, 0), 2), ((7, 3), 5), ((7, 8), 10), ((7, 100), 10)),
        *(((8, 0), 15), ((8, 100), 15), ((9, 0), 15), ((9, 5), 20), ((9, 6), 21), ((9, 100), 21), ((10, 0), 23)),
        *(((11, 9), 23), ((12, 0), 23), ((12, 3), 26), ((13, 0), 28), ((13, 1), 29), ((14, 0), 30), ((99, 0), 30)),
    ],
)
def test_what_may_stay_is_looked_for_from_a_position_on(position: tuple[int, int], ordinal: int) -> None:
    assert VIEW.ordinal(Position(*position)) == ordinal


@pytest.mark.parametrize(
    ("position", "ordinal"),
    [
        *(((5, 0), None), ((7, -1), None), ((7, 0), 2), ((7, 7), 9), ((7, 8), None)),
        *(((8, 0), None), ((9, 0), 15), ((9, 5), 20), ((9, 6), None), ((10, 0), None)),
        *(((12, 2), 25), ((12, 3), None), ((13, 0), 28), ((13, 1), None), ((14, 0), None)),
    ],
)
def test_an_exact_position_is_one_of_a_ledger_up_to_the_last_that_stays(
    position: tuple[int, int], ordinal: int | None
) -> None:
    assert VIEW.exact(Position(*position)) == ordinal


@pytest.mark.parametrize(
    ("ordinal", "position"),
    [
        *((0, None), (1, None), (2, (7, 0)), (9, (7, 7)), (10, None), (14, None)),
        *((15, (9, 0)), (20, (9, 5)), (21, None), (22, None), (23, (12, 0)), (28, (13, 0)), (29, None)),
    ],
)
def test_an_ordinal_has_a_position_where_the_view_knows_its_ledger(
    ordinal: int, position: tuple[int, int] | None
) -> None:
    assert VIEW.position(ordinal) == (None if position is None else Position(*position))


UNKNOWN = -1
PLACES = [(3, 7, 0), (4, 7, 1), (5, 7, 2), (7, 7, 4), (8, 9, 0), (9, 9, 1), (10, 9, 2)]
"""Two gaps: an entry that went, and a new ledger."""


@pytest.mark.parametrize(
    ("indexes", "counts", "runs"),
    [
        ([UNKNOWN] * 7, None, [3, 1, 3]),
        ([UNKNOWN] * 7, [1, 5, 1, 1, 2, 2, 2], [3, 1, 3]),
        ([60, 61, 62, 64, 65, 66, 67], None, [3, 1, 3]),
        ([60, 61, 62, 64, 65, 66, 68], None, [3, 1, 2, 1]),
        ([60, 62, 67, 70, 71, 73, 74], [2, 5, 1, 1, 2, 1, 9], [3, 1, 3]),
        ([60, 61, 62, 70, 71, 72, 74], [2, 1, 1, 1, 1, 2, 9], [1, 2, 1, 3]),
        ([60, 61, UNKNOWN, 64, 65, UNKNOWN, UNKNOWN], None, [2, 1, 1, 1, 2]),
    ],
)
def test_what_stands_side_by_side_in_the_topic_is_one_run(
    indexes: list[int], counts: list[int] | None, runs: list[int]
) -> None:
    """Ordinals, places in the ledger and message indexes go on: each entry of a run has those that the run says."""
    packed = [pack(*place, b"%d" % at, index) for at, (place, index) in enumerate(zip(PLACES, indexes, strict=True))]
    found = unpack(StoredRun(0, 1, 0, packed, counts))
    assert [len(run.entries) for run in found] == runs
    assert [entry for run in found for entry in run.entries] == [b"%d" % at for at in range(7)]
    if counts is not None:
        assert [count for run in found for count in run.counts or ()] == counts
    at = 0
    for run in found:
        assert (run.first, run.ledger, run.entry) == PLACES[at]
        assert max(run.message_index, UNKNOWN) == indexes[at]
        assert (run.counts is None) == (counts is None)
        at += len(run.entries)
