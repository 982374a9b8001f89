"""Receipted is durable: whatever ends the broker at whatever moment, no receipted message is missing.

Also: positions are unique and grow, and each producer's order is kept (docs/guarantees.md).
"""

from __future__ import annotations

import asyncio

from magnetar.protocol.commands import SubType
from magnetar.testing.history import Rules
from tests.sim.clients import Habit, Publisher, Subscriber
from tests.sim.world import T, World, run_seeds

S = "sub"


async def crashes(world: World) -> None:
    await world.boot()
    reader = Subscriber(world, "reader", T, S, SubType.Exclusive, Habit(cumulative=True, leaves=0.01))
    world.start(reader.run())
    publishers = [Publisher(world, f"p{i}", T, size=world.rng.choice((20, 300))) for i in range(3)]
    working = [world.start(publisher.run(80)) for publisher in publishers]
    for _ in range(3):
        await asyncio.sleep(world.rng.uniform(0.05, 0.4))
        await world.crash()
    await asyncio.wait(working)
    await world.crash()
    await world.end((T, S))
    world.verify(Rules())
    assert sum(publisher.receipts for publisher in publishers) > 100


def test_receipted_is_durable() -> None:
    run_seeds(crashes, 25)
