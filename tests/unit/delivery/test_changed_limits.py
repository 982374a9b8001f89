"""Limits of unacknowledged messages that change while messages are out (rule 5.8.6)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from magnetar.broker.topic.dispatch.dispatch_settings import DispatchSettings
from magnetar.model.subscription_types import SubType
from tests.support.subscription_stand import Stand

UNLIMITED: dict[str, Any] = {"max_unacked_messages_per_consumer": 0, "max_unacked_messages_per_subscription": 0}
OUT = 6


def stood(sub_type: SubType, **limits: int) -> tuple[Stand, Any]:
    """A consumer with so many out, and permits for more."""
    stand = Stand(**{**UNLIMITED, **limits})
    consumer, _ = stand.join("c", sub_type, permits=100)
    stand.append_many(OUT)
    assert consumer.state.unacked == OUT
    return stand, consumer


def limit(stand: Stand, **limits: int) -> None:
    stand.subscription.set_settings(replace(DispatchSettings(), **{**UNLIMITED, **limits}))


@pytest.mark.parametrize("sub_type", [SubType.Shared, SubType.Key_Shared])
@pytest.mark.parametrize("whose", ["max_unacked_messages_per_consumer", "max_unacked_messages_per_subscription"])
@pytest.mark.parametrize(("most", "goes_on"), [(OUT - 1, False), (OUT, False), (OUT + 1, True), (0, True)])
def test_a_new_limit_holds_for_what_is_out_already(sub_type: SubType, whose: str, most: int, goes_on: bool) -> None:
    """Who has as many as it allows gets no more, until half of it is acknowledged."""
    stand, consumer = stood(sub_type)
    limit(stand, **{whose: most})
    stand.append_many(1)
    assert consumer.state.unacked == OUT + goes_on
    if not goes_on:
        while consumer.state.unacked > most // 2 + 1:
            stand.subscription.acks.take(consumer, [min(consumer.state.pending)])
            assert OUT not in consumer.state.pending
        stand.subscription.acks.take(consumer, [min(consumer.state.pending)])
        assert OUT in consumer.state.pending


@pytest.mark.parametrize("sub_type", [SubType.Shared, SubType.Key_Shared])
@pytest.mark.parametrize(
    ("most", "goes_on"),
    [(OUT + 1, False), (2 * OUT - 1, False), (2 * OUT, True), (2 * OUT + 1, True), (3 * OUT, True), (0, True)],
)
def test_a_blocked_subscription_goes_on_when_it_has_half_of_the_new_limit(
    sub_type: SubType, most: int, goes_on: bool
) -> None:
    stand, consumer = stood(sub_type, max_unacked_messages_per_subscription=OUT)
    stand.append_many(1)
    assert consumer.state.unacked == OUT
    limit(stand, max_unacked_messages_per_subscription=most)
    stand.append_many(1)
    assert consumer.state.unacked == OUT + 2 * goes_on


@pytest.mark.parametrize("sub_type", [SubType.Shared, SubType.Key_Shared])
@pytest.mark.parametrize(("own", "goes_on"), [(0, True), (2 * OUT - 1, True), (OUT + 1, True), (OUT, False)])
def test_who_was_held_back_by_a_share_goes_on_when_there_is_none(sub_type: SubType, own: int, goes_on: bool) -> None:
    """Below its own limit, not at half of that: by its own limit it had never stopped."""
    stand, consumer = stood(sub_type, max_unacked_messages_per_subscription=own, unacked_share=OUT)
    stand.append_many(1)
    assert consumer.state.unacked == OUT
    limit(stand, max_unacked_messages_per_subscription=own)
    stand.append_many(1)
    assert consumer.state.unacked == OUT + goes_on * (min(2, own - OUT) if own else 2)
