"""Where a time lies in a log in which some entries say no time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import pytest

from magnetar.broker.topic.ports import EntryRun
from magnetar.broker.topic.position_search import FoundEntry, first_not
from magnetar.storage.ledgers.stored_run import StoredRun

OLD, UNTOLD, NEW = b"old", b"untold", b"new"


class _Log:
    """Every other entry is cached, the rest is read."""

    def __init__(self, entries: list[bytes]) -> None:
        self.entries, self.first, self.end, self.asked = entries, 0, len(entries), 0
        self.reads: list[Callable[[], None]] = []

    def _run(self, ordinal: int) -> EntryRun:
        self.asked += 1
        return cast("EntryRun", StoredRun(ordinal, 1, ordinal, [self.entries[ordinal]], None))

    def cached(self, ordinal: int, entries_max: int, bytes_max: int) -> EntryRun | None:
        return self._run(ordinal) if ordinal % 2 else None

    def read(self, ordinal: int, entries_max: int, bytes_max: int, done: Callable[[EntryRun], None]) -> None:
        self.reads.append(lambda: done(self._run(ordinal)))


def found_in(entries: list[bytes]) -> tuple[FoundEntry, int]:
    log, answers = _Log(entries), list[Any]()
    first_not(cast("Any", log), {OLD: True, NEW: False, UNTOLD: None}.__getitem__, answers.append)
    while log.reads:
        log.reads.pop()()
    (answer,) = answers
    return answer, log.asked


@pytest.mark.parametrize(("untold", "passed"), [(1, True), (999, True), (1000, False), (1400, False)])
def test_a_thousand_entries_in_a_row_that_say_no_time_end_the_way_up(untold: int, passed: bool) -> None:
    """A seek must not read a whole topic of them; what is wanted counts as the first of them then."""
    count, middle = 3000, 1500
    entries = [OLD] * middle + [UNTOLD] * untold + [OLD] * (count - middle - untold - 1) + [NEW]
    answer, asked = found_in(entries)
    assert answer == (FoundEntry(count - 1, NEW) if passed else FoundEntry(middle, None))
    assert asked < 1000 + 30
