"""What a topic is made of stays small in memory: no object of it has a table of attributes of its own."""

from __future__ import annotations

import asyncio
import gc
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from magnetar.model.subscription_types import SubType
from tests.support.topic_bench import TopicBench, simulated

SHARED_MOST = 29
"""CPython 3.11 shares the keys of instances with up to so many attributes among all of a class; beyond, each instance
has a hash table of its own, of 1.6 KB with 30."""

ROOMS = ("magnetar.broker.topic.", "magnetar.broker.delivery.", "magnetar.storage.ledgers.")


def parts_of(root: object) -> list[Any]:
    """The objects of the topic's rooms that can be reached from ``root`` through each other, lists, dicts and calls."""
    met, todo, parts = {id(root)}, [root], []
    while todo:
        one = todo.pop()
        ours = type(one).__module__.startswith(ROOMS)
        if ours:
            parts.append(one)
        for other in gc.get_referents(one):
            if id(other) in met or isinstance(other, type):
                continue
            kind = type(other)
            if kind.__module__.startswith(ROOMS) or (ours and kind.__module__ == "builtins"):
                met.add(id(other))
                todo.append(other)
    return parts


@pytest.mark.parametrize("sub_type", list(SubType))
def test_no_object_of_a_topic_has_more_attributes_than_share_their_keys(tmp_path: Path, sub_type: SubType) -> None:
    async def main() -> None:
        bench = TopicBench(tmp_path)
        await bench.join(sub_type)
        bench.publish(0, 0)
        await bench.durable()
        await asyncio.sleep(1)
        parts = parts_of(bench.topic)
        met = Counter(type(part).__name__ for part in parts)
        assert {"Topic", "ManagedLedger", "Subscriptions", "Subscription", "Pump", "Cursor"} <= set(met), met
        many = {type(part).__name__: len(vars(part)) for part in parts if hasattr(part, "__dict__")}
        assert not {name: count for name, count in many.items() if count > SHARED_MOST}

    simulated(main)
