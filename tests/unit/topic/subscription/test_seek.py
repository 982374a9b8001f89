"""Seek, unsubscribe and what is skipped."""

from __future__ import annotations

from functools import partial

import pytest

from magnetar.broker.topic.subscription.acknowledgements import IndexAck
from magnetar.model.errors import MagnetarError, MetadataError, ServiceNotReadyError
from magnetar.model.subscription_types import SubType
from tests.support.subscription_stand import Stand


def test_seek_disconnects_and_resets() -> None:
    """A seek closes the consumers, resets the cursor to the given id and forgets acknowledgements (rules 5.9.1, 5.9.3,
    5.9.4, 5.9.6)."""
    stand = Stand(acknowledgment_at_batch_index_level_enabled=True)
    stand.append(1, 4, 1)
    a, a_connection = stand.join("a", permits=100)
    stand.subscription.acks.take(a, [0, 2])
    answers: list[int] = []
    stand.subscription.seek_to(1, lambda: answers.append(a_connection.closed), (0b1100,), 4)
    assert answers == [1], "CLOSE_CONSUMER comes before SUCCESS"
    assert stand.subscription.consumers == []
    stand.subscription.remove_consumer(a)  # the connection may still say so
    stand.subscription.flow(a, 10)
    late: list[str] = []
    stand.subscription.acks.take(a, [1, 2], partial(late.append, "ok"))
    stand.subscription.acks.take_sets(a, [IndexAck(1, (0,), 4)], partial(late.append, "ok"))
    stand.subscription.acks.take_until(a, 2, partial(late.append, "ok"))
    assert late == ["ok"] * 3
    _, connection = stand.join("a", permits=100)
    assert connection.got == [(1, 0, (12,), None), (2, 0, (), None)]


@pytest.mark.parametrize("connected", [True, False])
def test_where_a_subscription_reads_on_is_where_it_sought(connected: bool) -> None:
    """Statistics show it before a consumer comes again."""
    stand = Stand()
    stand.append_many(5)
    consumer, _ = stand.join("a", permits=100)
    assert stand.subscription.pump.read_at == 5
    if not connected:
        stand.subscription.remove_consumer(consumer)
    for place in (1, 4, 0):
        stand.subscription.seek_to(place)
        assert (stand.subscription.pump.read_at, stand.cursor.mark_delete) == (place, place - 1)


def test_seek_while_seeking(monkeypatch: pytest.MonkeyPatch) -> None:
    """A seek during another one is refused (rule 5.9.5)."""
    stand = Stand()
    stand.append_many(3)
    monkeypatch.setattr(stand.cursor, "reset", lambda ordinal, durable=None: None)
    stand.subscription.seek_to(0)
    with pytest.raises(MagnetarError, match="Error when resetting subscription: Failed to fence subscription"):
        stand.subscription.seek_to(0)


def test_a_seek_whose_topic_was_unloaded_while_its_place_was_searched_moves_nothing() -> None:
    """The cursor belongs to the subscription of the topic that was loaded again."""
    stand = Stand(mark_delete=3)
    stand.append_many(5)
    stand.subscription.close()
    with pytest.raises(ServiceNotReadyError, match="Topic is temporarily unavailable"):
        stand.subscription.seek_to(0)
    assert stand.cursor.mark_delete == 3


def test_seek_leaves_failover_stand_by_connected() -> None:
    stand = Stand(active_consumer_failover_delay_ms=0)
    _, a_connection = stand.join("A", SubType.Failover, permits=10)
    _, b_connection = stand.join("B", SubType.Failover, permits=10)
    stand.append_many(3)
    stand.subscription.seek_to(1)
    assert (a_connection.closed, b_connection.closed) == (1, 0)
    assert b_connection.ordinals[-2:] == [1, 2]


def test_unsubscribe_rule() -> None:
    """Only the sole consumer may unsubscribe, unless it forces the others out (rule 5.9.9)."""
    stand = Stand()
    a, _ = stand.join("a")
    stand.subscription.check_unsubscribe(a)
    _, b_connection = stand.join("b")
    with pytest.raises(MetadataError, match="Unconnected or shared consumer attempting to unsubscribe"):
        stand.subscription.check_unsubscribe(a)
    stand.subscription.check_unsubscribe(a, force=True)
    assert b_connection.closed == 1
    assert stand.subscription.consumers == [a]


def test_skipped_entries_do_not_come_back() -> None:
    stand = Stand()
    stand.append_many(10)
    a, _ = stand.join("a", permits=5)
    _, b_connection = stand.join("b", permits=2)
    stand.subscription.skip_until(7)
    stand.subscription.remove_consumer(a)
    assert b_connection.ordinals == [5, 6]
    stand.subscription.flow(stand.subscription.consumers[0], 100)
    assert b_connection.ordinals == [5, 6, 8, 9]
    assert stand.subscription.stats().unacked_messages == 2


@pytest.mark.parametrize("sub_type", list(SubType))
@pytest.mark.parametrize("last", [0, 4, 9])
def test_a_skip_takes_what_is_out_up_to_and_with_its_place(sub_type: SubType, last: int) -> None:
    """An entry that stays out for ever counts against its limit, and what waits for its key waits for ever."""
    stand = Stand(active_consumer_failover_delay_ms=0)
    stand.append_many(10)
    consumer, _ = stand.join("c", sub_type, permits=100)
    stand.subscription.skip_until(last)
    assert sorted(consumer.state.pending) == ([] if not consumer.state.pending else list(range(last + 1, 10)))
    assert consumer.state.unacked == (0 if not consumer.state.pending else 9 - last)
    assert stand.subscription.should_send() == ""
