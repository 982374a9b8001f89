"""What is left in memory for consumers that lag by more than there is room for."""

from __future__ import annotations

from itertools import pairwise

import pytest

from magnetar.storage.ledgers.entry_cache import CachedRuns, EntryCache
from tests.support.cached_pieces import OVERHEAD, cursor, firsts, put, put_thirty, run

EACH = 100 + OVERHEAD
ROOM = 200
"""Pieces that the budget covers."""


@pytest.mark.parametrize(("lag", "least"), [(180, 1.0), (210, 0.7), (250, 0.5), (400, 0.25)])
def test_a_consumer_finds_as_much_as_there_is_room_for(lag: int, least: float) -> None:
    """While the oldest went first, one that lagged by 42 MB of 40 found nothing at all, and read everything again."""
    sub = cursor(-1)
    cache, cached = EntryCache(ROOM * EACH), CachedRuns({"s": sub})
    missed = 0
    for newest in range(4_000):
        put(cache, cached, newest, [100])
        wanted = newest - lag
        if wanted < 0:
            continue
        if cached.find(wanted, 1, 1 << 20) is None:
            missed += 1
            for first in range(wanted, min(wanted + 20, newest + 1)):
                cache.put_read(cached, run(first, [100]), 100)
        sub.acked.mark_delete = wanted
    assert cache.bytes <= ROOM * EACH
    read = min(20 * missed, 4_000 - lag)
    assert 1 - read / (4_000 - lag) >= least


def test_what_is_left_to_the_disk_lies_together_there() -> None:
    """After the newest went, nothing is taken in until an eighth of what is waited for was acknowledged."""
    sub = cursor(-1)
    cache, cached = EntryCache(ROOM * EACH), CachedRuns({"s": sub})
    for first in range(1_000):
        put(cache, cached, first, [100])
        sub.acked.mark_delete = first // 2
    holes = [later - before - 1 for before, later in pairwise(firsts(cached)) if later - before > 1]
    assert holes
    assert min(holes) >= 8


def test_what_was_waited_for_during_a_whole_period_goes_before_what_has_just_come() -> None:
    """A consumer that takes nothing does not keep the others' entries out for ever."""
    stuck, sub = cursor(-1), cursor(-1)
    cache, standing, moving = EntryCache(20 * EACH), CachedRuns({"s": stuck}), CachedRuns({"s": sub})
    put_thirty(cache, standing)
    assert firsts(standing) == [*range(16), *range(26, 30)]
    cache.tidy()
    for first in range(30):
        put(cache, moving, first, [100])
    assert firsts(standing) == [*range(26, 30)], "they were written a moment before"
    assert firsts(moving) == [*range(12), *range(26, 30)]
    cache.tidy()
    sub.acked.mark_delete = 29
    for first in range(30, 60):
        put(cache, moving, first, [100])
    assert firsts(standing) == []


def test_room_is_taken_again_when_it_is_free() -> None:
    sub = cursor(-1)
    cache, cached = EntryCache(20 * EACH), CachedRuns({"s": sub})
    put_thirty(cache, cached)
    sub.acked.mark_delete = 29
    cache.tidy()
    for first in range(30, 46):
        put(cache, cached, first, [100])
    assert firsts(cached) == [*range(30, 46)]
