"""Entries of Key_Shared that wait for the owner of their slot."""

from __future__ import annotations

from typing import Any, cast

from magnetar.broker.delivery.sticky_keys.sticky_replay import StickyReplayQueue


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
