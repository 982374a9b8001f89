"""Subscription rules that need cursor, dispatcher and connections together (rules of group 5)."""

from __future__ import annotations

import asyncio

import pytest

from magnetar.broker.topic.subscription.acknowledgements import IndexAck
from magnetar.model.errors import ConsumerAssignError, ConsumerBusyError
from magnetar.model.subscription_types import IntRange, KeySharedMeta, KeySharedMode, SubType
from tests.support.subscription_fakes import FakeConnection
from tests.support.subscription_stand import Stand


def plain(connection: FakeConnection) -> list[tuple[int, int]]:
    return [(ordinal, count) for ordinal, count, _, _ in connection.got]


# -- joining ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("active", list(SubType))
@pytest.mark.parametrize("joining", list(SubType))
def test_types_do_not_mix(active: SubType, joining: SubType) -> None:
    """A consumer of another type is refused while others are connected (rules 5.1.1, 5.1.2)."""
    stand = Stand(active_consumer_failover_delay_ms=0)
    first, _ = stand.join("a", active)
    if active is joining and active is not SubType.Exclusive:
        stand.join("b", joining)
    else:
        names = f"'{active.name}' is different than the connecting consumer's type '{joining.name}'."
        expected = (
            "Exclusive consumer is already connected"
            if active is joining
            else f"Subscription is of different type. Active subscription type of {names}"
        )
        with pytest.raises(ConsumerBusyError) as refused:
            stand.join("b", joining)
        assert str(refused.value) == expected
        stand.subscription.remove_consumer(first)
        stand.join("b", joining)
        assert stand.subscription.stats().type == joining.name


@pytest.mark.parametrize("sub_type", [SubType.Shared, SubType.Key_Shared, SubType.Failover])
def test_permits_of_a_consumer_that_has_left_are_nobodys(sub_type: SubType) -> None:
    """Its FLOW may have been on the way when it left; others are there."""
    stand = Stand(active_consumer_failover_delay_ms=0)
    left, gone = stand.join("a", sub_type)
    _, connection = stand.join("b", sub_type, permits=100)
    stand.subscription.remove_consumer(left)
    stand.subscription.flow(left, 100)
    stand.append_many(20)
    assert (sorted(connection.ordinals), gone.ordinals) == (list(range(20)), [])
    assert (left.state.permits, left.last_flow_ms) == (0, 0)


def test_key_shared_modes_do_not_mix() -> None:
    """A Key_Shared consumer of another mode is refused (rule 5.1.3)."""
    sticky = KeySharedMeta(KeySharedMode.STICKY, (IntRange(0, 100),))
    stand = Stand()
    stand.join("a", SubType.Key_Shared, key_shared=sticky)
    with pytest.raises(ConsumerBusyError) as refused:
        stand.join("b", SubType.Key_Shared)
    assert str(refused.value) == (
        "Subscription is of different type. Active subscription key_shared mode of 'STICKY' is different than the "
        "connecting consumer's key_shared mode 'AUTO_SPLIT'."
    )
    stand = Stand()
    stand.join("a", SubType.Key_Shared)
    with pytest.raises(ConsumerBusyError) as refused:
        stand.join(
            "b",
            SubType.Key_Shared,
            key_shared=KeySharedMeta(KeySharedMode.AUTO_SPLIT, allow_out_of_order_delivery=True),
        )
    assert str(refused.value) == (
        "Subscription is of different type. Active subscription does not allow out of order delivery while the "
        "connecting consumer allows it."
    )


def test_refused_consumer_leaves_no_trace() -> None:
    """A refused consumer never joins, and a first one that is refused does not set the type (rule 5.6.8)."""
    stand = Stand()
    with pytest.raises(ConsumerAssignError):
        stand.join("a", SubType.Key_Shared, key_shared=KeySharedMeta(KeySharedMode.STICKY))
    assert stand.subscription.stats().type == "None"
    assert stand.subscription.consumers == []
    stand.join("b", SubType.Exclusive)


def test_sticky_conflict_names_the_other() -> None:
    stand = Stand()
    stand.join("one", SubType.Key_Shared, key_shared=KeySharedMeta(KeySharedMode.STICKY, (IntRange(0, 100),)))
    with pytest.raises(
        ConsumerAssignError, match=r"Range conflict with consumer Consumer\{subscription=.*consumerName=one,"
    ):
        stand.join("two", SubType.Key_Shared, key_shared=KeySharedMeta(KeySharedMode.STICKY, (IntRange(100, 110),)))


def test_consumer_limit() -> None:
    """One consumer too many is refused (rule 5.1.6)."""
    stand = Stand(max_consumers_per_subscription=2)
    stand.join("a")
    stand.join("b")
    with pytest.raises(ConsumerBusyError, match="Subscription reached max consumers limit"):
        stand.join("c")


# -- Exclusive and Failover ------------------------------------------------------------------------------------


def test_exclusive_resends_what_is_not_acknowledged() -> None:
    """A redelivery request on Exclusive rewinds the cursor, and the count stays 0 (rules 5.3.3, 5.7.3, 5.8.2,
    5.8.3)."""
    stand = Stand()
    stand.append_many(10)
    consumer, connection = stand.join("a", SubType.Exclusive, permits=100)
    stand.subscription.acks.take_until(consumer, 3)
    stand.subscription.acks.take(consumer, [6])
    connection.got.clear()
    stand.subscription.redeliver(consumer, [5])
    assert plain(connection) == [(4, 0), (5, 0), (7, 0), (8, 0), (9, 0)]
    stand.subscription.remove_consumer(consumer)
    _, again = stand.join("b", SubType.Exclusive, permits=100)
    assert plain(again) == plain(connection)
    assert stand.subscription.stats().unacked_messages == 0


def test_redeliveries_are_counted_anew_after_a_part_was_acknowledged() -> None:
    """Acknowledging a part of a batch begins its redelivery count anew, as Apache Pulsar 4.0.8 does (rule 5.8.3; probe
    `batch-ack-in-steps`)."""
    stand = Stand(acknowledgment_at_batch_index_level_enabled=True)
    consumer, connection = stand.join(permits=100)
    stand.append(3)
    for left in (0b110, 0b100):
        stand.subscription.acks.take_sets(consumer, [IndexAck(0, (left,), 3)])
        stand.subscription.redeliver(consumer, [0])
    assert [(count, words) for _, count, words, _ in connection.got] == [(0, ()), (1, (0b110,)), (1, (0b100,))]
    stand.subscription.redeliver(consumer, [0])
    assert connection.got[-1][1] == 2


def test_epoch_is_echoed() -> None:
    """MESSAGE echoes the epoch of the consumer (rule 5.8.5)."""
    stand = Stand()
    stand.append_many(2)
    consumer, connection = stand.join("a", SubType.Exclusive, permits=100, epoch=0)
    stand.subscription.redeliver(consumer, None, epoch=1)
    assert [(o, epoch) for o, _, _, epoch in connection.got] == [(0, 0), (1, 0), (0, 1), (1, 1)]


def test_failover_waits_then_serves_then_switches() -> None:
    """Failover waits, serves its active consumer, and switches to the next with everything unacknowledged (rules 5.4.5,
    5.4.6, 5.4.7, 5.4.8)."""

    async def run() -> None:
        stand = Stand(active_consumer_failover_delay_ms=20)
        stand.append_many(10)
        b, b_connection = stand.join("B", SubType.Failover, permits=100)
        assert (b_connection.got, b_connection.active) == ([], [])
        await asyncio.sleep(0.04)
        assert b_connection.active == [True]
        assert b_connection.ordinals == list(range(10))
        c, c_connection = stand.join("C", SubType.Failover, permits=100)
        assert c_connection.active == [False]
        stand.subscription.acks.take_until(c, 4)  # from a stand-by: accepted
        assert stand.subscription.active_consumer is b
        stand.subscription.remove_consumer(b)
        stand.append_many(2)
        assert c_connection.got == []
        await asyncio.sleep(0.04)
        assert c_connection.active == [False, True]
        assert c_connection.ordinals == list(range(5, 12))
        assert stand.subscription.stats().active_consumer_name == "C"
        stand.subscription.remove_consumer(c)
        stand.join("D", SubType.Failover)
        stand.subscription.close()
        await asyncio.sleep(0.04)

    asyncio.run(run())


@pytest.mark.parametrize("delay_ms", [1, 20])
def test_old_active_one_gets_nothing_during_the_switch(delay_ms: int) -> None:
    async def run() -> None:
        stand = Stand(active_consumer_failover_delay_ms=delay_ms)
        _, b_connection = stand.join("B", SubType.Failover, permits=100)
        await asyncio.sleep(0.04)
        stand.join("A", SubType.Failover, permits=100)
        stand.append_many(3)
        assert b_connection.got == []
        await asyncio.sleep(0.04)
        assert b_connection.active == [True, False]
        stand.subscription.close()

    asyncio.run(run())


# -- Shared ----------------------------------------------------------------------------------------------------


def test_backlog_over_three_idle_consumers() -> None:
    """A backlog goes to idle consumers in runs of 20 (rule 5.5.3)."""
    stand = Stand()
    stand.append_many(100)
    members = [stand.join(name) for name in "abc"]
    for _, connection in members:
        connection.writable = False
    for consumer, _ in members:
        stand.subscription.flow(consumer, 1000)
    for _, connection in members:
        connection.writable = True
    stand.subscription.resume(members[0][0])
    a, b, c = (connection.ordinals for _, connection in members)
    assert a == [*range(20), *range(60, 80)]
    assert b == [*range(20, 40), *range(80, 100)]
    assert c == list(range(40, 60))


def test_priorities_as_in_5_5_1() -> None:
    """C1(p0,2) C2(p0,1) C3(p0,1) C4(p1,2) C5(p1,1) -> C1,C2,C3,C1,C4,C5,C4"""
    stand = Stand(dispatcher_max_round_robin_batch_size=1)
    connections: dict[str, FakeConnection] = {}
    for name, priority, permits in [("C4", 1, 2), ("C1", 0, 2), ("C2", 0, 1), ("C5", 1, 1), ("C3", 0, 1)]:
        _, connections[name] = stand.join(name, priority=priority, permits=permits)
    stand.append_many(10)
    order = sorted((ordinal, name) for name, connection in connections.items() for ordinal in connection.ordinals)
    assert [name for _, name in order] == ["C1", "C2", "C3", "C1", "C4", "C5", "C4"]


@pytest.mark.parametrize("priorities", [(0, 0), (1, 1), (1, 0)])
def test_who_joins_a_consumer_that_was_alone_is_next(priorities: tuple[int, int]) -> None:
    """Serving the only consumer ends its turn, too, so what it gives back goes to the other one (rule 5.5.1)."""
    stand = Stand()
    a, _ = stand.join("a", priority=priorities[0], permits=20)
    stand.append_many(10)
    assert len(a.state.pending) == 10
    _, b_connection = stand.join("b", priority=priorities[1], permits=10)
    stand.subscription.redeliver(a, list(range(10)))
    assert b_connection.ordinals == list(range(10))


def test_redelivery_counts() -> None:
    """A negative acknowledgement counts, a disconnect does not, and the leaving of the last consumer forgets the counts
    (rules 5.8.1, 5.8.3, 5.8.4)."""
    stand = Stand()
    stand.append_many(5)
    a, a_connection = stand.join("a", permits=100)
    a_connection.got.clear()
    stand.subscription.redeliver(a, [3, 1, 77])
    stand.subscription.redeliver(a, [3])
    assert plain(a_connection) == [(1, 1), (3, 1), (3, 2)]
    _, b_connection = stand.join("b", permits=100)
    stand.subscription.remove_consumer(a)
    assert plain(b_connection) == [(0, 0), (1, 1), (2, 0), (3, 2), (4, 0)]
    stand.subscription.disconnect_all()
    _, c_connection = stand.join("c", permits=100)
    assert plain(c_connection) == [(o, 0) for o in range(5)]


def test_permits_overshoot_by_one_batch_at_most() -> None:
    """Shared exceeds the permits by one batch at most (rule 5.1.10)."""
    stand = Stand()
    stand.append(*[10] * 20)
    a, connection = stand.join("a", permits=15)
    assert connection.ordinals == [0, 1]
    assert a.state.permits == -5


def test_blocked_on_unacked_messages() -> None:
    """At the limit of unacknowledged messages no more comes, FLOW is kept aside, and half of the limit resumes (rule
    5.9.10)."""
    stand = Stand(max_unacked_messages_per_consumer=10)
    stand.append_many(30)
    a, connection = stand.join("a", permits=12)
    assert connection.ordinals == list(range(10))
    assert stand.subscription.stats().consumers[0].blocked_on_unacked
    stand.subscription.flow(a, 5)
    assert a.state.permits == 2
    stand.subscription.acks.take(a, [0, 1, 2, 3])
    assert len(connection.got) == 10
    stand.subscription.acks.take(a, [4])
    assert connection.ordinals == list(range(15))
    assert a.state.permits == 2
    stand.subscription.redeliver(a, None)  # unblocks (rule 5.8.6)
    assert len(connection.got) == 17


def test_subscription_blocked_on_unacked_messages() -> None:
    stand = Stand(max_unacked_messages_per_subscription=10, dispatcher_max_round_robin_batch_size=3)
    a, a_connection = stand.join("a", permits=100)
    _, b_connection = stand.join("b", permits=100)
    stand.append_many(30)
    assert len(a_connection.got) + len(b_connection.got) == 10
    assert stand.subscription.stats().blocked_on_unacked
    stand.subscription.acks.take(a, [*range(5)])
    assert len(a_connection.got) + len(b_connection.got) == 15


# -- Key_Shared ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ring", [True, False])
def test_key_shared_newcomer_waits_only_for_draining_keys(ring: bool) -> None:
    """A new consumer waits only for the keys that drain (rule 5.6.9)."""
    stand = Stand(keys=20, subscription_key_shared_use_consistent_hashing=ring)
    stand.append_many(40)
    a, a_connection = stand.join("a", SubType.Key_Shared, permits=1000)
    stand.subscription.acks.take(a, [o for o in range(40) if o % 20 >= 10])
    _, b_connection = stand.join("b", SubType.Key_Shared, permits=1000)
    draining = stand.subscription.stats().consumers[0].draining_hashes
    assert draining
    stand.append_many(20)
    assert b_connection.got
    assert all(o % 20 >= 10 for o in b_connection.ordinals), "keys 0 to 9 are held by a"
    assert {o for o in a_connection.ordinals if o >= 40}.isdisjoint(b_connection.ordinals)
    held_back = set(range(40, 60)) - set(a_connection.ordinals) - set(b_connection.ordinals)
    assert len(held_back) == len(draining)
    stand.subscription.acks.take(a, [o for o in range(40) if o % 20 < 10])
    assert held_back <= set(b_connection.ordinals)
    stats = stand.subscription.stats().consumers[0]
    assert stats.draining_hashes == []
    assert stats.draining_hashes_cleared_total == len(draining)


def test_key_shared_uncovered_slots_wait() -> None:
    """Messages of a slot without an owner wait (rule 5.6.8)."""
    stand = Stand(keys=4)
    stand.append_many(8)
    low = KeySharedMeta(KeySharedMode.STICKY, (IntRange(0, 32767),))
    high = KeySharedMeta(KeySharedMode.STICKY, (IntRange(32768, 65535),))
    _, a_connection = stand.join("a", SubType.Key_Shared, permits=100, key_shared=low)
    assert 0 < len(a_connection.got) < 8
    _, b_connection = stand.join("b", SubType.Key_Shared, permits=100, key_shared=high)
    assert sorted(a_connection.ordinals + b_connection.ordinals) == list(range(8))


# -- statistics ---------------------------------------------------------------------------------------------------


def test_statistics() -> None:
    """The statistics of a subscription and its consumers are those of what happened (rules of 5.10)."""
    stand = Stand()
    fresh = stand.subscription.stats()
    assert (fresh.type, fresh.backlog_entries, fresh.messages_out, fresh.last_mark_delete_advanced_ms) == (
        "None",
        0,
        0,
        0,
    )
    stand.append(3, 3, 1)
    a, _ = stand.join("a", permits=100)
    stand.subscription.acks.take(a, [1])
    assert stand.subscription.stats().last_mark_delete_advanced_ms == 0
    stand.subscription.acks.take(a, [0])
    stats = stand.subscription.stats()
    assert (stats.type, stats.backlog_entries, stats.unacked_messages) == ("Shared", 1, 1)
    assert (stats.entries_out, stats.messages_out, stats.bytes_out) == (3, 7, 3 * len("entry-0"))
    assert (stats.acked_entries, stats.consumers[0].average_messages_per_entry) == (2, 2)
    assert stats.last_mark_delete_advanced_ms == stats.last_acked_ms > stats.last_sent_ms > 0
    assert stats.consumers[0].available_permits == 93
    stand.subscription.remove_consumer(a)
    assert stand.subscription.stats().messages_out == 7, "those of consumers that left are kept"


def test_what_has_not_happened_yet_has_no_time() -> None:
    """Statistics show 0 for it, as Apache Pulsar does."""
    stats = Stand().subscription.stats()
    times = (stats.last_expired_ms, stats.last_flow_ms, stats.last_sent_ms, stats.last_acked_ms)
    assert (*times, stats.last_mark_delete_advanced_ms) == (0,) * 5


@pytest.mark.parametrize("sub_type", [SubType.Shared, SubType.Key_Shared])
def test_what_is_skipped_while_it_waits_to_go_out_again_leaves_nothing(sub_type: SubType) -> None:
    """Neither in memory nor in the way of what follows: a stuck consumer's messages expire again and again."""
    stand = Stand()
    stand.append_many(6)
    consumer, connection = stand.join(sub_type=sub_type, permits=6)
    stand.subscription.redeliver(consumer, None)
    dispatcher = stand.subscription.dispatcher
    assert dispatcher is not None
    assert dispatcher.redelivery_counts() == dict.fromkeys(range(6), 1)
    stand.subscription.skip_until(3)
    assert dispatcher.redelivery_counts() == {4: 1, 5: 1}
    connection.got.clear()
    stand.subscription.flow(consumer, 10)
    assert [(ordinal, count) for ordinal, count, *_ in connection.got] == [(4, 1), (5, 1)]
    stand.subscription.acks.take(consumer, [4, 5])
    assert not dispatcher.redelivery_counts()
    dispatcher.check()
