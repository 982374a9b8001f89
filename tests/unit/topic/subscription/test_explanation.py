"""Why is nothing arriving: each obstacle is named, and standing still is distinguished from waiting."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from typing import Any

import pytest

from magnetar.broker.delivery.dispatchers.key_shared import KeyShared
from magnetar.broker.delivery.dispatchers.shared import Shared
from magnetar.broker.topic.dispatch.pump import Pump
from magnetar.broker.topic.subscription.explanation import Obstacle, explain
from magnetar.model.subscription_types import IntRange, KeySharedMeta, KeySharedMode, SubType
from tests.support.fake_dispatch_rule import FakeRule
from tests.support.subscription_churn import Churn
from tests.support.subscription_stand import Stand

ALL = list(SubType)


def findings(stand: Stand) -> dict[str, Obstacle]:
    assert stand.subscription.should_send() == ""
    return {finding.what: finding for finding in explain(stand.subscription)}


def stood(sub_type: SubType, permits: int, entries: int = 10, **settings: Any) -> Stand:
    stand = Stand(active_consumer_failover_delay_ms=0, **settings)
    stand.append_many(entries)
    stand.join("c1", sub_type, permits)
    return stand


def test_nothing_to_deliver_and_nobody() -> None:
    stand = Stand()
    assert set(findings(stand)) == {"caught-up"}
    stand.append_many(3)
    assert "3 entries wait" in findings(stand)["no-consumer"].text


@pytest.mark.parametrize("sub_type", ALL)
def test_no_permits(sub_type: SubType) -> None:
    found = findings(stood(sub_type, 0))
    assert set(found) - {"owner-busy"} == {"no-permits"}
    assert "c1 has 0 permits" in found["no-permits"].text


@pytest.mark.parametrize("sub_type", ALL)
def test_everything_is_out(sub_type: SubType) -> None:
    found = findings(stood(sub_type, 100))
    assert set(found) == {"waits-for-acks"}
    assert "0:0" in found["waits-for-acks"].text


@pytest.mark.parametrize("limit", [1, 9, 10, 11, 30])
def test_ten_of_those_that_are_out_are_named_and_the_rest_is_counted(limit: int) -> None:
    stand = stood(SubType.Shared, 100, limit, max_unacked_messages_per_consumer=limit)
    stand.append_many(5)
    text = findings(stand)["blocked-unacked"].text
    assert re.findall(r"\b0:(\d+)\b", text) == [str(entry) for entry in range(min(limit, 10))]
    assert re.findall(r"and (-?\d+) more", text) == ([str(limit - 10)] if limit > 10 else [])


@pytest.mark.parametrize("sub_type", [SubType.Shared, SubType.Key_Shared])
def test_blocked_on_unacked(sub_type: SubType) -> None:
    assert "blocked-unacked" in findings(stood(sub_type, 100, max_unacked_messages_per_consumer=4))
    assert "blocked-unacked" in findings(stood(sub_type, 100, max_unacked_messages_per_subscription=4))


@pytest.mark.parametrize("sub_type", [SubType.Shared, SubType.Key_Shared])
@pytest.mark.parametrize(("own", "of_share"), [(0, True), (5, True), (4, False), (3, False)])
def test_blocked_by_its_share_of_what_the_broker_may_have(sub_type: SubType, own: int, of_share: bool) -> None:
    """The limit that holds is named, and the setting that would raise it."""
    found = findings(stood(sub_type, 100, max_unacked_messages_per_subscription=own, unacked_share=4))
    obstacle = found["blocked-unacked"]
    assert f"half of {4 if of_share else own}." in obstacle.text
    assert ("share" in obstacle.text) is of_share
    assert ("maxUnackedMessagesPerBroker" in obstacle.do) is of_share
    assert ("maxUnackedMessagesPerSubscription" in obstacle.do) is not of_share


@pytest.mark.parametrize("sub_type", ALL)
def test_socket(sub_type: SubType) -> None:
    stand = Stand(active_consumer_failover_delay_ms=0)
    stand.append_many(5)
    consumer, connection = stand.join("c1", sub_type)
    connection.writable = False
    stand.subscription.flow(consumer, 10)
    assert "c1" in findings(stand)["socket-full"].text


@pytest.mark.parametrize("sub_type", ALL)
def test_gate(sub_type: SubType) -> None:
    stand = Stand(active_consumer_failover_delay_ms=0)
    stand.subscription.add_dispatch_rule(FakeRule(end=0))
    stand.append_many(5)
    stand.join("c1", sub_type, 10)
    assert "Entries from 0:0 on" in findings(stand)["gate"].text


def test_draining_hash_and_who_holds_it() -> None:
    stand = Stand(keys=1, subscription_key_shared_use_consistent_hashing=False)
    stand.append_many(3)
    first, _ = stand.join("old", SubType.Key_Shared, 2)
    stand.join("new", SubType.Key_Shared, 100)
    dispatcher = stand.subscription.dispatcher
    assert isinstance(dispatcher, KeyShared)
    slot = dispatcher.slot_of(0)
    if dispatcher.owner_of(slot) is first.state:
        stand.join("newer", SubType.Key_Shared, 100)
    found = findings(stand)
    wanted = "draining-hash" if dispatcher.owner_of(slot) is not first.state else "owner-busy"
    assert f"hash {slot}" in found[wanted].text
    if wanted == "draining-hash":
        assert "old still has unacknowledged entries of that hash (0:0, 0:1)" in found[wanted].text


def test_uncovered_hash() -> None:
    stand = Stand(keys=1)
    stand.append_many(2)
    stand.join("c1", SubType.Key_Shared, 10, key_shared=KeySharedMeta(KeySharedMode.STICKY, (IntRange(0, 0),)))
    assert "no consumer declares that hash" in findings(stand)["uncovered-hash"].text


def test_disk() -> None:
    stand = Stand()
    stand.log.resident = 10
    stand.append_many(10)
    stand.join("c1", SubType.Shared, 10)
    assert {finding.what for finding in explain(stand.subscription)} >= {"reading"}


def broken_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Pump, "turn", lambda self: None)


def broken_requeue(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Shared, "_requeue", lambda self, ordinals: None)
    monkeypatch.setattr(KeyShared, "_requeue", lambda self, ordinals: [self._slots.pop(o) for o in ordinals])


def broken_block(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("magnetar.broker.delivery.consumer_state.ConsumerState.unblock", lambda self: None)


@pytest.mark.parametrize("sub_type", [SubType.Shared, SubType.Key_Shared])
@pytest.mark.parametrize("breakage", [broken_turn, broken_requeue, broken_block])
def test_a_broken_build_is_seen_and_healed(
    monkeypatch: pytest.MonkeyPatch, breakage: Callable[[pytest.MonkeyPatch], None], sub_type: SubType
) -> None:
    stand = stood(sub_type, 100, max_unacked_messages_per_consumer=5 if breakage is broken_block else 0)
    consumer = stand.subscription.consumers[0]
    connection = consumer.connection
    breakage(monkeypatch)
    stand.subscription.acks.take(consumer, [0])
    stand.subscription.redeliver(consumer, [1, 2, 3])
    assert stand.subscription.should_send() != ""
    monkeypatch.undo()
    stand.subscription.heal(firmly=False)
    if stand.subscription.should_send():
        stand.subscription.heal(firmly=True)
        assert connection.closed == 1  # type: ignore[attr-defined]
        _, again = stand.join("c1", sub_type, 100)
        assert again.ordinals[:4] == [1, 2, 3, 4]
    assert stand.subscription.should_send() == ""


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("sub_type", ALL)
def test_a_sound_build_never_stands_still(sub_type: SubType, seed: int) -> None:
    """Between two events nothing is left to do, unless the disk is asked or the loop has another turn to give."""

    async def main() -> None:
        churn = Churn(sub_type, seed, ring=bool(seed % 2))
        for _ in range(400):
            churn.step()
            pump = churn.subscription.pump
            if not churn.log.reads and pump._next_turn is None:
                assert churn.subscription.should_send() == ""
            explain(churn.subscription)
            await asyncio.sleep(0)
        await churn.finish()

    asyncio.run(main())
