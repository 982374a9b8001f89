"""When a ledger is full: at exactly its limits, but not before it is old enough, and never while it is empty."""

from __future__ import annotations

import pytest

from magnetar.storage.ledgers.ledger import Rollover

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
