"""The bound on disk space while much is written for long: the mix of benchmarks.space, smaller and in virtual time."""

from __future__ import annotations

import asyncio

import pytest
from benchmarks import space_mix
from benchmarks.space_mix import Directory, Sample, mix

from magnetar.broker.upkeep import periodic_passes
from magnetar.protocol.commands import SubType
from magnetar.runtime.tasks import EarlyCall
from magnetar.storage.store import LedgerStore
from magnetar.storage.store_settings import StoreSettings
from magnetar.storage.store_threads import StoreThreads
from magnetar.testing.memory_journal import MemoryJournal
from magnetar.testing.simloop import SimClock, run
from tests.sim.clients import Habit, Publisher, Subscriber
from tests.sim.world import T, World, caught, run_seeds

_SMALLER = 256
"""A segment of 128 MB, 50 MB/s, 9 GB: all of it divided by this."""


async def _load(gigabytes: float) -> list[Sample]:
    backend = MemoryJournal()
    settings = StoreSettings(
        segment_bytes=(128 << 20) // _SMALLER, ledger_entries_max=100, ledger_min_rollover_ms=0, cache_bytes=1 << 16,
        reclaim_bytes_per_second=(16 << 20) // _SMALLER,
    )  # fmt: skip
    store = LedgerStore(backend, SimClock(asyncio.get_running_loop()), StoreThreads(), settings)
    store.open()
    directory = Directory(store, lambda: sum(backend.sizes(backend.segments()).values()), 50 / _SMALLER)
    return await mix(directory, gigabytes * 1e9 / _SMALLER, 125, 1, sizes=1 / 16)


def _highest(gigabytes: float = 9.2) -> float:
    return max(now.disk / now.bound for now in run(1, _load(gigabytes)))


def test_under_a_steady_load_the_directory_is_never_larger_than_is_promised() -> None:
    assert _highest() <= 1


def test_looking_only_every_ten_seconds_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(EarlyCall, "ask", lambda self: None)
    assert _highest() > 1


def test_the_mix_has_the_passes_of_the_broker() -> None:
    """Otherwise these tests and the figures of docs/performance.md would be about something else."""
    assert (space_mix.PASS_SECONDS, space_mix.PASS_SECONDS, space_mix.TRIM_REST) == (
        periodic_passes._TRIM_SECONDS, periodic_passes._SPACE_SECONDS, periodic_passes._TRIM_REST,
    )  # fmt: skip


async def _much_at_once(world: World) -> None:
    await world.boot()
    world.start(Subscriber(world, "fast", T, "sub", SubType.Exclusive, Habit(cumulative=True, permits=200)).run())
    await asyncio.sleep(1)
    await world.finish(Publisher(world, "busy", T, size=400).run(200))
    await asyncio.sleep(3)
    assert world.loop.time() < periodic_passes._TRIM_SECONDS, "before the first pass that comes by itself"
    log = world.machine.broker.store.find_log(T)
    assert log is not None
    assert log.first > 0


def test_a_broker_trims_when_a_segment_is_filled() -> None:
    run_seeds(_much_at_once, 3)


def test_a_broker_that_trims_only_every_ten_seconds_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(EarlyCall, "ask", lambda self: None)
    caught(_much_at_once, lambda broker: None)
