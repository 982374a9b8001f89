"""Statistics of a topic with very many subscriptions: others have their turns meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from magnetar.admin.local_broker.stats.internal_stats import internal_stats
from magnetar.admin.local_broker.stats.managed_ledger_info import managed_ledger_info
from magnetar.admin.local_broker.stats.nonpersistent_stats import nonpersistent_topic_stats
from magnetar.admin.local_broker.stats.topic_stats import topic_stats
from magnetar.admin.ports import StatsOptions
from magnetar.broker.topic.dispatch.dispatch_settings import DispatchSettings
from magnetar.broker.topic.nonpersistent.nonpersistent_topics import NonPersistentTopics
from magnetar.broker.topic.throughput import UNSEEN
from magnetar.broker.topic.topic import Topic
from magnetar.model.names import TopicName
from magnetar.model.topic_policies import TopicPolicies
from magnetar.testing.simloop import SimClock
from tests.support.loop_turns import turns_of_others
from tests.support.topic_bench import TopicBench, simulated

SUBSCRIPTIONS = 1_000


class NoRates:
    def of(self, thing: object) -> object:
        return UNSEEN.rate


async def statistics(topic: Topic) -> Any:
    rates: Any = NoRates()
    return await topic_stats(topic, rates, StatsOptions(), "b:1")


def test_others_have_turns_between_those_of_a_non_persistent_topic() -> None:
    async def main() -> None:
        topic = NonPersistentTopics(
            DispatchSettings(), SimClock(asyncio.get_running_loop()), 100, lambda name: TopicPolicies()
        ).make(TopicName.parse("non-persistent://a/b/t"))
        for number in range(SUBSCRIPTIONS):
            topic.subscription(f"s{number}", durable=True, ordinal=lambda: 0, properties={}, done=lambda: None)
        rates: Any = NoRates()
        with turns_of_others() as turns:
            shown: Any = await nonpersistent_topic_stats(topic, rates, StatsOptions(), "b:1")
        assert len(shown["subscriptions"]) == SUBSCRIPTIONS
        assert turns.count >= SUBSCRIPTIONS // 50

    simulated(main)


@pytest.mark.parametrize(
    ("ask", "member"),
    [(statistics, "subscriptions"), (internal_stats, "cursors"), (managed_ledger_info, "cursors")],
)
def test_others_have_turns_between_subscriptions(
    tmp_path: Path, ask: Callable[[Topic], Awaitable[Any]], member: str
) -> None:
    async def main() -> None:
        bench = TopicBench(tmp_path)
        for number in range(SUBSCRIPTIONS):
            bench.topic.create_subscription(f"s{number}", 0)
        await bench.durable()
        with turns_of_others() as turns:
            found = await ask(bench.topic)
        assert len(found[member]) == SUBSCRIPTIONS
        assert turns.count >= SUBSCRIPTIONS // 50

    simulated(main)
