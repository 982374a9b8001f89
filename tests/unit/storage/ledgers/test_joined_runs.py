"""Runs of few large entries that follow each other are found as one."""

from __future__ import annotations

import random

import pytest

from magnetar.storage.ledgers.entry_cache import CachedRuns
from magnetar.storage.ledgers.stored_run import FEW, LARGE, NO_INDEX, PackedEntries, PackedRun, StoredRun

ROOM = 1 << 30


def runs(rng: random.Random) -> tuple[CachedRuns, dict[int, tuple[int, int, bytes, int]]]:
    """Pieces of a log with gaps and several ledgers; also ledger, number, bytes and messages of each entry."""
    cached, known = CachedRuns(), {}
    ordinal, ledger, entry = 50, 3, 0
    for _ in range(rng.randint(2, 14)):
        if rng.random() < 0.15:
            ordinal += (gap := rng.randint(1, 5))
            entry += gap
        elif rng.random() < 0.15:
            ledger, entry = ledger + 1, 0
        sizes = [rng.choice((1, 100, 20_000, 100_000)) for _ in range(rng.choice((1, 2, 3, 3, 20)))]
        entries = [bytes([(ordinal + i) % 256]) * size for i, size in enumerate(sizes)]
        counts = rng.choice((None, [rng.randint(1, 9) for _ in sizes]))
        for i, data in enumerate(entries):
            known[ordinal + i] = ledger, entry + i, data, 1 if counts is None else counts[i]
        if len(sizes) == 20 and rng.random() < 0.5:
            cached.runs.append(PackedRun(ordinal, ledger, entry, PackedEntries(entries), counts, NO_INDEX))
        else:
            cached.runs.append(StoredRun(ordinal, ledger, entry, entries, counts, 1_000 + ordinal))
        ordinal += len(sizes)
        entry += len(sizes)
    return cached, known


@pytest.mark.parametrize("seed", range(60))
def test_what_is_found_is_what_stands_there(seed: int) -> None:
    rng = random.Random(seed)
    cached, known = runs(rng)
    before = list(cached.runs)
    for start in range(45, max(known) + 3):
        entries_max, bytes_max = rng.choice((1, 2, 5, 10, 100)), rng.choice((1, 1_000, 250_000, 5 << 20))
        found = cached.find(start, entries_max, bytes_max)
        if start not in known:
            assert found is None
            continue
        assert found is not None
        n = len(found.entries)
        assert 1 <= n <= entries_max
        assert n == 1 or min(sum(map(len, found.entries)), n * LARGE) <= bytes_max
        assert (found.first, found.ledger, found.entry) == (start, *known[start][:2])
        counts = found.counts or [1] * n
        assert len(counts) == n
        for i in range(n):
            assert (found.ledger, found.entry + i, found.entries[i], counts[i]) == known[start + i]
    assert cached.runs == before


def of_three(first: int, ledger: int = 3) -> StoredRun:
    return StoredRun(first, ledger, first + 100, [b"x" * 100_000] * 3, [100] * 3, 100 * first)


def test_large_entries_of_several_pieces_are_given_at_once() -> None:
    cached = CachedRuns()
    cached.runs += [of_three(first) for first in range(0, 30, 3)]
    wanted = cached.find(1, 5, ROOM)
    assert wanted is not None
    assert (wanted.first, len(wanted.entries), wanted.counts, wanted.message_index) == (1, 5, [100] * 5, 100)
    all_of_them = cached.find(0, 100, ROOM)
    assert all_of_them is not None
    assert FEW <= len(all_of_them.entries) < FEW + 3


def test_nothing_is_joined_over_the_end_of_a_ledger_or_a_gap() -> None:
    cached = CachedRuns()
    cached.runs += [of_three(0), StoredRun(3, 4, 103, [b"x" * 100_000] * 3, None), of_three(9)]
    assert [len(found.entries) for at in (0, 3) if (found := cached.find(at, 100, ROOM))] == [3, 3]


def test_the_bytes_of_all_pieces_count() -> None:
    cached = CachedRuns()
    cached.runs += [StoredRun(first, 3, first, [b"x" * 100_000], None) for first in range(9)]
    for bytes_max, wanted in ((99_999, 1), (250_000, 2), (300_000, 3), (700_000, 7)):
        found = cached.find(0, 9, bytes_max)
        assert found is not None
        assert len(found.entries) == wanted
