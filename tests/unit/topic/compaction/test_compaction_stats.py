"""What is counted of compaction: every field, for a run that finds nothing, one that keeps some, and one that fails."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest

from magnetar.broker.topic.compaction.compaction_stats import CompactionStats
from magnetar.model.errors import PersistenceError
from magnetar.model.system_topics import COMPACTION_SUBSCRIPTION
from magnetar.storage.ledgers.managed_ledger import ManagedLedger
from magnetar.testing.simloop import SimLoop, run_in
from tests.support.loaded_topic import LoadedTopic


def simulated(scenario: Callable[[LoadedTopic], Awaitable[None]]) -> None:
    async def main() -> None:
        place = LoadedTopic()
        await scenario(place)
        place.topic.close()
        await place.store.close()

    run_in(SimLoop(1), main())


async def filled(place: LoadedTopic, count: int, keys: int) -> int:
    """Bytes of all entries."""
    for number in range(count):
        place.append(f"k{number % keys}", f"value {number}")
    await place.durable()
    return place.topic.log.retained_bytes()


def test_nothing_is_counted_before_the_first_run() -> None:
    async def scenario(place: LoadedTopic) -> None:
        assert place.topic.compaction().stats == CompactionStats()
        assert CompactionStats() == CompactionStats(0, 0, 0, 0, 0, 0, 0, 0, ())

    simulated(scenario)


def test_a_run_counts_what_it_read_wrote_and_left_out() -> None:
    """Everything is read twice; what is kept is written once, and waits for the disk."""

    async def scenario(place: LoadedTopic) -> None:
        dropped = await filled(place, 8, 4)
        size = await filled(place, 4, 4)
        begun = place.clock.now_ms()
        compactor = await place.compact()
        stats, view = compactor.stats, compactor.view
        assert view is not None
        ended = place.clock.now_ms()
        assert begun < stats.succeeded_ms <= ended
        assert 0 < stats.duration_ms <= ended - begun
        *buckets, waited_ms = stats.write_latency
        assert (sum(buckets), waited_ms > 0) == (4, True)
        assert (view.entries, view.bytes) == (4, size - dropped)
        assert stats == CompactionStats(
            removed=8, succeeded_ms=stats.succeeded_ms, duration_ms=stats.duration_ms, successes=1,
            bytes_read=2 * size, bytes_written=view.bytes, write_latency=stats.write_latency,
        )  # fmt: skip
        before = replace(stats)
        for number in range(4):
            place.append(f"k{number}", "again")
        await place.durable()
        await place.compact()
        assert stats.succeeded_ms > before.succeeded_ms
        assert (stats.removed, stats.successes, stats.failures) == (4, 2, 0), "removed by the last run"
        assert sum(stats.write_latency[:-1]) == 4
        newest = compactor.view or pytest.fail()
        assert stats.bytes_written == newest.bytes != before.bytes_written

    simulated(scenario)


def test_a_run_that_fails_is_counted_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(place: LoadedTopic) -> None:
        await filled(place, 12, 4)
        compactor = place.topic.compaction()
        barrier = ManagedLedger.barrier

        def refusing(self: ManagedLedger, done: Any, failed: Any = None) -> None:
            if self.name.startswith("internal://compacted/"):
                failed(PersistenceError("the disk is full"))
            else:
                barrier(self, done, failed)

        monkeypatch.setattr(ManagedLedger, "barrier", refusing)
        begun = place.clock.now_ms()
        compactor.begin(retain_keyless=False)
        await compactor.wait()
        stats = compactor.stats
        assert (compactor.status, compactor.last_error) == ("ERROR", "the disk is full")
        assert begun <= stats.failed_ms <= place.clock.now_ms()
        assert (stats.successes, stats.failures, stats.succeeded_ms, stats.removed) == (0, 1, 0, 0)
        monkeypatch.undo()
        await place.compact()
        assert (stats.successes, stats.failures, stats.removed) == (1, 1, 8)

    simulated(scenario)


def test_a_run_that_is_stopped_has_failed() -> None:
    """Deleting its subscription stops it, at any moment, and the next run begins with a new one."""

    async def scenario(place: LoadedTopic) -> None:
        await filled(place, 12, 4)
        compactor, stats = place.topic.compaction(), place.topic.compaction().stats
        await asyncio.sleep(1)
        for failures, steps in enumerate((0, 1, 3), 1):
            begun = place.clock.now_ms()
            compactor.begin(retain_keyless=False)
            for _ in range(steps):
                await asyncio.sleep(0)
            place.topic.delete_subscription(COMPACTION_SUBSCRIPTION, lambda: None)
            await compactor.wait()
            await asyncio.sleep(1)
            assert (compactor.running, compactor.status) == (False, "ERROR")
            assert compactor.last_error == "compaction was stopped"
            assert (stats.successes, stats.failures) == (0, failures)
            assert begun <= stats.failed_ms < place.clock.now_ms()
        await place.compact()
        assert (stats.successes, stats.failures, stats.removed) == (1, 3, 8)

    simulated(scenario)
