"""How the disk took a topic's entries: every bucket, once per group commit, and nothing per message."""

from __future__ import annotations

import sys
from random import Random
from typing import Any, cast

import pytest

from magnetar.admin.routes.metrics.topic_families import WRITES
from magnetar.admin.routes.metrics.topic_series import write_numbers
from magnetar.admin.values.counters import WriteCounters
from magnetar.broker.topic.publish.write_stats import ENTRY_BYTES, NOTHING, SINGLES, WriteStats
from magnetar.storage.log.write_group import WRITE_BOUNDS_MS, ExtentOwner, PendingExtent, WriteTimes


def extent(*sizes: int) -> PendingExtent:
    made = PendingExtent(cast("ExtentOwner", None), 1, 0, 0, 0, 0)
    made.entries = [b"x" * size for size in sizes]
    made.size = sum(sizes)
    return made


def shown(stats: WriteStats) -> dict[str, float]:
    stats.turn()
    numbers = write_numbers(WriteCounters(*stats.last))
    return {family.name: number for family, number in zip(WRITES, numbers, strict=True)}


@pytest.mark.parametrize(("place", "bound"), list(enumerate((*WRITE_BOUNDS_MS, 2000.0))))
def test_each_latency_has_its_bucket(place: int, bound: float) -> None:
    stats = WriteStats()
    stats.stored(extent(1, 1), WriteTimes(bound * 0.9 - 0.01, bound * 0.9))
    found = shown(stats)
    for prefix in ("pulsar_storage_write_latency_", "pulsar_storage_ledger_write_latency_"):
        buckets = [number for name, number in found.items() if name.startswith(prefix)]
        assert [at for at, number in enumerate(buckets[:10]) if number] == [place], prefix
        assert buckets[10] == 2
    assert found["pulsar_storage_ledger_write_latency_sum"] == pytest.approx(2 * bound * 900)


@pytest.mark.parametrize(("place", "bound"), list(enumerate((*ENTRY_BYTES, 2 << 20))))
def test_each_size_has_its_bucket(place: int, bound: int) -> None:
    stats = WriteStats()
    stats.stored(extent(bound), WriteTimes(0.0, 0.0))
    found = shown(stats)
    sizes = [number for name, number in found.items() if name.startswith("pulsar_entry_size_")]
    assert [at for at, number in enumerate(sizes[:9]) if number] == [place]
    assert sizes[9:] == [1, bound]


@pytest.mark.parametrize("name", [family.name for family in WRITES if family.name.startswith("pulsar_entry_size_le_")])
def test_a_bucket_of_sizes_holds_what_its_name_says(name: str) -> None:
    number, _, unit = name.removeprefix("pulsar_entry_size_le_").partition("_")
    if number == "overflow":
        assert shown_of((1 << 20) + 1)[name] == 1
        return
    bound = int(number) * {"": 1, "kb": 1 << 10, "mb": 1 << 20}[unit]
    assert [shown_of(size)[name] for size in (bound, bound + 1)] == [1, 0]


def shown_of(size: int) -> dict[str, float]:
    """What one entry of that size brings."""
    stats = WriteStats()
    stats.stored(extent(size), WriteTimes(0.0, 0.0))
    return shown(stats)


def test_a_period_shows_what_it_brought_and_no_more() -> None:
    stats = WriteStats()
    stats.stored(extent(10), WriteTimes(0.0, 0.0))
    stats.refused(extent(1, 1))
    assert stats.turn()
    assert (sum(stats.last.latency[:-1]), stats.last.failed) == (1, 2)
    some = stats.last
    assert not stats.turn()
    assert stats.last == NOTHING
    assert list(map(len, NOTHING[:3])) == list(map(len, some[:3]))


def test_a_refused_entry_alone_makes_a_period() -> None:
    stats = WriteStats()
    stats.refused(extent(1))
    assert stats.turn()
    assert stats.last.failed == 1


def test_entries_that_come_alone_count_like_those_that_come_together() -> None:
    """However many they are, and none is held for long."""
    rng = Random(1)
    for count in (1, SINGLES - 1, SINGLES, SINGLES + 1, 5 * SINGLES + 3):
        sizes = [rng.randrange(1, 3000) for _ in range(count)]
        alone, together = WriteStats(), WriteStats()
        for size in sizes:
            alone.stored(extent(size), WriteTimes(7.0, 0.7))
            assert len(alone._single) < 2 * SINGLES
        together.stored(extent(*sizes), WriteTimes(7.0, 0.7))
        one, other = shown(alone), shown(together)
        assert one == pytest.approx(other)
        assert sum(alone.last.latency[:-1]) == count


def test_a_group_of_a_thousand_costs_as_many_calls_as_one_of_ten() -> None:
    def calls(entries: int) -> int:
        stats, made, count = WriteStats(), extent(*([100] * (entries - 1)), 5000), 0

        def counted(frame: Any, event: str, argument: Any) -> None:
            nonlocal count
            count += event == "call"

        sys.setprofile(counted)
        try:
            stats.stored(made, WriteTimes(0.0, 0.0))
        finally:
            sys.setprofile(None)
        return count

    assert calls(1000) == calls(10)
