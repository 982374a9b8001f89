"""Which obstacles an explanation names, and the numbers, consumers and ids that it names with them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from magnetar.broker.delivery.dispatchers.key_shared import KeyShared
from magnetar.broker.throttling.rate_limit import LimitLevel, RateAmounts, RateLimit
from magnetar.broker.topic.dispatch.dispatch_throttle import DispatchThrottle
from magnetar.broker.topic.subscription.explanation import IDS_MAX, explain
from magnetar.model.subscription_types import IntRange, KeySharedMeta, KeySharedMode, SubType
from magnetar.testing.simloop import SimLoop, run_in
from tests.support.executed_lines import steps
from tests.support.fake_dispatch_rule import FakeRule
from tests.support.subscription_stand import Stand


def texts(stand: Stand) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for one in explain(stand.subscription):
        found.setdefault(one.what, []).append(one.text)
    return found


def test_who_holds_most_of_what_is_out_is_named_with_its_first() -> None:
    stand = Stand(dispatcher_max_round_robin_batch_size=1)
    few, _ = stand.join("few", permits=2)
    stand.join("many", permits=100)
    stand.append_many(10)
    assert len(few.state.pending) == 2
    stand.subscription.acks.take(few, [min(few.state.pending)])
    first = min(stand.subscription.consumers[1].state.pending)
    found = texts(stand)
    assert found["waits-for-acks"] == [
        "All 9 entries of the backlog were delivered and are not acknowledged; many holds 8 of them, "
        f"the first 0:{first}."
    ]


@pytest.mark.parametrize("sub_type", [SubType.Exclusive, SubType.Shared])
@pytest.mark.parametrize("more", [0, 1])
def test_all_is_out_or_something_is_left(sub_type: SubType, more: int) -> None:
    stand = Stand()
    stand.join("c", sub_type, permits=5)
    stand.append_many(5 + more)
    found = texts(stand)
    assert ("waits-for-acks" in found) == (not more)
    assert found["no-permits"] == ["c has 0 permits: its receiver queue is full or it never asked."]


def test_a_single_active_consumer_holds_from_the_first_that_is_not_acknowledged() -> None:
    stand = Stand()
    consumer, _ = stand.join("c", SubType.Exclusive, permits=100)
    stand.append_many(60)
    stand.subscription.acks.take_until(consumer, 51)
    (found,) = texts(stand)["waits-for-acks"]
    assert found == "All 8 entries of the backlog were delivered and are not acknowledged; the first is 1:2."


@pytest.mark.parametrize("count", [IDS_MAX - 1, IDS_MAX, IDS_MAX + 1, IDS_MAX + 5])
def test_so_many_ids_are_named_and_the_rest_is_counted(count: int) -> None:
    stand = Stand(max_unacked_messages_per_consumer=count)
    stand.join("c", permits=100)
    stand.append_many(count + 2)
    (found,) = texts(stand)["blocked-unacked"]
    named = ", ".join(f"0:{entry}" for entry in range(min(count, IDS_MAX)))
    more = f" and {count - IDS_MAX} more" if count > IDS_MAX else ""
    assert found == (
        f"c has {count} unacknowledged messages and pauses until half of {count}; the first is {named}{more}."
    )


def test_a_blocked_subscription_says_its_numbers() -> None:
    stand = Stand(max_unacked_messages_per_subscription=4)
    stand.join("a", permits=2)
    stand.join("b", permits=100)
    stand.append_many(10)
    (found,) = texts(stand)["blocked-unacked"]
    assert found == "The subscription has 4 unacknowledged messages and pauses until half of 4."


def test_what_holds_up_one_consumer_is_no_obstacle_while_another_takes_all() -> None:
    stand = Stand()
    stand.join("without", permits=0)
    stand.join("with", permits=100)
    stand.subscription.add_dispatch_rule(FakeRule(end=3))
    stand.append_many(10)
    found = texts(stand)
    assert found.keys() == {"gate"}
    assert found["gate"][0].startswith("Entries from 0:3 on may not be read yet: ")
    stand.subscription.entries_appended()


@pytest.mark.parametrize("sub_type", [SubType.Exclusive, SubType.Failover])
def test_only_the_active_consumer_matters(sub_type: SubType) -> None:
    async def main() -> None:
        stand = Stand(active_consumer_failover_delay_ms=1000)
        stand.append_many(5)
        stand.join("b", sub_type, permits=0)
        if sub_type is SubType.Failover:
            stand.join("a", sub_type, permits=100)
            assert texts(stand)["activation"] == ["The active consumer has just changed and takes over in a moment."]
            await asyncio.sleep(1.5)
            assert "activation" not in texts(stand)
            assert "no-permits" not in texts(stand), "whoever stands by needs none"
        else:
            assert "no-permits" in texts(stand)
        stand.subscription.close()

    run_in(SimLoop(1), main())


def test_a_limit_names_its_level_its_amount_and_who_waits_beside() -> None:
    async def main() -> None:
        limit = RateLimit(LimitLevel.TOPIC, "dispatchRate", RateAmounts(10, 0, 100))
        stands = [Stand(), Stand()]
        for number, stand in enumerate(stands):
            stand.join("c", permits=100)
            DispatchThrottle(stand.subscription.pump, stand.cursor).set_limits((limit,))
            stand.append_many(5)
            await asyncio.sleep(0)
            (found,) = texts(stand)["throttled"]
            assert found.startswith("The topic is at its limit of ")
            assert ("; 2 subscriptions wait for it in turn" in found) == (number == 1)
        for stand in stands:
            stand.subscription.close()

    run_in(SimLoop(1), main())


def test_keys_that_wait_name_their_hash_and_why() -> None:
    """One finding per hash, ten at most."""

    def waiting(permits: int, **settings: Any) -> Stand:
        stand = Stand(keys=40, **settings)
        low = KeySharedMeta(KeySharedMode.STICKY, (IntRange(0, 32_767),))
        stand.join("low", SubType.Key_Shared, 0, key_shared=low)
        stand.append_many(40)
        stand.join(
            "high",
            SubType.Key_Shared,
            permits,
            key_shared=KeySharedMeta(KeySharedMode.STICKY, (IntRange(32_768, 50_000),)),
        )
        return stand

    found = texts(waiting(30))
    assert len(found["owner-busy"]) + len(found.get("uncovered-hash", ())) == IDS_MAX
    for text in found["owner-busy"]:
        assert "1 entries of hash " in text and text.endswith(("low, which takes none.", "high, which takes none."))
    assert "look-ahead-full" not in found
    full = texts(waiting(1, key_shared_look_ahead_per_subscription=5, key_shared_look_ahead_per_consumer=5))
    (text,) = full["look-ahead-full"]
    assert text.endswith("entries wait for their keys, so nothing new is read.")


def test_holders_of_keys_are_found_once_for_all_of_them() -> None:
    """A Key_Shared subscription that pauses at its limit: of each key that waits, all that is out was gone through."""

    def explaining(entries: int) -> int:
        stand = Stand(
            keys=1 << 30, subscription_key_shared_use_consistent_hashing=False,
            max_unacked_messages_per_subscription=entries, key_shared_look_ahead_per_consumer=0,
        )  # fmt: skip
        slow, _ = stand.join("slow", SubType.Key_Shared)
        stand.join("quick", SubType.Key_Shared, permits=3 * entries)
        stand.append_many(2 * entries)
        stand.append_many(2 * entries)
        dispatcher = stand.subscription.dispatcher
        assert isinstance(dispatcher, KeyShared)
        assert dispatcher.blocked and len(dispatcher.waiting_slots()) > entries // 2
        slow.state.permits = 3 * entries
        return steps(lambda: explain(stand.subscription))

    assert explaining(800) < 3 * explaining(400)
