"""The cache of entries: its account is exact, its pieces are found and cut to the entry and to the byte."""

from __future__ import annotations

import gc
import random
import tracemalloc

import pytest

from magnetar.storage.ledgers.entry_cache import CachedRuns, EntryCache
from magnetar.storage.ledgers.stored_run import PackedRun, StoredRun, cut
from tests.support.cached_pieces import ENTRY, OVERHEAD, cursor, firsts, put, put_thirty, run


def test_the_account_counts_bytes_and_what_python_adds() -> None:
    cache, cached = EntryCache(1 << 20), CachedRuns()
    assert cache.bytes == 0
    put(cache, cached, 0, [10, 20, 30])
    assert cache.bytes == 60 + OVERHEAD + 2 * ENTRY
    put(cache, cached, 3, [5])
    assert cache.bytes == 65 + 2 * OVERHEAD + 2 * ENTRY


@pytest.mark.parametrize("entries", [1, 2, 1000])
def test_the_account_is_what_the_memory_is(entries: int) -> None:
    """Within a quarter, also where every entry came alone: the budget was for a third of what such entries took."""
    cache, logs, number = EntryCache(1 << 30), [CachedRuns() for _ in range(100)], 20_000
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for first in range(0, number // len(logs), entries):
            for log in logs:
                place = 1_000_000 + first
                data = [bytes([place % 256]) * 140 for _ in range(entries)]
                cache.put(log, StoredRun(place, 10_000 + place % 7, place + 300, data, None), 140 * entries)
        used = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    held = sum(len(piece.entries) for log in logs for piece in log.runs)
    assert held >= number
    assert cache.bytes == pytest.approx(used, rel=0.25)


@pytest.mark.parametrize("entries", [16, 1000])
def test_the_account_of_what_is_packed_is_what_the_memory_is(entries: int) -> None:
    cache, log = EntryCache(4 << 20), CachedRuns({"s": cursor(-1)})
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for first in range(0, 20_000, entries):
            data = [bytes([first % 256]) * 140 for _ in range(entries)]
            cache.put(log, StoredRun(first, 7, first, data, None), 140 * entries)
        used = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert sum(isinstance(piece, PackedRun) for piece in log.runs) > len(log.runs) // 2
    assert cache.bytes == pytest.approx(used, rel=0.25)


def test_what_nobody_waits_for_has_a_fifth_and_goes_in_the_order_it_came_and_one_piece_stays() -> None:
    """A 64th of the part goes at once, so that not every piece that comes has to look at all parts."""
    each = 100 + OVERHEAD
    cache, one, other = EntryCache(5 * 128 * each), CachedRuns(), CachedRuns()
    put(cache, one, 0, [100])
    put(cache, other, 7, [100])
    for first in range(1, 127):
        put(cache, one, first, [100])
    assert (cache.bytes, len(one.runs), firsts(other)) == (128 * each, 127, [7]), "the budget itself is allowed"
    put(cache, one, 127, [100])
    assert (cache.bytes, firsts(one), firsts(other)) == (126 * each, list(range(2, 128)), [])
    assert (cache.entries_put, cache.entries_gone, cache.evictions) == (129, 3, 3)
    put(cache, one, 128, [128 * each])
    assert (cache.bytes, firsts(one)) == (128 * each + OVERHEAD, [128]), "the newest stays whatever its size"
    put(cache, one, 129, [1])
    assert (cache.bytes, firsts(one)) == (1 + OVERHEAD, [129])


def test_what_a_subscription_waits_for_stays_while_there_is_room_and_goes_when_it_was_acknowledged() -> None:
    each = 100 + OVERHEAD
    sub = cursor(9)
    cache, cached = EntryCache(20 * each), CachedRuns({"s": sub, "ahead": cursor(1 << 30, 2)})
    put_thirty(cache, cached)
    assert (cache.bytes, firsts(cached)) == (20 * each, [*range(10, 30)]), "the oldest of them had no room"
    sub.acked.mark_delete = 20
    put(cache, cached, 30, [100])
    assert firsts(cached) == [*range(21, 31)], "with the next piece"
    sub.acked.mark_delete = 26
    cache.tidy()
    assert (cache.bytes, firsts(cached)) == (4 * each, [27, 28, 29, 30]), "or in a quiet moment"
    assert cache.entries_put - cache.entries_gone == 4


def test_what_was_read_leaves_less_room_for_what_is_written_at_once() -> None:
    """The budget holds between two looks at all parts as well."""
    each = 100 + OVERHEAD
    sub = cursor(-1)
    cache, cached = EntryCache(40 * each), CachedRuns({"s": sub, "ahead": cursor(1 << 30, 2)})
    for first in range(32):
        put(cache, cached, first, [100])
    cache.tidy()
    cache.tidy()
    assert cache.bytes == 32 * each, "they are waited for"
    other = CachedRuns()
    cache.put_read(other, run(0, [8 * each - OVERHEAD]), 8 * each - OVERHEAD)
    assert cache.bytes == 40 * each, "the budget itself is allowed"
    for first in range(32, 48):
        put(cache, cached, first, [100])
        assert cache.bytes <= 40 * each


def test_a_subscription_without_consumers_keeps_only_what_is_packed() -> None:
    cache, cached = EntryCache(5 * 10_000), CachedRuns({"s": cursor(-1, attended=False)})
    put(cache, cached, 0, [100] * 20)
    put(cache, cached, 100, [5_000])
    put(cache, cached, 200, [9_000])
    put(cache, cached, 300, [9_000])
    assert firsts(cached) == [0, 300]


def test_a_reader_is_waited_for_like_a_subscription_until_it_has_gone() -> None:
    each = 100 + OVERHEAD
    cache, cached, reader = EntryCache(20 * each), CachedRuns(), cursor(-1)
    cached.came(reader)
    cached.came(cursor(1 << 30, 2))
    put_thirty(cache, cached)
    assert firsts(cached) == [*range(16), *range(26, 30)]
    cached.went(reader)
    cache.tidy()
    assert firsts(cached) == [*range(26, 30)]
    cached.came(reader)
    cached.all_went()
    assert not cached.awaited(1 << 20)


def test_what_was_read_has_two_fifths_and_goes_when_it_was_acknowledged() -> None:
    each = 100 + OVERHEAD
    sub = cursor(-1)
    cache, cached = EntryCache(20 * each), CachedRuns({"s": sub})
    for first in range(20):
        cache.put_read(cached, run(first, [100]), 100)
    assert (cache.bytes, firsts(cached)) == (8 * each, [*range(12, 20)])
    sub.acked.mark_delete = 17
    put(cache, cached, 50, [100])
    assert firsts(cached) == [12, 13, 14, 15, 16, 17, 18, 19, 50], "a put that makes no room looks at nothing"
    cache.tidy()
    assert firsts(cached) == [18, 19, 50]


def test_what_two_have_read_at_the_same_time_is_held_and_counted_once() -> None:
    """Each began to read before the other's piece was there; the second may begin inside the first."""
    cache, cached = EntryCache(1 << 20), CachedRuns()
    cache.put_read(cached, run(10, [1] * 5), 5)
    for first in range(10, 15):
        cache.put_read(cached, run(first, [1] * 9), 9)
        assert (firsts(cached), cache.bytes, cache.entries_put) == ([10], 5 + OVERHEAD + 4 * ENTRY, 5)
    cache.clear(cached)
    assert (cache.bytes, cache.entries_gone, cache.evictions) == (0, 5, 1)


def test_what_is_read_makes_room_for_itself_before_what_was_written_a_moment_ago() -> None:
    each = 100 + OVERHEAD
    cache, cached = EntryCache(20 * each), CachedRuns({"s": cursor(-1)})
    put_thirty(cache, cached)
    for first in range(100, 120):
        cache.put_read(cached, run(first, [100]), 100)
    assert (cache.bytes, firsts(cached)) == (20 * each, [*range(8), *range(26, 30), *range(112, 120)])


def test_a_smaller_budget_holds_at_once() -> None:
    each = 100 + OVERHEAD
    cache, cached = EntryCache(20 * each), CachedRuns({"s": cursor(-1)})
    put_thirty(cache, cached)
    cache.set_bytes_max(10 * each)
    assert (cache.bytes, firsts(cached)) == (10 * each, [*range(8), 28, 29])
    cache.set_bytes_max(1)
    assert (cache.bytes, firsts(cached)) == (each, [29])


@pytest.mark.parametrize("seed", range(20))
def test_packed_pieces_are_cut_as_others_are(seed: int) -> None:
    rng = random.Random(seed)
    sizes = [rng.choice((0, 1, 5, 100, 900)) for _ in range(rng.randint(16, 40))]
    counts = rng.choice((None, [rng.randint(1, 9) for _ in sizes]))
    whole = run(50, sizes, counts)._replace(message_index=rng.choice((0, 12_345)))
    cache, cached = EntryCache(5 * 20_000), CachedRuns({"s": cursor(-1)})
    cache.put(cached, whole, sum(sizes))
    put(cache, cached, 1000, [25_000])
    assert isinstance(cached.runs[0], PackedRun)
    for _ in range(60):
        low, entries_max = rng.randrange(len(sizes)), rng.randint(1, 50)
        bytes_max = rng.choice((1, 100, 1000, 16_384, 1 << 20))
        found = cached.find(50 + low, entries_max, bytes_max)
        assert found is not None
        assert tuple(found) == tuple(cut(whole, low, entries_max, bytes_max))
        assert found.message_index == whole.message_index + (low if counts is None else sum(counts[:low]))
    assert cached.find(50 + len(sizes), 1, 1) is None


def test_few_and_large_entries_are_not_packed() -> None:
    cache, cached = EntryCache(1 << 20), CachedRuns({"s": cursor(-1)})
    put(cache, cached, 0, [100] * 15)
    put(cache, cached, 20, [1024] * 20)
    put(cache, cached, 100, [300_000])
    assert firsts(cached) == [0, 20, 100]
    assert not any(isinstance(piece, PackedRun) for piece in cached.runs)


def test_a_log_that_was_cleared_gives_its_budget_back_when_half_of_all_pieces_are_such() -> None:
    each = 100 + OVERHEAD
    cache, gone, other = EntryCache(1 << 20), CachedRuns(), CachedRuns()
    for first in range(5):
        put(cache, other, first, [100])
    for first in range(4):
        put(cache, gone, first, [100])
    cache.clear(gone)
    assert (firsts(gone), cache.bytes) == ([], 9 * each)
    put(cache, gone, 9, [100])
    cache.clear(other)
    assert (firsts(gone), firsts(other), cache.bytes) == ([9], [], each)
    cache.clear(gone)
    assert cache.bytes == 0


def test_a_piece_that_begins_inside_another_is_not_remembered() -> None:
    cache, cached = EntryCache(1 << 20), CachedRuns()
    put(cache, cached, 10, [1] * 5)
    put(cache, cached, 30, [1])
    before = cache.bytes
    for first in (10, 12, 14, 30):
        put(cache, cached, first, [1] * 9)
        assert (firsts(cached), cache.bytes) == ([10, 30], before)
    put(cache, cached, 15, [1])
    put(cache, cached, 5, [1] * 2)
    put(cache, cached, 7, [1])
    assert firsts(cached) == [5, 7, 10, 15, 30]


def test_a_piece_that_begins_inside_the_newest_is_not_remembered_and_one_right_behind_it_is() -> None:
    """Also where it reaches further: its entries would be held, and counted, twice."""
    cache, cached = EntryCache(1 << 20), CachedRuns()
    put(cache, cached, 10, [1] * 5)
    before = cache.bytes
    for first in range(10, 15):
        put(cache, cached, first, [1] * 9)
        assert (firsts(cached), cache.bytes) == ([10], before)
    put(cache, cached, 15, [1])
    assert (firsts(cached), cache.bytes) == ([10, 15], before + 1 + OVERHEAD)
    found = cached.find(14, 100, 1 << 20)
    assert found is not None
    assert (found.first, len(found.entries)) == (14, 1)


def test_pieces_are_found_by_any_of_their_entries_and_by_no_other() -> None:
    cache, cached = EntryCache(1 << 20), CachedRuns()
    for first, length in ((0, 3), (5, 2), (7, 1), (20, 4)):
        put(cache, cached, first, [9] * length)
    there = {0, 1, 2, 5, 6, 7, 20, 21, 22, 23}
    for ordinal in range(-2, 30):
        found = cached.find(ordinal, 100, 1 << 20)
        assert (found is not None) == (ordinal in there)
        if found is not None:
            assert (found.first, found.entry) == (ordinal, ordinal + 100)


@pytest.mark.parametrize("seed", range(20))
def test_cut_is_to_the_entry_and_to_the_byte(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(60):
        sizes = [rng.choice((1, 5, 16, 100, 16_384, 20_000)) for _ in range(rng.randint(1, 12))]
        counts = rng.choice((None, [rng.randint(1, 9) for _ in sizes]))
        whole = run(50, sizes, counts)
        low = rng.randrange(len(sizes))
        entries_max, bytes_max = rng.randint(1, 14), rng.choice((1, 100, 16_384, 16_385, 40_000, 1 << 20))
        wanted = 0
        while low + wanted < len(sizes) and wanted < entries_max:
            if wanted and sum(sizes[low : low + wanted + 1]) > bytes_max:
                break
            wanted += 1
        got = cut(whole, low, entries_max, bytes_max)
        assert got.entries == whole.entries[low : low + wanted]
        assert (got.first, got.ledger, got.entry) == (50 + low, 3, 150 + low)
        assert got.counts == (None if counts is None else counts[low : low + wanted])
        if low == 0 and wanted == len(sizes):
            assert got is whole


@pytest.mark.parametrize("seed", range(5))
def test_what_came_and_went_is_counted(seed: int) -> None:
    """The metrics of the cache: entries and pieces, each once. Nobody waits, so a fifth of the budget counts."""
    rng = random.Random(seed)
    cache, logs, nexts = EntryCache(15_000), [CachedRuns(), CachedRuns()], [0, 0]
    assert (cache.entries_put, cache.entries_gone, cache.evictions) == (0, 0, 0)
    put_in: list[int] = []
    sizes: list[int] = []
    gone = 0

    def fits() -> bool:
        return sum(sizes[gone:]) <= cache.recent_max or gone == len(sizes) - 1

    for _ in range(60):
        log = rng.randrange(2)
        length = rng.randint(1, 4)
        put(cache, logs[log], nexts[log], [100] * length)
        nexts[log] += length
        put_in.append(length)
        sizes.append(length * (100 + ENTRY) + OVERHEAD - ENTRY)
        while not fits():
            gone += 1
        if rng.random() < 0.2:
            cache.set_bytes_max(rng.choice((7500, 15_000, 20_000)))
        while not fits():
            gone += 1
        assert cache.bytes == sum(sizes[gone:])
        assert (cache.entries_put, cache.entries_gone, cache.evictions) == (sum(put_in), sum(put_in[:gone]), gone)
