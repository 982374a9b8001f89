"""REACHED_END_OF_TOPIC of a terminated topic."""

from __future__ import annotations

import pytest

from tests.support.subscription_stand import Stand


def test_end_of_topic() -> None:
    """The consumers of a drained subscription are notified that the topic has ended (rule 5.9.11)."""
    stand = Stand()
    stand.append_many(2)
    a, connection = stand.join("a", permits=10)
    stand.subscription.topic_terminated()
    stand.subscription.acks.take(a, [0])
    assert connection.ended == 0
    stand.subscription.acks.take(a, [1])
    assert connection.ended == 1
    stand.subscription.remove_consumer(a)
    _, again = stand.join("b", permits=10)
    assert again.ended == 0


@pytest.mark.parametrize(("created", "told"), [(True, 1), (False, 0)])
def test_end_of_topic_when_subscribing_late(created: bool, told: int) -> None:
    """A new subscription of a terminated topic is notified after its first FLOW, a drained one not again
    (rule 5.9.11)."""
    stand = Stand(created=created, terminated=True)
    consumer, connection = stand.join("a")
    assert connection.ended == 0
    stand.subscription.flow(consumer, 1)
    stand.subscription.flow(consumer, 1)
    assert connection.ended == told


def test_end_of_topic_after_a_reload() -> None:
    stand = Stand(created=False)
    consumer, connection = stand.join("a", permits=10)
    stand.append_many(1)
    stand.subscription.topic_terminated()
    stand.subscription.acks.take(consumer, [0])
    assert connection.ended == 1


def test_the_end_is_told_again_to_who_went_back_and_going_back_is_no_progress() -> None:
    stand = Stand()
    stand.append_many(2)
    consumer, connection = stand.join("a", permits=10)
    stand.subscription.topic_terminated()
    stand.subscription.acks.take(consumer, [0, 1])
    advanced = stand.subscription.stats().last_mark_delete_advanced_ms
    assert (connection.ended, advanced > 0) == (1, True)
    stand.subscription.seek_to(0)
    consumer, connection = stand.join("a", permits=10)
    stand.subscription.acks.take(consumer, [])
    assert (connection.ended, connection.ordinals) == (0, [0, 1])
    assert stand.subscription.stats().last_mark_delete_advanced_ms == advanced
    stand.subscription.acks.take(consumer, [0, 1])
    assert connection.ended == 1
    assert stand.subscription.stats().last_mark_delete_advanced_ms > advanced


def test_only_what_moves_the_mark_delete_position_is_progress() -> None:
    stand = Stand()
    consumer, _ = stand.join("a", permits=10)
    stand.append_many(5)
    seen = []
    for ordinal in (3, 0, 2, 1, 4):
        stand.subscription.acks.take(consumer, [ordinal])
        seen.append(stand.subscription.stats().last_mark_delete_advanced_ms)
    assert seen[0] == 0
    assert seen[1] == seen[2] < seen[3] < seen[4], "0 moved it, 2 did not, 1 moved it to 3, and 4 once more"
