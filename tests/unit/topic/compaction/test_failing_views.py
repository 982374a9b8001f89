"""Compaction of what a disk does not give, or does not have any more."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from magnetar.broker.topic.compaction.compaction_run import CompactionRun
from magnetar.model.errors import PersistenceError
from magnetar.runtime.clock import SystemClock
from magnetar.storage.backends.files import OsFileSystem
from magnetar.storage.ledgers.managed_ledger import ManagedLedger
from magnetar.storage.ledgers.stored_run import StoredRun
from magnetar.storage.local_store import LocalLedgerStore
from magnetar.storage.store_settings import StoreSettings
from tests.support.compacted_topic import all_of, compact, loaded, publish

SMALL = StoreSettings(segment_bytes=8192, cache_bytes=1, ledger_entries_max=10, ledger_min_rollover_ms=0)


def test_whichever_read_of_a_view_fails_it_says_so_and_gives_the_same_the_next_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that searches a place, one for what stands there, one for the last entry."""

    async def story() -> None:
        store = LocalLedgerStore(OsFileSystem(str(tmp_path)), SystemClock(), SMALL)
        store.open()
        topic = loaded(store)
        await publish(topic, *[(f"k{i}", f"{i}") for i in range(40)])
        source = (await compact(topic)).detached_source()
        read, left = ManagedLedger.read, 0

        def some(log: ManagedLedger, start: int, entries_max: int, bytes_max: int, done: Any) -> None:
            nonlocal left
            left -= 1
            if left == 0:
                done(PersistenceError("the disk refuses"))
            else:
                read(log, start, entries_max, bytes_max, done)

        async def outcome(ask: Callable[[Any], object], failing: int = 0) -> Any:
            """With the read of that number failing; all are made anew."""
            nonlocal left
            left = failing
            source.release()
            store.cache.clear(view.log.cached_runs)
            answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
            ask(answer.set_result)
            return await answer

        view: Any = topic.compaction().view
        monkeypatch.setattr(ManagedLedger, "read", some)
        asked: dict[Callable[[Any], object], int] = {
            lambda done: source.read(20, 5, 1 << 20, done): 2,
            lambda done: source.since(1020, done): 1,
            lambda done: source.last_compacted(39, done): 1,
        }
        for ask, least in asked.items():
            sound = await outcome(ask)
            reads = -left
            assert reads >= least
            for number in range(1, reads + 1):
                assert isinstance(await outcome(ask, number), PersistenceError)
                assert await outcome(ask) == sound
        assert await all_of(source, 20, 23) == [(20, "20"), (21, "21"), (22, "22")]

        topic.close()
        await store.close()

    asyncio.run(asyncio.wait_for(story(), 30))


@pytest.mark.parametrize(
    ("first", "given"), [(3, [3, 4, 5, 6]), (6, [6]), (7, []), (9, [])], ids=["before", "last", "at it", "behind it"]
)
def test_a_run_ends_at_its_horizon_though_what_was_before_it_is_deleted_meanwhile(first: int, given: list[int]) -> None:
    """A topic may be truncated while it is compacted: a read begins at the first entry that is left then."""
    left = StoredRun(first, 1, first, [b"%d" % ordinal for ordinal in range(first, 20)], None)
    source = SimpleNamespace(
        first=0, cached=lambda at, entries, size: None, read=lambda at, entries, size, done: done(left),
        release=lambda: None,
    )  # fmt: skip
    of: Any = SimpleNamespace(_source=source, _horizon=7, _read=0)

    async def runs() -> list[int]:
        found: list[int] = []
        async for run in CompactionRun._runs(of):
            found += [int(entry) for entry in run.entries]
            assert run.first == first
        return found

    assert asyncio.run(runs()) == given
