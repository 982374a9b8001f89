"""Statistics of a topic with very many subscriptions: others have their turns meanwhile."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from magnetar.admin.local_broker.stats.topic_stats import topic_stats
from magnetar.admin.ports import StatsOptions
from magnetar.broker.topic.throughput import UNSEEN
from tests.support.topic_bench import TopicBench, simulated

SUBSCRIPTIONS = 1_000


class NoRates:
    def of(self, thing: object) -> object:
        return UNSEEN.rate


def test_others_have_turns_between_subscriptions(tmp_path: Path) -> None:
    async def main() -> None:
        bench = TopicBench(tmp_path)
        for number in range(SUBSCRIPTIONS):
            bench.topic.create_subscription(f"s{number}", 0)
        await bench.durable()
        rates: Any = NoRates()
        asking = asyncio.create_task(topic_stats(bench.topic, rates, StatsOptions(), "b:1"))
        turns = 0
        while not asking.done():
            turns += 1
            await asyncio.sleep(0)
        shown: Any = (await asking)["subscriptions"]
        assert len(shown) == SUBSCRIPTIONS
        assert turns >= SUBSCRIPTIONS // 50

    simulated(main)
