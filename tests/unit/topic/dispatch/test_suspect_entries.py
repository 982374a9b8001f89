"""A message that ended its reader's connection is looked at before it goes out again (docs/decisions/070)."""

from __future__ import annotations

import asyncio
import logging

import pytest

from magnetar.broker.topic.dispatch import suspect_entries
from magnetar.model.subscription_types import SubType
from magnetar.runtime.log import RateLimitedLog
from tests.support.connections import until
from tests.support.subscription_fakes import FakeConnection
from tests.support.subscription_stand import Stand

SINGLE = [SubType.Exclusive, SubType.Failover]
SHARED = [SubType.Shared]
KINDS = SINGLE + SHARED


class Reader:
    """Cannot read the metadata of entries with these ordinals; counts what it looked at."""

    def __init__(self) -> None:
        self.garbage: set[int] = set()
        self.looked_at = 0

    def publish_time(self, entry: bytes) -> int | None:
        self.looked_at += 1
        return None if int(entry.removeprefix(b"entry-")) in self.garbage else 1


@pytest.fixture(autouse=True)
def reader(monkeypatch: pytest.MonkeyPatch) -> Reader:
    found = Reader()
    monkeypatch.setattr(suspect_entries, "stored_publish_time", found.publish_time)
    return found


def stand_with(size: int) -> Stand:
    stand = Stand(active_consumer_failover_delay_ms=0)
    stand.log.append(*[1] * size)
    return stand


def back_again(stand: Stand, sub_type: SubType, *, lost: bool = True, permits: int = 1000) -> list[int]:
    """What the next consumer gets after the first one's connection was lost."""

    async def steps() -> FakeConnection:
        consumer, _ = stand.join(sub_type=sub_type, permits=permits)
        stand.subscription.remove_consumer(consumer, lost=lost)
        _, connection = stand.join(sub_type=sub_type, permits=1000)
        return connection

    return asyncio.run(steps()).ordinals


@pytest.mark.parametrize("sub_type", KINDS)
def test_what_nobody_can_read_is_skipped_after_a_connection_was_lost(sub_type: SubType, reader: Reader) -> None:
    reader.garbage = {0, 3, 4, 49, 50, 51, 119}
    stand = stand_with(120)
    assert back_again(stand, sub_type) == [o for o in range(120) if o not in (0, 3, 4, 49, 50, 51, 119)]
    assert stand.cursor.mark_delete == 0
    assert all(map(stand.cursor.acknowledged, (0, 3, 4, 49, 50, 51, 119)))
    unreadable = stand.subscription.unreadable
    assert (unreadable.entries_skipped, unreadable.skipped) == (7, [(0, 1), (3, 5), (49, 52), (119, 120)])


@pytest.mark.parametrize("sub_type", KINDS)
def test_nothing_is_looked_at_before_and_when_a_consumer_closes(sub_type: SubType, reader: Reader) -> None:
    reader.garbage = {7}
    stand = stand_with(20)
    assert back_again(stand, sub_type, lost=False) == list(range(20))
    assert stand.subscription.unreadable.entries_skipped == 0
    assert stand.subscription.pump.dispatch_filter is None


@pytest.mark.parametrize("sub_type", KINDS)
def test_only_what_was_out_is_looked_at(sub_type: SubType, reader: Reader) -> None:
    """The consumer had permits for ten entries; the eleventh may end a connection first."""
    reader.garbage = {5, 20}
    stand = stand_with(30)
    assert back_again(stand, sub_type, permits=10) == [o for o in range(30) if o != 5]


def test_from_the_disk_as_well(reader: Reader) -> None:
    async def steps() -> None:
        reader.garbage = {2, 40}
        stand = stand_with(60)
        consumer, _ = stand.join(sub_type=SubType.Exclusive, permits=1000)
        stand.log.resident = 60
        stand.subscription.remove_consumer(consumer, lost=True)
        _, connection = stand.join(sub_type=SubType.Exclusive, permits=1000)
        for _ in range(8):
            if stand.log.reads:
                stand.log.finish_read()
        assert connection.ordinals == [o for o in range(60) if o not in (2, 40)]

    asyncio.run(steps())


def test_what_is_skipped_is_named_in_the_log(
    reader: Reader, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the subscription, how many they are, and the first of them: whoever looks for a lost message finds it."""
    monkeypatch.setattr(suspect_entries, "_limited", RateLimitedLog(logging.getLogger("of this test")))
    reader.garbage = {3, 4}
    stand = stand_with(9)
    back_again(stand, SubType.Exclusive)
    position = stand.log.position(3)
    (line,) = [one.getMessage() for one in caplog.records if "no client can read" in one.getMessage()]
    assert f"2 messages, the first of them {position.ledger}:{position.entry}, have" in line
    assert stand.subscription.name in line


def test_everything_that_is_out_is_unreadable(reader: Reader) -> None:
    reader.garbage = {*range(200)}
    stand = stand_with(250)
    assert back_again(stand, SubType.Exclusive) == list(range(200, 250))
    assert stand.cursor.mark_delete == 199


@pytest.mark.parametrize("sub_type", SINGLE)
def test_the_short_way_is_back_when_all_was_looked_at(sub_type: SubType, reader: Reader) -> None:
    reader.garbage = {3}
    stand = stand_with(20)

    async def steps() -> None:
        consumer, _ = stand.join(sub_type=sub_type, permits=1000)
        stand.subscription.remove_consumer(consumer, lost=True)
        assert stand.subscription.pump.dispatch_filter is not None
        _, connection = stand.join(sub_type=sub_type, permits=1000)
        stand.append_many(1)
        assert connection.ordinals[-1] == 20
        assert stand.subscription.pump.reads.suspects is None
        assert stand.subscription.pump.dispatch_filter is None

    asyncio.run(steps())


def test_a_shared_subscription_forgets_its_suspects_when_they_are_acknowledged(reader: Reader) -> None:
    reader.garbage = {3}
    stand = stand_with(20)

    async def steps() -> None:
        consumer, _ = stand.join(permits=1000)
        stand.subscription.remove_consumer(consumer, lost=True)
        consumer, connection = stand.join(permits=1000)
        assert stand.subscription.pump.reads.suspects is not None
        stand.subscription.acks.take(consumer, connection.ordinals)
        stand.append_many(1)
        assert stand.subscription.pump.reads.suspects is None
        assert connection.ordinals[-1] == 20

    asyncio.run(steps())


def test_a_consumer_that_had_nothing_leaves_no_suspects(reader: Reader) -> None:
    reader.garbage = {3}
    stand = stand_with(5)
    consumer, _ = stand.join()
    stand.subscription.remove_consumer(consumer, lost=True)
    assert stand.subscription.pump.reads.suspects is None


def test_it_is_looked_at_once_however_few_permits_there_are(reader: Reader) -> None:
    stand = stand_with(40)

    async def steps() -> None:
        consumer, _ = stand.join(permits=1000)
        stand.subscription.remove_consumer(consumer, lost=True)
        consumer, connection = stand.join()
        for _ in range(40):
            stand.subscription.flow(consumer, 1)
        assert connection.ordinals == list(range(40))

    asyncio.run(steps())
    assert reader.looked_at <= 41


def test_what_another_consumer_has_is_counted_once(reader: Reader) -> None:
    reader.garbage = {5}
    stand = stand_with(10)

    async def steps() -> None:
        first, _ = stand.join("a", permits=5)
        stand.join("b", permits=1)
        stand.subscription.flow(first, 100)
        stand.subscription.remove_consumer(first, lost=True)
        for _ in range(4):
            consumer, _ = stand.join("a", permits=100)
            stand.subscription.remove_consumer(consumer, lost=True)
        assert stand.subscription.unreadable.entries_skipped == 1
        assert stand.subscription.unreadable.skipped == [(5, 6)]

    asyncio.run(steps())


def test_a_turn_ends_among_very_many_of_them(reader: Reader) -> None:
    stand = Stand(active_consumer_failover_delay_ms=0, turn_entries_max=100)
    stand.log.append(*[1] * 2000)

    async def steps() -> None:
        consumer, _ = stand.join(sub_type=SubType.Exclusive, permits=10_000)
        await until(lambda: stand.subscription.pump.read_at == 2000)
        reader.garbage = {*range(2000)}
        stand.subscription.remove_consumer(consumer, lost=True)
        stand.join(sub_type=SubType.Exclusive, permits=10_000)
        await asyncio.sleep(0)
        assert 0 < stand.subscription.unreadable.entries_skipped <= 200
        await until(lambda: stand.cursor.mark_delete == 1999)

    asyncio.run(steps())
