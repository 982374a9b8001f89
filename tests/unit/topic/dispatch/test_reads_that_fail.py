"""Reads that fail: tried again after a while, and what is damaged waits for an operator or is skipped."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from magnetar.broker.topic.dispatch.unreadable_ranges import UnreadableRanges
from magnetar.broker.topic.ports import EntryRun
from magnetar.broker.topic.subscription.explanation import explain
from magnetar.model.errors import PersistenceError, UnreadableError
from magnetar.model.subscription_types import SubType
from magnetar.testing.simloop import SimLoop, run_in
from tests.support.subscription_stand import Stand

REFUSED = PersistenceError("the disk refuses")


def simulated(main: Callable[[], Coroutine[Any, Any, None]]) -> None:
    run_in(SimLoop(1), main())


def cold(entries: int, **settings: Any) -> Stand:
    """A subscription whose entries are all on disk."""
    stand = Stand(**settings)
    stand.log.resident = 1 << 30
    stand.append_many(entries)
    return stand


def found(stand: Stand) -> dict[str, str]:
    return {one.what: one.text for one in explain(stand.subscription)}


def test_a_read_that_failed_is_tried_again_after_twice_as_long_each_time_up_to_a_minute() -> None:
    """And after the first pause again once one has succeeded."""

    async def main() -> None:
        stand = cold(4, read_retry_s=1.0, dispatcher_max_read_batch_size=2)
        _, connection = stand.join("c", SubType.Shared, 10)
        for pause in (1, 2, 4, 8, 16, 32, 60, 60, 60):
            stand.log.finish_read(REFUSED)
            assert found(stand) == {"read-failed": "Reading fails: the disk refuses."}
            await asyncio.sleep(pause - 0.01)
            assert not stand.log.reads
            stand.subscription.entries_appended()
            assert not stand.log.reads, "a new entry is no reason to ask earlier"
            await asyncio.sleep(0.02)
            assert len(stand.log.reads) == 1
        stand.log.finish_read()
        assert connection.ordinals == [0, 1]
        assert found(stand).keys() == {"reading"}
        stand.log.finish_read(REFUSED)
        await asyncio.sleep(0.99)
        assert not stand.log.reads
        await asyncio.sleep(0.02)
        stand.log.finish_read()
        assert connection.ordinals == [0, 1, 2, 3]
        assert "read-failed" not in found(stand)
        stand.subscription.close()

    simulated(main)


@pytest.mark.parametrize("under_way", [True, False])
def test_who_is_closed_reads_no_more(under_way: bool) -> None:
    """Neither what a read brings nor a pause that ends does anything."""

    async def main() -> None:
        stand = cold(4)
        _, connection = stand.join("c", SubType.Shared, 10)
        if under_way:
            stand.subscription.close()
            stand.log.finish_read()
        else:
            stand.log.finish_read(REFUSED)
            stand.subscription.close()
        await asyncio.sleep(100)
        assert (connection.ordinals, stand.log.reads) == ([], [])

    simulated(main)


@pytest.mark.parametrize("stop", [3, 5, 99])
def test_what_is_damaged_holds_up_its_subscription_until_it_is_skipped(
    stop: int, caplog: pytest.LogCaptureFixture
) -> None:
    """It is named once, looked at again each minute in case somebody mends the disk, and stays in the backlog."""
    end = min(stop, 6)

    async def main() -> None:
        stand = cold(6)
        consumer, connection = stand.join("c", SubType.Shared, 10)
        stand.log.finish_read()
        stand.subscription.acks.take(consumer, [0, 1, 3])
        stand.log.resident = 1 << 30
        stand.subscription.heal(firmly=True)
        _, connection = stand.join("d", SubType.Shared, 10)
        assert connection.ordinals == []
        for _ in range(3):
            assert len(stand.log.reads) == 1
            stand.log.finish_read(UnreadableError("torn", stop))
            assert stand.subscription.unreadable.waiting == (2, end)
            assert found(stand)["unreadable"].startswith(
                f"{end - 2} entries, 0:2 to 0:{end - 1}, are damaged on disk: "
            )
            await asyncio.sleep(59.99)
            assert not stand.log.reads
            await asyncio.sleep(0.02)
        assert caplog.text.count("cannot be read: torn") == 1
        stand.log.finish_read(UnreadableError("torn", stop))
        left = [ordinal for ordinal in range(2, end) if ordinal != 3]
        assert stand.subscription.skip_unreadable() == len(left)
        assert stand.subscription.skip_unreadable() == 0
        unreadable = stand.subscription.unreadable
        assert (unreadable.waiting, unreadable.skipped, unreadable.entries_skipped) == (None, [(2, end)], len(left))
        assert stand.cursor.mark_delete == max(end - 1, 3)
        if end < 6:
            stand.log.finish_read()
        assert connection.ordinals == [ordinal for ordinal in range(end, 6) if ordinal != 3]
        assert not {"unreadable", "read-failed"} & found(stand).keys()
        assert stand.subscription.totals.last_mark_delete_advanced_ms > 0
        stand.subscription.close()

    simulated(main)


def test_a_disk_that_was_mended_is_read_again_and_nothing_was_lost() -> None:
    async def main() -> None:
        stand = cold(6)
        _, connection = stand.join("c", SubType.Shared, 10)
        stand.log.finish_read(UnreadableError("torn", 3))
        await asyncio.sleep(61)
        stand.log.finish_read()
        assert connection.ordinals == [0, 1, 2, 3, 4, 5]
        assert stand.subscription.unreadable.waiting is None
        assert stand.subscription.unreadable.skipped == []
        stand.subscription.close()

    simulated(main)


@pytest.mark.parametrize("error", [UnreadableError("torn", 3), REFUSED])
def test_who_goes_on_elsewhere_does_not_wait_for_what_cannot_be_read(error: Exception) -> None:
    """After a seek, a skip or the end of a message's time the disk is asked at once."""

    async def main() -> None:
        for step in ("seek", "seek back", "skip"):
            stand = cold(6)
            consumer, connection = stand.join("c", SubType.Shared, 10)
            if step == "seek back":
                stand.log.finish_read()
                stand.subscription.acks.take(consumer, [0, 1, 2, 3])
                stand.log.resident = 1 << 30
                stand.subscription.redeliver(consumer, None)
            stand.log.finish_read(error)
            if step == "skip":
                stand.subscription.skip_until(3)
            else:
                stand.subscription.seek_to(4 if step == "seek" else 0)
                _, connection = stand.join("d", SubType.Shared, 10)
            assert len(stand.log.reads) == 1, step
            stand.log.finish_read()
            assert connection.ordinals[0] == (0 if step == "seek back" else 4)
            stand.subscription.close()

    simulated(main)


@pytest.mark.parametrize("sub_type", [SubType.Exclusive, SubType.Shared, SubType.Key_Shared])
def test_what_was_read_from_the_disk_is_let_go_when_it_is_sent(sub_type: SubType) -> None:
    """A subscription that has caught up, and one without consumers, hold nothing beside the cache."""

    async def main() -> None:
        stand = cold(6)
        runs: list[weakref.ref[Run]] = []
        for _ in range(2):
            runs.clear()
            consumer, connection = stand.join("c", sub_type, 6)
            stand.log.reads[0][3](kept(stand.log.run(0, 6), runs))
            stand.log.reads.clear()
            assert connection.ordinals == [0, 1, 2, 3, 4, 5]
            gc.collect()
            assert runs[0]() is None
            stand.subscription.remove_consumer(consumer)
        consumer, connection = stand.join("c", sub_type, 6)
        connection.writable = False
        stand.log.reads[0][3](kept(stand.log.run(0, 6), runs))
        assert runs[1]() is not None or sub_type is SubType.Key_Shared
        stand.subscription.remove_consumer(consumer)
        gc.collect()
        assert runs[1]() is None
        stand.subscription.close()

    simulated(main)


def test_a_slow_consumer_has_what_comes_again_read_once() -> None:
    """With a cache that is off, an entry that comes again is on the disk; so are its neighbours, in the same read."""

    async def main() -> None:
        stand = cold(6)
        consumer, connection = stand.join("c", SubType.Shared, 6)
        stand.log.finish_read()
        assert connection.ordinals == [0, 1, 2, 3, 4, 5]
        stand.log.reads.clear()
        stand.subscription.redeliver(consumer, None)
        read = 0
        for _ in range(6):
            stand.subscription.flow(consumer, 1)
            if stand.log.reads:
                read += 1
                stand.log.reads[0][3](stand.log.run(0, 6))  # all of the extent, as the disk is read
                stand.log.reads.clear()
        assert connection.ordinals[6:] == [0, 1, 2, 3, 4, 5]
        assert read == 1
        stand.subscription.close()

    simulated(main)


class Run:
    """A run that says when it is gone."""

    def __init__(self, run: EntryRun) -> None:
        self.first, self.ledger, self.entry = run.first, run.ledger, run.entry
        self.entries, self.counts, self.message_index = run.entries, run.counts, run.message_index


def kept(run: EntryRun, runs: list[weakref.ref[Run]]) -> Run:
    made = Run(run)
    runs.append(weakref.ref(made))
    return made


def test_it_is_skipped_at_once_where_that_is_allowed() -> None:
    """``autoSkipNonRecoverableData``: the gap stays known."""

    async def main() -> None:
        stand = cold(6, auto_skip_non_recoverable_data=True)
        _, connection = stand.join("c", SubType.Shared, 10)
        stand.log.finish_read(UnreadableError("torn", 2))
        stand.log.finish_read(UnreadableError("torn", 3))
        stand.log.finish_read()
        assert connection.ordinals == [3, 4, 5]
        unreadable = stand.subscription.unreadable
        assert (unreadable.skipped, unreadable.entries_skipped) == ([(0, 3)], 3)
        assert stand.cursor.mark_delete == 2
        stand.subscription.close()

    simulated(main)


def test_ranges_that_touch_are_one_and_more_than_a_thousand_are_only_counted() -> None:
    ranges = UnreadableRanges()
    assert ranges.met(1, 3) and not ranges.met(1, 3) and ranges.met(1, 4) and ranges.met(0, 4)
    ranges.passed(2)
    ranges.add([4, 5, 9])
    assert (ranges.skipped, ranges.entries_skipped) == ([(0, 6), (9, 10)], 5)
    assert ranges.met(0, 4), "another life of that range is named again"
    ranges.waiting = None
    ranges.add(range(20, 20 + 2 * 998, 2))
    assert len(ranges.skipped) == 1000
    ranges.add([5000, 2015])
    assert (len(ranges.skipped), ranges.skipped[-1], ranges.entries_skipped) == (1000, (2014, 2016), 5 + 998 + 2)
