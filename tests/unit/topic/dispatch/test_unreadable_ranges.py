"""What an operator is shown of entries that were skipped, against a list of them."""

from __future__ import annotations

import random
from itertools import groupby

import pytest

from magnetar.broker.topic.dispatch.unreadable_ranges import UnreadableRanges


def runs(ordinals: list[int]) -> list[tuple[int, int]]:
    """Those that follow each other, half-open."""
    grouped = [list(group) for _, group in groupby(enumerate(ordinals), lambda pair: pair[1] - pair[0])]
    return [(group[0][1], group[-1][1] + 1) for group in grouped]


@pytest.mark.parametrize("seed", range(10))
def test_what_was_skipped_is_shown_in_runs_and_counted_by_what_was_not_acknowledged(seed: int) -> None:
    rng = random.Random(seed)
    ranges, skipped, counted, at = UnreadableRanges(), list[int](), 0, 0
    for _ in range(30):
        at += rng.choice((0, 0, 1, 5))
        if rng.random() < 0.5:
            stop, left = at + rng.randint(1, 4), rng.randint(0, 4)
            assert ranges.met(at, stop)
            assert not ranges.met(at, stop), "it is named once"
            assert ranges.waiting == (at, stop)
            ranges.passed(left)
            assert ranges.waiting is None
            assert ranges.met(at, stop), "and again if it is met after it was skipped: a reader went back"
            ranges.waiting = None
            skipped += range(at, stop)
            counted += left
            at = stop
        else:
            some = sorted(rng.sample(range(at, at + 6), rng.randint(0, 3)))
            ranges.add(some)
            skipped += some
            counted += len(some)
            at = max([at, *(ordinal + 1 for ordinal in some)])
        assert (ranges.skipped, ranges.entries_skipped) == (runs(skipped), counted)


@pytest.mark.parametrize("other", [(4, 8), (3, 9), (5, 8)])
def test_another_range_is_news(other: tuple[int, int]) -> None:
    ranges = UnreadableRanges()
    assert ranges.met(4, 9)
    assert ranges.met(*other)


def test_a_thousand_ranges_are_shown_and_more_are_counted() -> None:
    ranges = UnreadableRanges()
    ranges.add(range(0, 2000, 2))
    assert (len(ranges.skipped), ranges.entries_skipped) == (1000, 1000)
    ranges.add([1999])
    assert ranges.skipped[-1] == (1998, 2000), "what follows the last one is shown with it"
    ranges.add([3000, 3001])
    assert (len(ranges.skipped), ranges.skipped[-1], ranges.entries_skipped) == (1000, (1998, 2000), 1003)
