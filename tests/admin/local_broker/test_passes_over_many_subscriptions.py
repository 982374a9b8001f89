"""Periodic passes and /metrics beside a topic with very many subscriptions: others have their turns meanwhile."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from magnetar.admin.local_broker.broker import local_ports
from magnetar.admin.values.counters import CounterOptions
from magnetar.broker.topic.topic import Topic
from magnetar.broker.upkeep.unacked_limit import UnackedLimit
from magnetar.model.names import TopicName
from magnetar.model.topic_policies import BacklogQuota, QuotaPolicy
from magnetar.protocol.entries import EntryMetadata, build_entry
from tests.support.loop_turns import turns_of_others
from tests.support.real_broker import RealBroker, run_on_broker

SUBSCRIPTIONS = 1_000
STORED = 10
TURNS = SUBSCRIPTIONS // 200
"""What one look at 200 subscriptions at the most allows; a slow machine has more."""
NAME = TopicName.parse("persistent://public/default/many")
Pass = Callable[[RealBroker, Topic], Awaitable[Any]]


async def filled(broker: RealBroker) -> Topic:
    """A topic with messages of long ago, which none of its subscriptions has had."""
    service = broker.node.broker.service
    topic = service.topic_for(NAME, create=True)
    for number in range(SUBSCRIPTIONS):
        topic.create_subscription(f"s{number}", 0)
    topic.log.on_durable = lambda extent: None  # there is no producer who waits for receipts
    for number in range(STORED):
        topic.log.append(build_entry(EntryMetadata("p", number, 1000), b"x" * 100), 1, None)
    await broker.node.broker.store.journal.drain()
    return topic


def with_policies(topic: Topic, **changed: Any) -> None:
    topic.set_policies(topic.policies._replace(**changed))


async def expire(broker: RealBroker, topic: Topic) -> None:
    with_policies(topic, message_ttl_s=1)
    assert await broker.node.broker.upkeep.expire() == SUBSCRIPTIONS * STORED
    assert topic.slowest() == STORED - 1


async def evict_by_size(broker: RealBroker, topic: Topic) -> None:
    half = topic.log.retained_bytes() // 2
    with_policies(topic, size_quota=BacklogQuota(half, QuotaPolicy.EVICT))
    await broker.node.broker.upkeep.check_quotas()
    marks = {subscription.cursor.mark_delete for subscription in topic.subscriptions.values()}
    assert len(marks) == 1
    assert STORED // 2 - 1 <= marks.pop() < STORED - 1
    assert (topic.quotas.evictions_size, topic.quotas.evictions_time) == (1, 0)


async def evict_by_age(broker: RealBroker, topic: Topic) -> None:
    with_policies(topic, age_quota=BacklogQuota(1, QuotaPolicy.EVICT))
    await broker.node.broker.upkeep.check_quotas()
    assert topic.slowest() == STORED - 1


async def delete_unused(broker: RealBroker, topic: Topic) -> None:
    topic.loaded_ms -= 3_600_000
    with_policies(topic, subscription_expiration_minutes=1)
    assert await broker.node.broker.upkeep.inactive_topics.delete_subscriptions() == SUBSCRIPTIONS
    assert not topic.subscriptions


async def count_unacknowledged(broker: RealBroker, topic: Topic) -> None:
    assert await UnackedLimit(broker.node.broker.service).look() == 0


async def take_rates(broker: RealBroker, topic: Topic) -> None:
    before = topic.subscriptions["s999"].pace
    for subscription in topic.subscriptions.values():
        subscription.totals.messages_out += 7
    await broker.node.broker.rates.look()
    assert topic.subscriptions["s999"].pace != before
    assert topic.pace.rate.messages_out == pytest.approx(
        sum(one.pace.rate.messages_out for one in topic.subscriptions.values())
    )


async def count(broker: RealBroker, topic: Topic) -> None:
    ports = local_ports(broker.node.broker.service, broker.node.broker.rates, broker.node.broker.connections)
    for subscription in topic.subscriptions.values():
        subscription.totals.messages_out += 7
    found = {one.topic: one async for one in ports.broker.counters(CounterOptions(cursors=True))}[NAME]
    assert len(found.subscriptions) == SUBSCRIPTIONS
    assert found.messages_out == 7 * SUBSCRIPTIONS
    assert found.backlog == SUBSCRIPTIONS * STORED


@pytest.mark.parametrize(
    "done", [expire, evict_by_size, evict_by_age, delete_unused, count_unacknowledged, take_rates, count]
)
def test_others_have_turns_during(tmp_path: Path, done: Pass) -> None:
    """Each of them had the loop for all subscriptions of a topic in one go, eviction for their square."""

    async def scenario(broker: RealBroker) -> None:
        topic = await filled(broker)
        with turns_of_others() as turns:
            await done(broker, topic)
        assert turns.count >= TURNS

    run_on_broker(tmp_path, scenario, maxUnackedMessagesPerBroker=100)


def test_what_goes_while_it_is_counted_is_left_out(tmp_path: Path) -> None:
    """A subscription that is deleted has no cursor any more, a topic that is unloaded is no topic of this broker."""

    async def scenario(broker: RealBroker) -> None:
        service = broker.node.broker.service
        topic = await filled(broker)
        ports = local_ports(service, broker.node.broker.rates, broker.node.broker.connections)

        def deleted() -> None:
            if "s999" in topic.subscriptions:
                topic.delete_subscription("s999", lambda: None)

        with turns_of_others(deleted):
            found = {one.topic: one async for one in ports.broker.counters(CounterOptions(cursors=True))}
        counted = found[NAME].subscriptions
        assert [one.name for one in counted] == [f"s{number}" for number in range(SUBSCRIPTIONS - 1)]
        assert None not in [one.cursor for one in counted]
        with turns_of_others(lambda: service.unload(NAME)):
            names = [one.topic async for one in ports.broker.counters(CounterOptions(cursors=True))]
        assert NAME not in names

    run_on_broker(tmp_path, scenario)
