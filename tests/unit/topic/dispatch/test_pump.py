"""Reading and sending: runs, holes, disk, trimming, the socket, the turn of the loop."""

from __future__ import annotations

import asyncio

import pytest
from typing_extensions import override

from magnetar.broker.topic.ports import EntryRun
from magnetar.model.subscription_types import SubType
from magnetar.storage.ledgers.stored_run import StoredRun
from tests.support.fake_dispatch_rule import FakeRule
from tests.support.subscription_fakes import FakeConnection, FakeLog
from tests.support.subscription_stand import Stand


def test_one_slice_per_run() -> None:
    stand = Stand()
    stand.log.append(*[1] * 120)
    _, connection = stand.join(permits=1000)
    assert connection.ordinals == list(range(120))
    assert connection.slices == [(0, 50), (50, 100), (100, 120)]


def test_an_epoch_goes_out_in_slices_too() -> None:
    """Consumers with an epoch, as Java's Exclusive and Failover ones always are, cost no call for each entry (rule
    5.8.5)."""
    stand = Stand()
    stand.log.append(*[1] * 120)
    consumer, connection = stand.join(sub_type=SubType.Exclusive, permits=1000, epoch=3)
    assert connection.slices == [(0, 50), (50, 100), (100, 120)]
    assert {epoch for _, _, _, epoch in connection.got} == {3}
    stand.subscription.redeliver(consumer, None, epoch=4)
    assert connection.slices[3:] == [(0, 50), (50, 100), (100, 120)]
    assert {epoch for _, _, _, epoch in connection.got[120:]} == {4}


def test_a_single_active_read_is_sent_whole_however_storage_cuts_it() -> None:
    """15 permits are 15 entries, here of 10 messages each in two ledgers (rule 5.1.10; probe
    `exclusive-batch-overshoot`)."""
    stand = Stand(mark_delete=39)
    stand.log.append(*[10] * 80)
    stand.cursor.acknowledge(range(40))
    consumer, connection = stand.join(sub_type=SubType.Exclusive, permits=15)
    assert connection.slices == [(40, 50), (50, 55)]
    assert consumer.state.permits == 15 - 150
    stand.subscription.flow(consumer, 135)
    stand.append_many(1)
    assert len(connection.ordinals) == 15
    stand.subscription.flow(consumer, 1)
    assert connection.ordinals == list(range(40, 56))


class Impatient(FakeConnection):
    """Whose taking anything is at once one more reason to look for what can be sent."""

    stand: Stand

    @override
    def deliver(self, run: EntryRun, start: int, stop: int, epoch: int | None) -> None:
        super().deliver(run, start, stop, epoch)
        self.stand.subscription.pump.turn()


@pytest.mark.parametrize("sub_type", list(SubType))
def test_a_turn_within_a_turn_leaves_everything_to_the_outer_one(sub_type: SubType) -> None:
    """Otherwise it would send once more what is being sent."""
    stand = Stand(active_consumer_failover_delay_ms=0)
    stand.log.append(*[1] * 120)
    connection = Impatient()
    connection.stand = stand
    consumer = stand.subscription.add_consumer(
        connection, name="c", consumer_id=7, sub_type=sub_type, priority=0, key_shared=None, epoch=None
    )
    stand.subscription.flow(consumer, 1000)
    assert connection.ordinals == list(range(120))
    assert consumer.state.permits == 880
    stand.append_many(3)
    assert connection.ordinals == list(range(123))


def test_nothing_before_it_is_durable() -> None:
    stand = Stand()
    _, connection = stand.join(permits=1000)
    stand.log.append(*[1] * 10)
    stand.log.end = 4
    stand.subscription.entries_appended()
    assert connection.ordinals == [0, 1, 2, 3]
    stand.log.end = 10
    stand.subscription.entries_appended()
    assert connection.ordinals == list(range(10))


@pytest.mark.parametrize("sub_type", list(SubType))
def test_holes_are_skipped(sub_type: SubType) -> None:
    stand = Stand(active_consumer_failover_delay_ms=0)
    stand.log.append(*[1] * 60)
    holes = [0, 3, 4, 5, 20, 49, 50, 59]
    stand.cursor.acknowledge(holes)
    consumer, connection = stand.join(sub_type=sub_type, permits=1000)
    expected = [o for o in range(60) if o not in holes]
    assert sorted(connection.ordinals) == expected
    assert consumer.state.permits == 1000 - len(expected)


def test_disk_is_read_once_at_a_time_and_the_rest_follows() -> None:
    stand = Stand()
    stand.log.append(*[1] * 150)
    stand.log.resident = 100
    consumer, connection = stand.join(permits=70)
    assert connection.ordinals == []
    stand.subscription.flow(consumer, 10)
    stand.subscription.entries_appended()
    assert stand.log.reads_total == 1
    stand.log.finish_read()
    assert connection.ordinals == list(range(50))
    stand.log.finish_read()
    assert connection.ordinals == list(range(80))
    stand.subscription.flow(consumer, 100)
    assert connection.ordinals == list(range(80))
    stand.log.finish_read()
    assert connection.ordinals == list(range(150))
    assert stand.log.reads_total == 3


def test_what_was_read_too_much_is_used_next_time() -> None:
    """Batches: a read of as many entries as permits brings more than the permits buy (rule 5.1.10)."""
    stand = Stand()
    stand.log.append(*[10] * 40)
    stand.log.resident = 40
    consumer, connection = stand.join(permits=35)
    stand.log.finish_read()
    assert connection.ordinals == [0, 1, 2, 3]
    assert consumer.state.permits == -5
    stand.subscription.flow(consumer, 25)
    assert connection.ordinals == [0, 1, 2, 3, 4, 5]
    assert stand.log.reads_total == 1


def test_failed_read_is_tried_again() -> None:
    async def run() -> None:
        stand = Stand(read_retry_s=0.01)
        stand.log.append(*[1] * 10)
        stand.log.resident = 10
        consumer, connection = stand.join(permits=5)
        stand.log.finish_read(OSError("broken"))
        stand.subscription.flow(consumer, 1)
        assert stand.log.reads == [], "not before the pause is over"
        await asyncio.sleep(0.05)
        stand.log.finish_read()
        assert connection.ordinals == list(range(6))
        stand.subscription.close()

    asyncio.run(run())


def test_result_of_a_read_after_close_is_dropped() -> None:
    stand = Stand()
    stand.log.append(*[1] * 10)
    stand.log.resident = 10
    _, connection = stand.join(permits=5)
    stand.subscription.close()
    stand.log.finish_read()
    assert connection.ordinals == []
    assert connection.closed == 1


def test_rewind_while_a_read_is_under_way() -> None:
    stand = Stand()
    stand.log.append(*[1] * 10)
    stand.log.resident = 10
    consumer, connection = stand.join(sub_type=SubType.Exclusive, permits=10)
    stand.log.finish_read()
    assert connection.ordinals == list(range(10))
    stand.append_many(5)
    stand.log.resident = 15
    stand.subscription.flow(consumer, 100)
    stand.subscription.redeliver(consumer, None)
    while stand.log.reads:
        stand.log.finish_read()
    assert connection.ordinals == [*range(10), *range(15)]


def test_cursor_behind_the_log_jumps() -> None:
    """A non-durable cursor before what is left continues at the first entry (rule 4.3.2)."""
    stand = Stand()
    stand.log.append(*[1] * 100)
    consumer, connection = stand.join(permits=10)
    stand.log.first = 50
    stand.subscription.flow(consumer, 5)
    assert connection.ordinals == [*range(10), *range(50, 55)]
    assert stand.cursor.mark_delete == 49
    stand.subscription.redeliver(consumer, [3, 4, 52])
    stand.subscription.flow(consumer, 5)
    assert connection.ordinals[15:] == [52, 55, 56, 57, 58]


@pytest.mark.parametrize("first", [1, 2, 30])
def test_trimmed_before_the_first_read(first: int) -> None:
    """However little was trimmed, it is no backlog any more."""
    stand = Stand()
    stand.log.append(*[1] * 100)
    stand.log.first = first
    _, connection = stand.join(sub_type=SubType.Exclusive, permits=1000)
    assert connection.ordinals == list(range(first, 100))
    assert (stand.cursor.jumps, stand.cursor.mark_delete) == (1, first - 1)


@pytest.mark.parametrize("sub_type", list(SubType))
@pytest.mark.parametrize("first", [1, 2, 4, 5])
def test_trimmed_before_the_first_read_where_a_rule_holds_some_back(sub_type: SubType, first: int) -> None:
    """What is gone is neither asked for nor held back; what the rule closes still is."""
    stand = Stand(active_consumer_failover_delay_ms=0)
    rule = FakeRule(shut=[0, 1, 3, 7])
    stand.subscription.add_dispatch_rule(rule)
    stand.append_many(10)
    stand.log.first = first
    _, connection = stand.join(sub_type=sub_type, permits=100)
    assert connection.ordinals == [ordinal for ordinal in range(first, 10) if ordinal not in rule.shut]
    assert (stand.cursor.jumps, stand.cursor.mark_delete) == (1, first - 1)


def test_a_restart_between_two_turns_leaves_one_of_them() -> None:
    """What was put off is done at once; the turn that was to do it has nothing left."""

    async def run() -> None:
        stand = Stand(turn_entries_max=50)
        stand.log.append(*[1] * 150)
        _, connection = stand.join(permits=1000)
        assert len(connection.got) == 50
        stand.subscription.pump.restart()
        assert len(connection.got) == 100
        await asyncio.sleep(0)
        assert connection.ordinals == list(range(150)), "one turn was left to come, and took what remains"

    asyncio.run(run())


def test_full_socket_gets_nothing_until_resumed() -> None:
    stand = Stand(dispatcher_max_read_batch_size=10)
    stand.log.append(*[1] * 100)
    consumer, connection = stand.join()
    connection.writable_for = 15
    stand.subscription.flow(consumer, 1000)
    assert connection.ordinals == list(range(20))
    stand.append_many(10)
    assert len(connection.got) == 20
    connection.writable, connection.writable_for = True, 1 << 60
    stand.subscription.resume(consumer)
    assert connection.ordinals == list(range(110))


def test_full_socket_of_one_leaves_all_to_the_other() -> None:
    stand = Stand()
    stand.log.append(*[1] * 60)
    a, full = stand.join("a")
    full.writable = False
    stand.subscription.flow(a, 1000)
    _, connection = stand.join("b", permits=1000)
    assert connection.ordinals == list(range(60))
    assert full.got == []


def test_turn_is_bounded() -> None:
    """Others on the loop run after ``turn_entries_max`` entries."""

    async def run() -> None:
        stand = Stand(turn_entries_max=100)
        stand.log.append(*[1] * 1000)
        _, connection = stand.join(permits=1000)
        seen = []
        while len(connection.got) < 1000:
            seen.append(len(connection.got))
            await asyncio.sleep(0)
        assert seen == list(range(100, 1000, 100))
        assert connection.ordinals == list(range(1000))

    asyncio.run(run())


def test_bounded_turn_stops_on_close() -> None:
    async def run() -> None:
        stand = Stand(turn_entries_max=100)
        stand.log.append(*[1] * 1000)
        _, connection = stand.join(permits=1000)
        stand.subscription.close()
        await asyncio.sleep(0)
        assert len(connection.got) == 100

    asyncio.run(run())


def test_replay_from_disk_comes_before_new_entries() -> None:
    """Entries of the replay queue come before new ones, also when they must be read from disk (rule 5.5.5)."""
    stand = Stand()
    stand.append_many(50)
    consumer, connection = stand.join(permits=20)
    stand.subscription.redeliver(consumer, [15, 2, 3])
    stand.log.resident = 50
    connection.got.clear()
    stand.subscription.flow(consumer, 3)
    assert stand.log.reads[0][0] == 2
    stand.append_many(5)
    assert connection.got == []
    stand.subscription.flow(consumer, 2)
    stand.log.finish_read()
    assert [(o, n) for o, n, _, _ in connection.got[:3]] == [(2, 1), (3, 1), (15, 1)]


@pytest.mark.parametrize("first", [2, 3, 5, 9, 10])
@pytest.mark.parametrize("sub_type", [SubType.Shared, SubType.Key_Shared])
def test_what_was_trimmed_is_not_replayed_and_what_stands_behind_it_is(sub_type: SubType, first: int) -> None:
    """What was trimmed counts as acknowledged to the consumer that asks for it again, and costs no permit
    (rule 4.3.2)."""
    stand = Stand(keys=1)
    stand.append_many(10)
    consumer, connection = stand.join(sub_type=sub_type, permits=10)
    stand.subscription.redeliver(consumer, [2, 3, 4, 8])
    connection.got.clear()
    stand.log.first = first
    stand.cursor.trimmed()
    stand.subscription.flow(consumer, 4)
    assert connection.ordinals == [o for o in (2, 3, 4, 8) if o >= first]
    dispatcher = stand.subscription.dispatcher
    assert dispatcher is not None
    dispatcher.check()
    assert dispatcher.plan_replay() == []
    assert consumer.state.permits == 4 - len(connection.got)


@pytest.mark.parametrize("then", ["read_through", "restart"])
def test_a_read_of_before_a_change_of_source_does_not_count(then: str) -> None:
    """Its entries are those of a log that the subscription reads no more, or a second copy of what is read anew."""
    stand = Stand()
    stand.log.append(*[1] * 20)
    stand.log.resident = 20
    _, connection = stand.join(permits=1000)
    assert len(stand.log.reads) == 1
    before = stand.log.reads.pop()
    stand.log.resident = 0
    other = FakeLog()
    other.append(*[1] * 20)
    other.entries = [b"entry-%d" % (1000 + number) for number in range(20)]
    if then == "read_through":
        stand.subscription.pump.read_through(other)
    else:
        stand.subscription.pump.restart()
    got = list(connection.ordinals)
    _, _, _, done = before
    done(StoredRun(0, 0, 0, [b"entry-0"] * 5, None))
    assert connection.ordinals == got


def test_a_restart_goes_on_by_itself() -> None:
    """It is for a subscription that stands still: nothing else may be about to happen."""
    stand = Stand()
    stand.log.append(*[1] * 10)
    stand.log.resident = 10
    _, connection = stand.join(permits=100)
    assert stand.log.reads_total == 1
    stand.log.reads.clear()  # the answer never comes
    stand.subscription.pump.restart()
    assert stand.log.reads_total == 2
    stand.log.finish_read()
    assert connection.ordinals == list(range(10))
