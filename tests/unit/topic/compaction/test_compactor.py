"""What the compactor keeps in order: the cursor, the views that are read, and where a run begins and ends."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, cast

import pytest

from magnetar.broker.topic.compaction.compaction_run import CompactionRun
from magnetar.broker.topic.subscription.backlog import bytes_behind
from magnetar.broker.topic.subscription.subscription import Subscription
from magnetar.compaction.messages import MarkerEntry
from magnetar.model.errors import ServiceNotReadyError
from magnetar.model.subscription_types import SubType
from magnetar.model.system_topics import COMPACTION_SUBSCRIPTION
from magnetar.protocol.commands.ids import TxnId
from magnetar.testing.simloop import SimLoop, run_in
from tests.support.compacted_topic import all_of, logs
from tests.support.loaded_topic import LoadedTopic
from tests.support.tombstones import deletion
from tests.support.topic_bench import OrdinalConnection


def simulated(scenario: Callable[[LoadedTopic], Awaitable[None]], count: int = 12) -> None:
    async def main() -> None:
        place = LoadedTopic()
        await publish(place, *range(count))
        await scenario(place)
        place.topic.close()
        await place.store.close()

    run_in(SimLoop(1), main())


async def publish(place: LoadedTopic, *numbers: int) -> None:
    for number in numbers:
        place.append(f"k{number % 4}", f"{number}")
    await place.durable()


def reader(place: LoadedTopic, *, durable: bool = False) -> Subscription:
    """The subscription ``r``, without a consumer, which is about to read compacted."""
    found = place.topic.subscription("r", durable=durable, ordinal=lambda: 0, properties={}, done=lambda: None)
    place.topic.read_by(found, compacted=True)
    return found


def test_a_run_begins_above_the_threshold_and_not_at_it() -> None:
    async def scenario(place: LoadedTopic) -> None:
        compactor = place.topic.compaction()
        compactor.begin_at(0, retain_keyless=False)
        assert not compactor.running, "no policy has asked for compaction"
        compactor.prepare()
        behind = bytes_behind(place.topic.log, -1)
        for threshold, begins in ((behind, False), (behind - 1, True), (0, False)):
            compactor.begin_at(threshold, retain_keyless=False)
            assert compactor.running == begins, threshold
            await compactor.wait()

    simulated(scenario)


def test_a_topic_that_was_let_go_gets_no_compaction_cursor() -> None:
    async def scenario(place: LoadedTopic) -> None:
        compactor = place.topic.compaction()
        compactor.close()
        with pytest.raises(ServiceNotReadyError):
            compactor.prepare()
        assert COMPACTION_SUBSCRIPTION not in place.topic.log.cursors

    simulated(scenario)


def test_a_new_view_leaves_the_other_properties_of_the_cursor_as_they_are() -> None:
    async def scenario(place: LoadedTopic) -> None:
        place.topic.compaction().prepare()
        cursor = place.topic.log.cursors[COMPACTION_SUBSCRIPTION]
        cursor.set_properties({"owner": "me"}, lambda: None)
        for _ in range(2):
            await place.compact()
            assert cursor.properties["owner"] == "me"
            assert len(cursor.properties) == 2
            await publish(place, 1)

    simulated(scenario)


def test_a_crash_between_the_view_and_the_mark_leaves_the_mark_to_the_next_load(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def scenario(place: LoadedTopic) -> None:
        with monkeypatch.context() as crash:
            crash.setattr(Subscription, "skip_until", lambda self, ordinal: None)
            await place.compact()
        assert place.topic.log.cursors[COMPACTION_SUBSCRIPTION].mark_delete == -1
        await place.restart()
        assert place.topic.log.cursors[COMPACTION_SUBSCRIPTION].mark_delete == 11
        assert (place.topic.compaction().view or pytest.fail()).horizon == 12

    simulated(scenario)


@pytest.mark.parametrize("ended", ["closed", "deleted"])
def test_a_view_whose_mark_is_written_after_the_end_is_not_taken(ended: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(place: LoadedTopic) -> None:
        compactor = place.topic.compaction()
        compactor.prepare()
        cursor, written = place.topic.log.cursors[COMPACTION_SUBSCRIPTION], list[Callable[[], None]]()
        with monkeypatch.context() as slow:
            slow.setattr(type(cursor), "set_properties", lambda _, given, done: written.append(done))
            compactor.begin(retain_keyless=False)
            await asyncio.sleep(1)
        if ended == "closed":
            compactor.close()
        else:
            place.topic.delete_subscription(COMPACTION_SUBSCRIPTION, lambda: None)
            await place.durable()
        written[0]()
        assert compactor.view is None
        assert cursor.mark_delete == -1

    simulated(scenario)


@pytest.mark.parametrize("behind", [1, 2, 5])
def test_what_stands_behind_an_open_transaction_is_not_compacted_with_what_is_before_it(behind: int) -> None:
    async def scenario(place: LoadedTopic) -> None:
        for number in range(4):
            place.append(f"k{number}", "before")
        place.append("open", "x", TxnId(0, 7))
        for number in range(1, behind):
            place.append(f"later{number}", "x")
        await place.durable()
        view = (await place.compact()).view or pytest.fail()
        assert (view.horizon, view.entries, view.facts.ledgers[-1].end) == (4, 4, 4)

    simulated(scenario, count=0)


def test_a_view_that_was_replaced_goes_when_its_last_reader_has_left() -> None:
    """Upkeep lets go of it for a subscription without consumers; its next read begins with the new view."""

    async def scenario(place: LoadedTopic) -> None:
        compactor = await place.compact()
        found = reader(place, durable=True)
        source = compactor.source(found)
        assert await all_of(source, 0, 9, step=1) == [(8, "8")]
        await publish(place, 12)
        await place.compact()
        assert len(logs(place.store)) == 2
        place.topic.trim()
        assert len(logs(place.store)) == 1
        assert compactor.source(found) is source
        assert [ordinal for ordinal, _ in await all_of(source)] == [9, 10, 11, 12]

    simulated(scenario)


@pytest.mark.parametrize("replaced", [False, True])
def test_who_reads_again_from_the_beginning_holds_one_view_and_that_is_the_newest(replaced: bool) -> None:
    async def scenario(place: LoadedTopic) -> None:
        compactor = await place.compact()
        source = compactor.source(reader(place, durable=True))
        before = compactor.view or pytest.fail()
        assert [ordinal for ordinal, _ in await all_of(source, 0, 10, step=1)] == [8, 9]
        if replaced:
            await publish(place, 12)
            await place.compact()
        for _ in range(3):
            assert [ordinal for ordinal, _ in await all_of(source, 0, 11, step=1)] == (
                [9, 10] if replaced else [8, 9, 10]
            )
        now = compactor.view or pytest.fail()
        assert (now is before, now.pins) == (not replaced, 1)
        if replaced:
            assert before.pins == 0
            compactor.upkeep()
        assert len(logs(place.store)) == 1

    simulated(scenario)


@pytest.mark.parametrize("held", [False, True])
@pytest.mark.parametrize("restarted", [False, True])
def test_replaced_views_are_looked_for_from_the_oldest_on_that_may_be_there(held: bool, restarted: bool) -> None:
    """The cursor's record says which that is, or the look after a hundred runs would ask for a hundred logs."""

    async def scenario(place: LoadedTopic) -> None:
        compactor = await place.compact()
        assert (compactor.view or pytest.fail()).facts.oldest == 1
        if held:
            found = reader(place, durable=True)
            found.add_consumer(OrdinalConnection(), name="c", consumer_id=1, sub_type=SubType.Exclusive)
            assert await all_of(compactor.source(found), 0, 9, step=1) == [(8, "8")]
        for number in range(3):
            await publish(place, number)
            compactor = await place.compact()
            compactor.upkeep()
        if restarted:
            await place.restart()
            compactor = place.topic.compaction()
        facts = (compactor.view or pytest.fail()).facts
        assert (facts.generation, facts.oldest) == (4, 1 if held else 3)
        compactor.upkeep()
        assert len(logs(place.store)) == (2 if held and not restarted else 1)
        await publish(place, 4)
        facts = ((await place.compact()).view or pytest.fail()).facts
        assert (facts.generation, facts.oldest) == (5, 1 if held and not restarted else 4)

    simulated(scenario)


def test_a_subscription_that_was_made_again_reads_anew_and_the_earlier_one_holds_nothing() -> None:
    async def scenario(place: LoadedTopic) -> None:
        compactor = await place.compact()
        first = reader(place, durable=True)
        before = compactor.source(first)
        assert await all_of(before, 0, 9, step=1) == [(8, "8")]
        view = compactor.view or pytest.fail()
        assert view.pins == 1
        place.topic.delete_subscription("r", lambda: None)
        second = reader(place, durable=True)
        assert second is not first and compactor.source(second) is not before
        assert view.pins == 0
        place.topic.delete_subscription("r", lambda: None)
        compactor.upkeep()
        assert compactor._sources == {}, "what is gone is not remembered"

    simulated(scenario)


def test_a_time_after_all_that_stays_is_looked_for_behind_the_horizon() -> None:
    """The log still has a deleted entry of that time below the horizon, which a compacted reader never sees."""

    async def scenario(place: LoadedTopic) -> None:
        place.append("k0", "1")
        place.topic.log.append(deletion("k0"), 1, None)
        await place.durable()
        compactor = await place.compact()
        assert (compactor.view or pytest.fail()).entries == 0
        found: list[Any] = []
        compactor.detached_source().since(1, found.append)
        await asyncio.sleep(1)
        assert found == [2]

    simulated(scenario, count=0)


def test_positions_of_the_oldest_ledger_that_is_left_are_asked_of_the_log() -> None:
    """Its last entry does not stay, so the view does not know it."""

    async def scenario(place: LoadedTopic) -> None:
        for number in range(10):
            place.append(f"k{number}", f"{number}")
        place.append("k9", "again")
        await place.durable()
        source = (await place.compact()).detached_source()
        last = place.topic.log.position(9)
        assert last.entry == 9
        assert (source.exact_ordinal(last), source.ordinal(last)) == (9, 9)

    simulated(scenario, count=0)


@pytest.mark.parametrize(("entry", "steps"), [(b"x", 10), (bytes(100 << 10), 213)])
def test_the_loop_has_its_turn_after_64_messages_or_256_kb(
    entry: bytes, steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    turns = 0

    async def sleep(seconds: float) -> None:
        nonlocal turns
        turns += 1

    async def main() -> None:
        nothing = cast("Any", type("Log", (), {})())
        run = CompactionRun(nothing, nothing, 0, [], retain_keyless=False)
        for _ in range(640):
            await run._step(entry, MarkerEntry())

    with monkeypatch.context() as counted:
        counted.setattr("magnetar.broker.topic.compaction.compaction_run.asyncio.sleep", sleep)
        asyncio.run(main())
    assert turns == steps
