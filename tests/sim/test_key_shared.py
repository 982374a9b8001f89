"""Key_Shared while consumers come and go: one owner per key, order per key, and everything arrives."""

from __future__ import annotations

import asyncio

import pytest

from magnetar.broker.delivery.sticky_keys.draining_hashes import DrainingHashesTracker
from magnetar.broker.delivery.sticky_keys.sticky_replay import StickyReplayQueue
from magnetar.config.settings import Settings
from magnetar.protocol.commands import SubType
from magnetar.testing.history_check import Order, Rules
from tests.sim.clients import Habit, Publisher, Subscriber
from tests.sim.world import T, World, caught, run_seeds

S = "sub"
KEYS = tuple(f"key-{i}" for i in range(30))
RANGES = Settings(subscriptionKeySharedUseConsistentHashing=False)


async def churn(world: World) -> None:
    """Up to five consumers of different pace join, leave and break; keys move between them all the time."""
    await world.boot()
    rng = world.rng
    consumers = [
        Subscriber(
            world, f"c{i}", T, S, SubType.Key_Shared,
            Habit(permits=rng.choice((2, 10, 60)), think_s=rng.choice((0.001, 0.02, 0.1)), leaves=0.04, confirmed=0.3),
        )
        for i in range(5)
    ]  # fmt: skip
    world.start(Publisher(world, "p", T, keys=KEYS).run(150), Publisher(world, "q", T, keys=KEYS).run(100))
    for consumer in consumers:
        world.start(consumer.run())
        await asyncio.sleep(rng.uniform(0.0, 0.2))
    for _ in range(6):
        await asyncio.sleep(rng.uniform(0.05, 0.3))
        rng.choice(consumers).break_off(frozen=False)
    if rng.random() < 0.5:
        await world.crash()
    await world.end((T, S))
    assert world.backlog(T, S) == 0, "an entry was delivered, not acknowledged, and never delivered again"
    world.verify(Rules(order=Order.KEY))


def test_keys_keep_their_order_and_owner() -> None:
    run_seeds(churn, 14)


def test_the_same_with_hash_ranges() -> None:
    run_seeds(churn, 6, settings=RANGES)


def test_a_dispatcher_that_ignores_draining_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DrainingHashesTracker, "review", lambda self, slots, owner: self.draining.clear())
    caught(churn, lambda broker: None)


def test_a_dispatcher_that_overtakes_waiting_entries_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    add = StickyReplayQueue.add

    def hidden(self: StickyReplayQueue, ordinal: int, slot: int, owner: object) -> None:
        add(self, ordinal, slot, owner)  # type: ignore[arg-type]  # passed on as it came
        self.by_slot[slot].reverse()

    monkeypatch.setattr(StickyReplayQueue, "add", hidden)
    caught(churn, lambda broker: None)
