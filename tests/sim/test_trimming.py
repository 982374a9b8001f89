"""Trimming takes nothing that a durable subscription has not acknowledged, and gives the disk back."""

from __future__ import annotations

import asyncio

import pytest

from magnetar.broker.topic.topic import Topic
from magnetar.protocol.commands import SubType
from magnetar.testing.history import Order, Rules
from tests.sim.clients import Habit, Publisher, Subscriber
from tests.sim.test_disk_trouble import used_bytes
from tests.sim.world import T, World, caught, run_seeds


async def trimming(world: World) -> None:
    """A fast, a slow and a late subscription; upkeep trims, the broker crashes; in the end all is consumed."""
    await world.boot()
    rng = world.rng
    fast = Subscriber(world, "fast", T, "fast", SubType.Exclusive, Habit(cumulative=True, permits=200))
    slow = Subscriber(world, "slow", T, "slow", SubType.Shared, Habit(permits=5, think_s=0.3, keeps=0.1))
    late = Subscriber(world, "late", T, "late", SubType.Shared)
    world.start(fast.run(), slow.run(), late.run())
    await asyncio.sleep(1)
    late.stopped = True
    publisher = Publisher(world, "p", T, size=200)
    for round_ in range(1, 4):
        world.start(publisher.run(60 * round_))
        await asyncio.sleep(rng.uniform(5, 25))
        if rng.random() < 0.6:
            await world.crash()
    await world.quiet(15.0)
    assert publisher.sent == 180
    again = Subscriber(world, "again", T, "late", SubType.Shared)
    slow.stopped = True
    world.start(again.run(), Subscriber(world, "rest", T, "slow", SubType.Shared).run())
    await world.end((T, "fast"), (T, "slow"), (T, "late"))
    world.verify(Rules(order=Order.NONE))
    assert all(world.backlog(T, name) == 0 for name in ("fast", "slow", "late"))
    await world.restart()
    world.start(Publisher(world, "q", T).run(3))
    await asyncio.sleep(30)
    await world.restart()
    assert used_bytes(world.machine.files) < 20_000, "180 entries of 200 bytes are gone"


def test_trimming_takes_nothing_that_is_needed() -> None:
    run_seeds(trimming, 7)


def test_trimming_without_asking_the_cursors_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Topic, "trim", lambda self: self.log.trim(self.log.end))
    assert caught(trimming, lambda broker: None, 5)


def test_no_trimming_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Topic, "trim", lambda self: 0)
    assert caught(trimming, lambda broker: None, 3)
