"""Pieces of a log for tests of the cache of entries, and cursors that wait for them."""

from __future__ import annotations

from magnetar.storage.ledgers.cursor import Cursor
from magnetar.storage.ledgers.entry_cache import CachedRuns, EntryCache
from magnetar.storage.ledgers.stored_run import StoredRun

ENTRY = 64
OVERHEAD = 320 + ENTRY
"""Of a run of one entry."""


def run(first: int, sizes: list[int], counts: list[int] | None = None) -> StoredRun:
    return StoredRun(first, 3, first + 100, [bytes([first % 256]) * size for size in sizes], counts)


def put(cache: EntryCache, cached: CachedRuns, first: int, sizes: list[int]) -> None:
    cache.put(cached, run(first, sizes), sum(sizes))


class Ends:
    """Of the log that cursors run over."""

    id, first, end = 1, 0, 1 << 40


def cursor(mark_delete: int, number: int = 1, *, attended: bool = True) -> Cursor:
    made = Cursor(Ends(), number, f"s{number}", mark_delete, None)
    made.attended = attended
    return made


def firsts(cached: CachedRuns) -> list[int]:
    firsts = [piece.first for piece in cached.runs]
    assert firsts == sorted(firsts)
    return firsts


def put_thirty(cache: EntryCache, cached: CachedRuns) -> None:
    for first in range(30):
        put(cache, cached, first, [100])
