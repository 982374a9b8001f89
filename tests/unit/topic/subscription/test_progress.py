"""Whether a subscription should be sending: every number is recounted exactly, for one entry decides."""

from __future__ import annotations

from typing import Any

import pytest
from typing_extensions import override

from magnetar.broker.delivery.dispatchers.multiple_consumers import MultipleConsumers
from magnetar.broker.topic.dispatch.dispatch_filter import DispatchRule
from magnetar.broker.topic.ports import SubscriptionCursor
from magnetar.model.subscription_types import SubType
from tests.support.subscription_stand import Stand

SHARING = [SubType.Shared, SubType.Key_Shared]


def quiet(sub_type: SubType, *, entries: int = 10, permits: int = 10, **settings: Any) -> Stand:
    """Everything is out at one consumer."""
    stand = Stand(**settings)
    stand.append_many(entries)
    stand.join("c", sub_type, permits)
    assert stand.subscription.should_send() == ""
    return stand


def sharing(stand: Stand) -> MultipleConsumers:
    dispatcher = stand.subscription.dispatcher
    assert isinstance(dispatcher, MultipleConsumers)
    return dispatcher


@pytest.mark.parametrize("sub_type", SHARING)
def test_progress_is_another_after_all_that_happens(sub_type: SubType) -> None:
    stand = quiet(sub_type, entries=0)
    (consumer,) = stand.subscription.consumers
    seen = [stand.subscription.progress()]
    for happens in (
        lambda: stand.append_many(2),
        lambda: stand.subscription.acks.take(consumer, [1]),
        lambda: stand.subscription.acks.take(consumer, [0]),
        lambda: stand.join("d", sub_type, 10),
        lambda: stand.subscription.remove_consumer(consumer),
    ):
        happens()
        assert stand.subscription.progress() == stand.subscription.progress()
        seen.append(stand.subscription.progress())
    assert len(set(seen)) == len(seen)


@pytest.mark.parametrize("sub_type", SHARING)
@pytest.mark.parametrize("lost", [1, 2, 3])
def test_each_entry_that_nobody_has_is_counted(sub_type: SubType, lost: int) -> None:
    stand = quiet(sub_type, permits=20)
    (consumer,) = stand.subscription.consumers
    for ordinal in range(lost):
        del consumer.state.pending[ordinal + 4]
    assert stand.subscription.should_send().startswith(f"{lost} entries of the backlog are nowhere")


class Holding(DispatchRule):
    """Keeps entry 4 back for ever."""

    def __init__(self, *, counted: bool) -> None:
        self.counted = counted

    @override
    def next_open(self, start: int, stop: int) -> int:
        return min(start + (start == 4), stop)

    @override
    def next_closed(self, start: int, stop: int) -> int:
        return 4 if start <= 4 < stop else stop

    @override
    def delayed(self, cursor: SubscriptionCursor, end: int) -> int:
        return int(end > 4 and not cursor.acknowledged(4))


@pytest.mark.parametrize("sub_type", SHARING)
@pytest.mark.parametrize("counted", [(), (True,), (True, True), (False,), (True, False), (False, True)])
def test_lost_entries_are_distinguished_from_held_ones_where_all_rules_say_how_many_they_hold(
    sub_type: SubType, counted: tuple[bool, ...]
) -> None:
    stand = Stand()
    for counts in counted:
        stand.subscription.add_dispatch_rule(Holding(counted=counts))
    stand.append_many(10)
    consumer, connection = stand.join("c", sub_type, 20)
    assert connection.ordinals == [ordinal for ordinal in range(10) if ordinal != 4 or not counted]
    if len(counted) < 2:  # two would count it twice
        assert stand.subscription.should_send() == ""
    for ordinal in (6, 8, 9):
        del consumer.state.pending[ordinal]
    assert ("nowhere" in stand.subscription.should_send()) == all(counted)


@pytest.mark.parametrize("mark", [0, 3, 5])
def test_what_is_acknowledged_is_not_missed_and_what_is_ahead_is_not_lost(mark: int) -> None:
    stand = quiet(SubType.Shared, permits=5)
    (consumer,) = stand.subscription.consumers
    stand.cursor.acknowledge_until(mark)
    stand.cursor.acknowledge([8])
    if mark == 0:
        stand.cursor.acknowledge([2])
    assert stand.subscription.should_send() == "", "five are out or acknowledged, five are ahead"
    consumer.state.permits += 1
    assert "is next and c could take it" in stand.subscription.should_send()
    for ordinal in list(consumer.state.pending):
        if ordinal <= mark:
            del consumer.state.pending[ordinal]
    assert "nowhere" not in stand.subscription.should_send()
    gone = [ordinal for ordinal in consumer.state.pending if ordinal > mark and ordinal != 2]
    if gone:
        del consumer.state.pending[gone[0]]
        assert stand.subscription.should_send().startswith("1 entries of the backlog are nowhere")


@pytest.mark.parametrize("sub_type", list(SubType))
def test_one_permit_is_enough_and_none_is_not(sub_type: SubType) -> None:
    stand = Stand(active_consumer_failover_delay_ms=0)
    stand.append_many(3)
    (consumer, connection) = stand.join("c", sub_type)
    assert stand.subscription.should_send() == ""
    consumer.state.permits = 1
    assert "c could take it" in stand.subscription.should_send()
    connection.writable = False
    assert stand.subscription.should_send() == ""


@pytest.mark.parametrize("sub_type", SHARING)
def test_a_block_may_last_down_to_half_the_limit_and_not_below(sub_type: SubType) -> None:
    for limit in ("max_unacked_messages_per_consumer", "max_unacked_messages_per_subscription"):
        stand = quiet(sub_type, entries=20, permits=20, **{limit: 8})
        (consumer,) = stand.subscription.consumers
        blocked = consumer.state.blocked or sharing(stand).blocked
        assert blocked
        out = sorted(consumer.state.pending)
        assert len(out) >= 8
        for ordinal in out[: len(out) - 5]:
            stand.cursor.acknowledge([ordinal])
            del consumer.state.pending[ordinal]
        assert stand.subscription.should_send() == "", "five of eight are out: it may rightly be blocked"
        stand.cursor.acknowledge([out[-5]])
        del consumer.state.pending[out[-5]]
        assert stand.subscription.should_send() != "", "four of eight: the block should have been lifted"


def test_what_was_acknowledged_ahead_of_reading_counts_as_read_to_the_end() -> None:
    stand = Stand()
    consumer, connection = stand.join("c", SubType.Exclusive, permits=1)
    stand.append_many(5)
    assert connection.ordinals == [0]
    stand.subscription.acks.take(consumer, [1, 2, 3, 4])
    stand.subscription.flow(consumer, 5)
    assert connection.ordinals == [0]
    assert stand.subscription.stats().read_at == 5
    stand.append_many(1)
    assert connection.ordinals == [0, 5]
