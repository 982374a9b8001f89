"""How much one write takes, and what goes with the next one (docs/decisions/078)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import cast

import pytest

from magnetar.storage.backends.journal_backend import Committed
from magnetar.storage.local_store import LocalLedgerStore
from magnetar.storage.log.write_group import DirtyFeatureState, ExtentOwner, PendingExtent, PendingMove, WriteGroup
from tests.support.held_writes import held_store

LOGS = 600


class ManyLogs:
    """Logs that have an entry each already, in a store of which each write ends when the test says so."""

    def __init__(self, store: LocalLedgerStore, waiting: list[Committed]) -> None:
        self.store = store
        self.journal = store.journal
        self.waiting = waiting
        self.logs = [store.open_log(f"log {number}") for number in range(LOGS)]
        self.told: list[str] = []
        """Every later result."""

    async def begin(self) -> None:
        self.append_to(LOGS)
        await self.journal.drain()
        assert self.ends(LOGS) == [1] * LOGS
        for number, managed in enumerate(self.logs):
            managed.on_durable = partial(lambda number, extent: self.told.append(f"durable {number}"), number)
            managed.on_failed = partial(lambda number, extent, error: self.told.append(f"failed {number}"), number)

    def append_to(self, count: int, entries: int = 1) -> None:
        """Append so many entries to each of the first ``count`` logs."""
        for managed in self.logs[:count]:
            managed.append_all([b"x"] * entries, [None] * entries)

    def ends(self, count: int) -> list[int]:
        return [managed.end for managed in self.logs[:count]]

    async def sizes(self) -> list[int]:
        """End one write after the other, and return how many results each of them had."""
        found: list[int] = []
        await asyncio.sleep(0)
        while self.waiting:
            assert len(self.waiting) == 1, "one write at a time"
            before = len(self.told)
            self.waiting.pop()(None)
            found.append(len(self.told) - before)
            await asyncio.sleep(0)
        return found


def with_logs(path: Path, steps: Callable[[ManyLogs], Awaitable[None]]) -> None:
    async def main() -> None:
        many = ManyLogs(*held_store(path))
        await many.begin()
        await steps(many)
        await many.store.close()

    asyncio.run(main())


def test_many_logs_have_their_results_a_few_hundred_at_a_time(tmp_path: Path) -> None:
    """All become durable, in the order in which they came, though nothing else happens."""

    async def steps(many: ManyLogs) -> None:
        many.append_to(LOGS)
        assert await many.sizes() == [256, 256, 88]
        assert many.told == [f"durable {number}" for number in range(LOGS)]
        assert many.ends(LOGS) == [2] * LOGS
        assert (many.journal.pending_bytes, many.journal.latency.entries) == (0, 2 * LOGS)

    with_logs(tmp_path, steps)


def test_entries_count_as_well_and_an_extent_stays_whole(tmp_path: Path) -> None:
    async def steps(many: ManyLogs) -> None:
        many.append_to(38, 100)
        # the last sixteen are never too many
        assert await many.sizes() == [11, 11, 16]
        assert many.ends(38) == [101] * 38

    with_logs(tmp_path, steps)


def test_an_extent_that_is_held_back_takes_what_comes_meanwhile(tmp_path: Path) -> None:
    async def steps(many: ManyLogs) -> None:
        many.append_to(300)
        await asyncio.sleep(0)
        many.append_to(300)  # the first entries of 256 of them are being written
        assert [managed.pending for managed in many.logs[:300]] == [2] * 300
        assert await many.sizes() == [256, 256, 44]
        assert set(many.told[256:512]) == {f"durable {number}" for number in (*range(256, 300), *range(212))}
        assert many.ends(300) == [3] * 300

    with_logs(tmp_path, steps)


def test_a_write_that_fails_takes_with_it_what_was_held_back(tmp_path: Path) -> None:
    """Ordinals that follow refused ones would leave a hole."""

    async def steps(many: ManyLogs) -> None:
        many.append_to(LOGS)
        await asyncio.sleep(0)
        many.waiting.pop()(None)
        many.waiting.pop()(OSError("refused"))
        assert many.told == [f"{'durable' if number < 256 else 'failed'} {number}" for number in range(LOGS)]
        assert many.ends(LOGS) == [2] * 256 + [1] * 344
        assert many.journal.pending_bytes == 0
        many.logs[599].append(b"again", 1, None)
        await many.journal.drain()
        assert many.logs[599].end == 2

    with_logs(tmp_path, steps)


def test_the_end_of_everything_before_is_the_end_of_what_is_held_back(tmp_path: Path) -> None:
    async def steps(many: ManyLogs) -> None:
        many.append_to(LOGS)
        await asyncio.sleep(0)  # the first 256 are being written
        many.journal.barrier(lambda: many.told.append("barrier"))
        assert await many.sizes() == [256, 345]
        assert many.told[-1] == "barrier"

    with_logs(tmp_path, steps)


def test_acknowledgements_never_wait_for_entries(tmp_path: Path) -> None:
    """They go with the first write, or a flood of entries would keep them from the disk."""

    async def steps(many: ManyLogs) -> None:
        cursor = many.logs[0].open_cursor("s", 0)
        await many.sizes()
        cursor.acknowledge((0,))
        many.append_to(LOGS)
        await asyncio.sleep(0)
        assert not many.journal._group.cursors
        assert many.journal._writing is not None
        assert list(many.journal._writing.cursors) == [cursor]
        await many.sizes()

    with_logs(tmp_path, steps)


def filled(logs: int, entries: int = 1) -> WriteGroup:
    group = WriteGroup()
    group.oldest = 17.0
    for number in range(logs):
        extent = PendingExtent(cast(ExtentOwner, None), number, 0, 0, 0, 0)
        extent.entries = [b"x"] * entries
        group.extents.append((number, extent))
    return group


@pytest.mark.parametrize(
    ("logs", "entries", "kept"),
    [(1, 4096, 1), (16, 4096, 16), (17, 4096, 1), (17, 60, 17), (17, 63, 17), (17, 64, 16), (17, 65, 16),
     (256, 1, 256), (257, 1, 256), (1000, 3, 256), (1000, 4, 256), (1000, 5, 205)],
)  # fmt: skip
def test_it_is_parted_behind_the_extent_that_reaches_the_bound(logs: int, entries: int, kept: int) -> None:
    group = filled(logs, entries)
    others = group.held_back()
    assert (len(group.extents), len(others.extents)) == (kept, logs - kept)
    assert [number for number, _ in group.extents + others.extents] == list(range(logs))
    assert others.oldest == (17.0 if others else 0.0)


@pytest.mark.parametrize(
    "add",
    [
        lambda group: group.records.append(b"record"),
        lambda group: group.waiters.append((lambda: None, None)),
        lambda group: group.feature_states.update({cast(DirtyFeatureState, "state"): None}),
        lambda group: setattr(group, "move", PendingMove(b"", 0, *[cast(Callable[..., None], None)] * 3)),
    ],
    ids=["record", "waiter", "feature state", "move"],
)
def test_what_may_count_on_one_write_gets_one(add: Callable[[WriteGroup], None]) -> None:
    """A record, a feature's state or a barrier says something of the entries that came before it."""
    group = filled(1000)
    add(group)
    assert not group.held_back()
    assert len(group.extents) == 1000
