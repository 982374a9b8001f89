"""Entries of Key_Shared that wait for the owner of their slot."""

from __future__ import annotations

from typing import Any, cast

from magnetar.broker.delivery.dispatchers.key_shared import KeyShared
from magnetar.broker.delivery.sticky_keys.sticky_replay import StickyReplayQueue
from magnetar.model.subscription_types import SubType
from tests.support.subscription_stand import Stand


def test_an_entry_that_waits_already_waits_once_where_it_is() -> None:
    queue = StickyReplayQueue()
    owner, other = cast("Any", "owner"), cast("Any", "other")
    for ordinal, slot in ((5, 1), (3, 1), (4, 2)):
        queue.add(ordinal, slot, owner)
    queue.add(5, 1, other)
    queue.add(4, 9, other)
    assert (len(queue), queue.slots) == (3, {5: 1, 3: 1, 4: 2})
    assert queue.by_slot == {1: [3, 5], 2: [4]}
    for ordinal in (3, 4, 5):
        queue.remove(ordinal)
    assert (len(queue), queue.by_slot) == (0, {})


def test_an_entry_that_waits_for_its_owner_is_neither_out_nor_left_over() -> None:
    stand = Stand(keys=2)
    consumer, _ = stand.join("c", SubType.Key_Shared, permits=2)
    stand.append_many(5)
    dispatcher = stand.subscription.dispatcher
    assert isinstance(dispatcher, KeyShared)
    stand.subscription.redeliver(consumer, None)
    waiting = [ordinal for ordinal in range(5) if dispatcher._queued(ordinal)]
    assert waiting == [0, 1]
    assert [dispatcher.has(ordinal) for ordinal in range(6)] == [True, True, False, False, False, False]
    assert dispatcher.take_back([0, 1, 2, 4]) == [2, 4]
    dispatcher.acknowledged_until(0)
    assert [dispatcher.has(ordinal) for ordinal in range(2)] == [False, True]
    assert dispatcher.withdraw([1]) and not dispatcher.withdraw([1])
    assert dispatcher.in_replay == 0
