"""What the cache of entries lets go of in a quiet moment, whatever room there is."""

from __future__ import annotations

from magnetar.storage.ledgers.entry_cache import CachedRuns, EntryCache
from tests.support.cached_pieces import OVERHEAD, cursor, firsts, put, run


def test_what_is_read_of_a_log_without_cursors_stays_for_a_moment() -> None:
    """A compacted view is read through the cursors of another log."""
    each = 100 + OVERHEAD
    cache, cached = EntryCache(20 * each), CachedRuns()
    for first in range(20):
        cache.put_read(cached, run(first, [100]), 100)
    cache.tidy()
    assert firsts(cached) == [*range(12, 20)]
    cache.put_read(cached, run(20, [100]), 100)
    cache.tidy()
    assert (firsts(cached), cache.bytes) == ([20], each)


def test_what_consumers_waited_for_goes_when_they_have_gone() -> None:
    """Large pieces, and what was read: 32 MB of a backlog stayed with its topic, though its consumers had left."""
    sub = cursor(-1)
    cache, cached = EntryCache(50_000), CachedRuns({"s": sub})
    put(cache, cached, 0, [100] * 20)
    put(cache, cached, 100, [9_000])
    put(cache, cached, 200, [9_000])
    cache.put_read(cached, run(300, [9_000]), 9_000)
    cache.tidy()
    cache.tidy()
    assert firsts(cached) == [0, 100, 200, 300]
    sub.attended = False
    cache.put_read(cached, run(400, [9_000]), 9_000)
    cache.tidy()
    assert firsts(cached) == [0, 400], "what is packed stays, and what came after the last moment"
    cache.tidy()
    assert firsts(cached) == [0]
    sub.acked.mark_delete = 1000
    cache.tidy()
    assert (firsts(cached), cache.bytes, cache.entries_put - cache.entries_gone) == ([], 0, 0)


def test_a_quiet_moment_sifts_a_thousand_pieces_of_each_part() -> None:
    sub = cursor(-1)
    cache, cached = EntryCache(10 << 20), CachedRuns({"s": sub})
    for first in range(2500):
        cache.put_read(cached, run(first, [100]), 100)
    cache.tidy()
    sub.attended = False
    left = []
    for _ in range(3):
        cache.tidy()
        left.append(len(cached.runs))
    assert left == [1500, 500, 0]


def test_what_was_cleared_goes_in_a_quiet_moment() -> None:
    cache, gone, other = EntryCache(1 << 20), CachedRuns(), CachedRuns()
    for first in range(5):
        put(cache, other, first, [100])
    put(cache, gone, 0, [100])
    cache.clear(gone)
    cache.tidy()
    # nobody waits for the others, but they were written a moment ago
    assert (firsts(other), cache.bytes) == ([0, 1, 2, 3, 4], 5 * (100 + OVERHEAD))


def test_what_was_written_before_the_last_quiet_moment_goes_in_the_next_unless_it_is_waited_for() -> None:
    cache, cached, waited = EntryCache(1 << 20), CachedRuns(), CachedRuns({"s": cursor(-1)})
    for first in range(5):
        put(cache, cached, first, [100])
    put(cache, waited, 0, [100])
    assert not cache.tidy()
    put(cache, cached, 5, [100])
    assert (firsts(cached), firsts(waited)) == ([0, 1, 2, 3, 4, 5], [0])
    assert not cache.tidy()
    assert (firsts(cached), firsts(waited), cache.bytes) == ([5], [0], 2 * (100 + OVERHEAD))
    cache.tidy()
    assert (firsts(cached), firsts(waited), cache.bytes) == ([], [0], 100 + OVERHEAD)


def test_a_quiet_moment_looks_at_a_thousand_pieces_at_once() -> None:
    cache, cached = EntryCache(10 << 20), CachedRuns()
    for first in range(2500):
        put(cache, cached, first, [100])
    assert not cache.tidy()
    put(cache, cached, 2500, [100])
    assert [(cache.tidy(), len(cached.runs)) for _ in range(3)] == [(True, 1501), (True, 501), (False, 1)]


def test_quiet_moments_count_what_came_since_though_others_were_pushed_out_or_cleared() -> None:
    each = 100 + OVERHEAD
    cache, cached, gone = EntryCache(50 * each), CachedRuns(), CachedRuns()
    for first in range(10):
        put(cache, gone, first, [100])
    cache.tidy()
    cache.clear(gone)
    for first in range(4):
        put(cache, cached, first, [100])
    cache.tidy()
    assert firsts(cached) == [0, 1, 2, 3], "they came after the last moment"
    for first in range(4, 12):
        put(cache, cached, first, [100])
    assert firsts(cached) == [*range(2, 12)], "two were pushed out"
    cache.tidy()
    assert firsts(cached) == [*range(4, 12)]
