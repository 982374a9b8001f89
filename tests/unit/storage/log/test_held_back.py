"""How much one write takes, and what goes with the next one (docs/decisions/078)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import cast

import pytest

from magnetar.storage.backends.journal_backend import Committed
from magnetar.storage.ledgers.managed_ledger import ManagedLedger
from magnetar.storage.local_store import LocalLedgerStore
from magnetar.storage.log.write_group import DirtyFeatureState, ExtentOwner, PendingExtent, PendingMove, WriteGroup
from tests.support.held_writes import held_store

LOGS = 600


async def logs_in_use(store: LocalLedgerStore, told: list[str]) -> list[ManagedLedger]:
    """Return logs that have an entry each already; ``told`` hears of every later result."""
    logs = [store.open_log(f"log {number}") for number in range(LOGS)]
    for managed in logs:
        managed.append(b"first", 1, None)
    await store.journal.drain()
    assert [managed.end for managed in logs] == [1] * LOGS
    for number, managed in enumerate(logs):
        managed.on_durable = partial(lambda number, extent: told.append(f"durable {number}"), number)
        managed.on_failed = partial(lambda number, extent, error: told.append(f"failed {number}"), number)
    return logs


async def sizes(waiting: list[Committed], told: list[str]) -> list[int]:
    """End one write after the other, and return how many results each of them had."""
    found: list[int] = []
    await asyncio.sleep(0)
    while waiting:
        assert len(waiting) == 1, "one write at a time"
        before = len(told)
        waiting.pop()(None)
        found.append(len(told) - before)
        await asyncio.sleep(0)
    return found


def test_many_logs_have_their_results_a_few_hundred_at_a_time(tmp_path: Path) -> None:
    """All become durable, in the order in which they came, though nothing else happens."""

    async def main() -> None:
        told: list[str] = []
        store, waiting = held_store(tmp_path)
        logs = await logs_in_use(store, told)
        for managed in logs:
            managed.append(b"x", 1, None)
        assert await sizes(waiting, told) == [256, 256, 88]
        assert told == [f"durable {number}" for number in range(LOGS)]
        assert [managed.end for managed in logs] == [2] * LOGS
        assert (store.journal.pending_bytes, store.journal.latency.entries) == (0, 2 * LOGS)
        await store.close()

    asyncio.run(main())


def test_entries_count_as_well_and_an_extent_stays_whole(tmp_path: Path) -> None:
    async def main() -> None:
        told: list[str] = []
        store, waiting = held_store(tmp_path)
        logs = await logs_in_use(store, told)
        for managed in logs[:38]:
            managed.append_all([b"x"] * 100, [None] * 100)
        # the last sixteen are never too many
        assert await sizes(waiting, told) == [11, 11, 16]
        assert [managed.end for managed in logs[:38]] == [101] * 38
        await store.close()

    asyncio.run(main())


def test_an_extent_that_is_held_back_takes_what_comes_meanwhile(tmp_path: Path) -> None:
    async def main() -> None:
        told: list[str] = []
        store, waiting = held_store(tmp_path)
        logs = await logs_in_use(store, told)
        for managed in logs[:300]:
            managed.append(b"x", 1, None)
        await asyncio.sleep(0)
        for managed in logs[:300]:  # 256 of them are being written
            managed.append(b"y", 1, None)
        assert [managed.pending for managed in logs[:300]] == [2] * 300
        assert await sizes(waiting, told) == [256, 256, 44]
        assert set(told[256:512]) == {f"durable {number}" for number in (*range(256, 300), *range(212))}
        assert [managed.end for managed in logs[:300]] == [3] * 300
        await store.close()

    asyncio.run(main())


def test_a_write_that_fails_takes_with_it_what_was_held_back(tmp_path: Path) -> None:
    """Ordinals that follow refused ones would leave a hole."""

    async def main() -> None:
        told: list[str] = []
        store, waiting = held_store(tmp_path)
        logs = await logs_in_use(store, told)
        for managed in logs:
            managed.append(b"x", 1, None)
        await asyncio.sleep(0)
        waiting.pop()(None)
        waiting.pop()(OSError("refused"))
        assert told == [f"{'durable' if number < 256 else 'failed'} {number}" for number in range(LOGS)]
        assert [managed.end for managed in logs] == [2] * 256 + [1] * 344
        assert store.journal.pending_bytes == 0
        logs[599].append(b"again", 1, None)
        await store.journal.drain()
        assert logs[599].end == 2
        await store.close()

    asyncio.run(main())


def test_the_end_of_everything_before_is_the_end_of_what_is_held_back(tmp_path: Path) -> None:
    async def main() -> None:
        told: list[str] = []
        store, waiting = held_store(tmp_path)
        logs = await logs_in_use(store, told)
        for managed in logs:
            managed.append(b"x", 1, None)
        await asyncio.sleep(0)  # the first 256 are being written
        store.journal.barrier(lambda: told.append("barrier"))
        assert await sizes(waiting, told) == [256, 345]
        assert told[-1] == "barrier"
        await store.close()

    asyncio.run(main())


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


def test_acknowledgements_never_wait_for_entries(tmp_path: Path) -> None:
    """They go with the first write, or a flood of entries would keep them from the disk."""

    async def main() -> None:
        told: list[str] = []
        store, waiting = held_store(tmp_path)
        logs = await logs_in_use(store, told)
        cursor = logs[0].open_cursor("s", 0)
        await sizes(waiting, told)
        told.clear()
        cursor.acknowledge((0,))
        for managed in logs:
            managed.append(b"x", 1, None)
        await asyncio.sleep(0)
        assert not store.journal._group.cursors
        assert store.journal._writing is not None
        assert list(store.journal._writing.cursors) == [cursor]
        await sizes(waiting, told)
        await store.close()

    asyncio.run(main())
