"""A view that a job computed becomes the topic's: what it is told to do, and when its result is too late (decision
015)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from magnetar.broker.topic.compaction.compactor import Compactor
from magnetar.broker.topic.compaction.view_adoption import CompactionPlan
from magnetar.compaction.view_entries import pack
from magnetar.model.errors import ConflictError
from magnetar.model.system_topics import COMPACTION_SUBSCRIPTION
from magnetar.protocol.entries import EntryMetadata, build_entry
from magnetar.testing.simloop import SimLoop, run_in
from tests.support.compacted_topic import all_of, logs
from tests.support.loaded_topic import LoadedTopic


def simulated(scenario: Callable[[LoadedTopic], Awaitable[None]]) -> None:
    async def main() -> None:
        place = LoadedTopic()
        for number in range(12):
            place.append(f"k{number % 4}", f"{number}")
        await place.durable()
        await scenario(place)
        place.topic.close()
        await place.store.close()

    run_in(SimLoop(1), main())


async def result(place: LoadedTopic, *ordinals: int) -> AsyncIterator[tuple[list[bytes], list[int] | None]]:
    """These entries, as the job keeps them."""
    for ordinal in ordinals:
        at = place.topic.log.position(ordinal)
        entry = build_entry(EntryMetadata("p", 0, 1000, partition_key=f"k{ordinal % 4}"), f"{ordinal}".encode())
        yield [pack(ordinal, at.ledger, at.entry, entry)], None


async def adopted(compactor: Compactor) -> None:
    await compactor.wait()
    assert (compactor.status, compactor.last_error) == ("SUCCESS", "")


def test_a_plan_goes_from_the_view_to_the_last_closed_ledger() -> None:
    async def scenario(place: LoadedTopic) -> None:
        compactor = place.topic.compaction()
        assert compactor.plan() == CompactionPlan(0, "", 0, 10), "a ledger holds ten entries"
        assert COMPACTION_SUBSCRIPTION in place.topic.subscriptions, "nothing of it is trimmed from now on"
        compactor.begin(retain_keyless=False)
        with pytest.raises(ConflictError, match="Compaction already in progress"):
            compactor.plan()
        await compactor.wait()
        name = logs(place.store)[0]
        assert compactor.plan() == CompactionPlan(1, name, 12, 12), "nothing is left to be done"
        for number in range(12, 35):
            place.append("k", f"{number}")
        await place.durable()
        assert compactor.plan() == CompactionPlan(1, name, 12, 30)

    simulated(scenario)


def test_the_result_is_what_compacted_readers_get_and_the_rest_follows_from_the_log() -> None:
    async def scenario(place: LoadedTopic) -> None:
        compactor = place.topic.compaction()
        plan = compactor.plan()
        compactor.begin_adoption(plan.generation, plan.horizon, 6, result(place, 6, 7, 8, 9))
        assert compactor.status == "RUNNING"
        await adopted(compactor)
        assert compactor.stats.removed == 6
        assert await all_of(compactor.detached_source()) == [(n, f"{n}") for n in range(6, 12)]
        assert place.topic.subscriptions[COMPACTION_SUBSCRIPTION].cursor.mark_delete == 9
        later = compactor.plan()
        assert (later.generation, later.start) == (1, 10)
        await place.compact()
        compactor = place.topic.compaction()
        assert await all_of(compactor.detached_source()) == [(n, f"{n}") for n in range(8, 12)]
        assert len(logs(place.store)) == 1

    simulated(scenario)


@pytest.mark.parametrize("kept", [(9,), ()])
def test_what_an_earlier_attempt_has_left_is_no_part_of_the_result(kept: tuple[int, ...]) -> None:
    async def scenario(place: LoadedTopic) -> None:
        compactor = place.topic.compaction()
        plan = compactor.plan()
        compactor.begin_adoption(plan.generation, plan.horizon, 0, result(place, 2, 5, 5))
        await compactor.wait()
        assert compactor.status == "ERROR" and "5 to be kept" in compactor.last_error
        assert compactor.view is None and compactor.plan() == plan
        half = place.store.open_log(compactor._name(plan.generation + 1))
        half.append(b"of an attempt that a crash cut off", 1, None)
        await place.durable()
        compactor.begin_adoption(plan.generation, plan.horizon, 0, result(place, *kept))
        await adopted(compactor)
        name = compactor.plan().view
        assert await all_of(compactor.detached_source()) == [(n, f"{n}") for n in (*kept, 10, 11)]
        assert logs(place.store) == [name]

    simulated(scenario)


def test_what_the_view_before_it_keeps_may_stay_although_the_log_lost_it() -> None:
    async def scenario(place: LoadedTopic) -> None:
        compactor = await place.compact()
        for number in range(12, 20):
            place.append(f"k{number % 4}", f"{number}")
        place.topic.log.open_ledger()
        await place.durable()
        places = [place.topic.log.position(ordinal) for ordinal in (9, 10)]
        place.topic.trim()
        assert place.topic.log.first >= 10
        plan = compactor.plan()
        assert plan.start == 12

        async def pieces(*ordinals: int) -> AsyncIterator[tuple[list[bytes], list[int] | None]]:
            yield [pack(ordinal, *places[ordinal - 9], b"kept") for ordinal in ordinals], [1] * len(ordinals)

        compactor.begin_adoption(plan.generation, plan.horizon, 0, pieces(9, 10))
        await adopted(compactor)
        assert (compactor.view or pytest.fail()).entries == 2
        plan = compactor.plan()
        assert plan.generation == 2

    simulated(scenario)


def test_a_result_that_is_too_late_or_of_another_place_is_refused() -> None:
    async def scenario(place: LoadedTopic) -> None:
        compactor = place.topic.compaction()
        with pytest.raises(ConflictError, match="has no subscription __compaction: ask for a plan first"):
            compactor.begin_adoption(0, 10, 0, result(place))
        compactor.plan()
        for generation in (1, -1):
            with pytest.raises(ConflictError, match=rf"it has view 0, the job began with {generation}"):
                compactor.begin_adoption(generation, 10, 0, result(place))
        for horizon in (0, 13):
            with pytest.raises(ConflictError, match=rf"cannot be compacted up to {horizon}, only beyond 0"):
                compactor.begin_adoption(0, horizon, 0, result(place))
        compactor.begin_adoption(0, 12, 0, result(place, 11))
        with pytest.raises(ConflictError, match="Compaction already in progress"):
            compactor.begin_adoption(0, 12, 0, result(place))
        await adopted(compactor)
        with pytest.raises(ConflictError, match="cannot be compacted up to 12, only beyond 12"):
            compactor.begin_adoption(1, 12, 0, result(place))
        assert (compactor.view or pytest.fail()).horizon == 12

    simulated(scenario)


@pytest.mark.parametrize("runs", [1, 2, 3])
def test_deleting_the_subscription_removes_every_view_that_was_made(runs: int) -> None:
    """Also one that is still being read, and the first one of all."""

    async def scenario(place: LoadedTopic) -> None:
        for _ in range(runs):
            compactor = await place.compact()
            await all_of(compactor.detached_source(), 0, 9, step=1)
            place.append("k0", "again")
            await place.durable()
        assert len(logs(place.store)) >= 1
        place.topic.delete_subscription(COMPACTION_SUBSCRIPTION, lambda: None)
        await place.durable()
        assert logs(place.store) == []
        assert (await place.compact()).view is not None
        assert len(logs(place.store)) == 1

    simulated(scenario)


@pytest.mark.parametrize("runs", [0, 1])
def test_what_a_crash_left_of_a_run_goes_when_the_topic_is_loaded(runs: int) -> None:
    """Also of the first run of all."""

    async def scenario(place: LoadedTopic) -> None:
        compactor = place.topic.compaction()
        compactor.plan()
        for _ in range(runs):
            await place.compact()
        half = place.store.open_log(compactor._name(runs + 1))
        half.append(b"not all of it", 1, None)
        await place.durable()
        assert len(logs(place.store)) == runs + 1
        await place.restart()
        assert (place.topic.compaction().view is None) == (runs == 0)
        await place.durable()
        assert len(logs(place.store)) == runs

    simulated(scenario)


def test_deleting_the_subscription_ends_it_and_removes_everything() -> None:
    async def scenario(place: LoadedTopic) -> None:
        compactor = place.topic.compaction()
        plan = compactor.plan()
        reached = asyncio.Event()

        async def endless() -> AsyncIterator[tuple[list[bytes], list[int] | None]]:
            async for piece in result(place, 1):
                yield piece
            reached.set()
            await asyncio.Event().wait()

        compactor.begin_adoption(plan.generation, plan.horizon, 0, endless())
        await reached.wait()
        place.topic.delete_subscription(COMPACTION_SUBSCRIPTION, lambda: None)
        await compactor.wait()
        await place.durable()
        assert logs(place.store) == [] and compactor.view is None
        assert compactor.status != "RUNNING"

    simulated(scenario)
