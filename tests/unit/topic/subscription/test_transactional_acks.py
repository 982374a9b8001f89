"""What a transaction's end does to a subscription that stands in memory (rule 9.12)."""

from __future__ import annotations

import pytest

from magnetar.broker.topic.subscription.acknowledgements import IndexAck
from magnetar.broker.topic.transactions.isolation import UnreservedIndexes
from magnetar.model.subscription_types import SubType
from magnetar.transactions.pending_acks import PartialBatch, PendingAcks
from tests.support.subscription_stand import Stand


@pytest.mark.parametrize("connected", [True, False])
@pytest.mark.parametrize(
    ("until", "mark", "left"),
    [
        (PartialBatch(4, 0, 0), 4, ()),
        (PartialBatch(4, 0b0011, 4), 3, (0b1100,)),
        (PartialBatch(4, 0b0111, 4), 3, (0b1000,)),
        (PartialBatch(4, 0b1111, 4), 4, ()),
        (PartialBatch(0, 0b0001, 4), -1, (0b1110,)),
        (PartialBatch(9, 0, 0), 9, ()),
    ],
)
def test_a_cumulative_acknowledgement_reaches_into_its_batch(
    connected: bool, until: PartialBatch, mark: int, left: tuple[int, ...]
) -> None:
    """Everything before the entry; of the entry itself what was named, all of it if that was not a batch."""
    stand = Stand()
    stand.append(*[4] * 10)
    if connected:
        stand.join(sub_type=SubType.Exclusive, permits=100)
    stand.subscription.transactional().commit([], [], until)
    assert stand.cursor.mark_delete == mark
    assert stand.cursor.remaining_indexes(until.ordinal) == left
    assert stand.cursor.remaining_indexes(until.ordinal - 1) == ()


@pytest.mark.parametrize("sub_type", [SubType.Shared, SubType.Exclusive])
def test_a_commit_acknowledges_entries_and_messages_of_batches(sub_type: SubType) -> None:
    stand = Stand()
    stand.append(*[4] * 6)
    consumer, _ = stand.join(sub_type=sub_type, permits=100)
    parts = [PartialBatch(1, 0b0101, 4), PartialBatch(4, 0b1111, 4)]
    stand.subscription.transactional().commit([3, 0], parts, None)
    assert stand.cursor.acked == {0, 3, 4}
    assert stand.cursor.remaining_indexes(1) == (0b1010,)
    assert stand.subscription.totals.last_mark_delete_advanced_ms > 0
    if sub_type is SubType.Shared:
        assert consumer.state.unacked == 2 + 4 + 4


def test_what_an_abort_gives_back_counts_as_sent_once_more_unless_it_is_acknowledged() -> None:
    stand = Stand()
    stand.append_many(6)
    stand.join(permits=100)
    acks = stand.subscription.transactional()
    stand.cursor.acknowledge([2])
    assert acks.given_back([1, 2, 3]) == [1, 3]
    assert acks.given_back([3]) == [3]
    dispatcher = stand.subscription.dispatcher
    assert dispatcher is not None
    assert dispatcher.redelivery_counts() == {1: 1, 3: 2}


def test_what_is_set_aside_burdens_nobody_and_keeps_its_redeliveries() -> None:
    """The messages that are left of a batch still count."""
    stand = Stand(max_unacked_messages_per_consumer=12)
    stand.append(*[4] * 8)
    consumer, connection = stand.join(permits=100)
    assert connection.ordinals == [0, 1, 2]
    dispatcher = stand.subscription.dispatcher
    assert dispatcher is not None
    dispatcher.redelivery_counts()[0] = 5
    stand.subscription.transactional().set_aside(consumer, [0], [(1, 0), (2, 1)])
    assert dispatcher.redelivery_counts()[0] == 5
    assert connection.ordinals[3:5] == [3, 4], "there is room for others at once"
    other, _ = stand.join("other")
    stand.subscription.remove_consumer(consumer)
    before = dict(dispatcher.redelivery_counts())
    stand.subscription.transactional().set_aside(consumer, [3], [])
    assert dispatcher.redelivery_counts() == before, "who has left holds nothing"
    assert other.state in stand.subscription.pump.consumers


@pytest.mark.parametrize("sub_type", [SubType.Shared, SubType.Key_Shared])
def test_a_batch_that_is_reserved_or_acknowledged_in_all_its_parts_is_out_no_more(sub_type: SubType) -> None:
    """A consumer held it with no message left, and a Key_Shared one held its key for ever."""
    stand = Stand(acknowledgment_at_batch_index_level_enabled=True)
    stand.append(3, 1)
    consumer, _ = stand.join(sub_type=sub_type, permits=100)
    acks, pending = stand.subscription.transactional(), PendingAcks()
    first, second = PartialBatch(0, 0b001, 3), PartialBatch(0, 0b010, 3)
    pending.parts[0] = first.joined(second)
    acks.show_parts(UnreservedIndexes(pending, stand.cursor))
    acks.set_aside(consumer, [], [(0, 1)])
    stand.subscription.acks.take_sets(consumer, [IndexAck(0, (0b011,), 3)])
    pending.parts[0] = second
    acks.commit([], [first], None)
    dispatcher = stand.subscription.dispatcher
    assert dispatcher is not None
    dispatcher.check()
    assert consumer.state.pending == {1: 1}
    del pending.parts[0]
    acks.commit([], [second], None)
    assert stand.cursor.acked == {0}
    stand.join("other", sub_type=sub_type, permits=100)
    dispatcher.check()
