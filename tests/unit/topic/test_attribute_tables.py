"""What a topic is made of stays small in memory: no object of it has a table of attributes of its own."""

from __future__ import annotations

import asyncio
import gc
import sys
from collections import Counter
from pathlib import Path

import pytest

from magnetar.broker.topic.publish.producers import ProducerLimits
from magnetar.model.subscription_types import SubType
from tests.support.object_parts import parts_of, with_own_tables
from tests.support.topic_bench import TopicBench, gone_producer, simulated

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


@pytest.mark.parametrize("sub_type", list(SubType))
def test_what_is_empty_keeps_no_table(tmp_path: Path, sub_type: SubType) -> None:
    """An emptied dictionary keeps the table of what was in it, and a topic rests for most of its life."""

    async def main() -> None:
        bench = TopicBench(tmp_path)
        consumer, _ = await bench.join(sub_type)
        bench.publish(0, 0)
        await bench.durable()
        await asyncio.sleep(1)
        producer = gone_producer()
        bench.topic.producers.admit(producer, None, ProducerLimits(), lambda refused: None)
        bench.topic.producers.remove(producer)
        (await bench.subscription()).remove_consumer(consumer)
        await asyncio.sleep(1)
        # the last dispatcher stays whole until the next consumer
        for part in parts_of(bench.topic, ("magnetar.broker.topic.", "magnetar.storage.ledgers.")):
            for held in gc.get_referents(part):
                if type(held) is dict and not held and held is not getattr(part, "__dict__", None):
                    assert sys.getsizeof(held) == sys.getsizeof({}), type(part)

    simulated(main)
