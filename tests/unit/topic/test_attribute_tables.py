"""What a topic is made of stays small in memory: no object of it has a table of attributes of its own."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path

import pytest

from magnetar.model.subscription_types import SubType
from tests.support.object_parts import parts_of, with_own_tables
from tests.support.topic_bench import TopicBench, simulated

ROOMS = ("magnetar.broker.topic.", "magnetar.broker.delivery.", "magnetar.storage.ledgers.")


@pytest.mark.parametrize("sub_type", list(SubType))
def test_no_object_of_a_topic_has_more_attributes_than_share_their_keys(tmp_path: Path, sub_type: SubType) -> None:
    async def main() -> None:
        bench = TopicBench(tmp_path)
        await bench.join(sub_type)
        bench.publish(0, 0)
        await bench.durable()
        await asyncio.sleep(1)
        parts = parts_of(bench.topic, ROOMS)
        met = Counter(type(part).__name__ for part in parts)
        assert {"Topic", "ManagedLedger", "Subscriptions", "Subscription", "Pump", "Cursor"} <= set(met), met
        assert not with_own_tables(parts)

    simulated(main)
