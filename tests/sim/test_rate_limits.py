"""Limits of rates that come, change and go lose nothing, repeat nothing and reorder nothing, and never stand still."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from magnetar.broker.throttling.rate_limit import RateLimit
from magnetar.config.settings import Settings
from magnetar.model.names import NamespaceName, TopicName
from magnetar.model.policies import Json
from magnetar.protocol.commands import SubType
from magnetar.testing.history_check import Order, Rules
from tests.sim.clients import Habit, Publisher, Subscriber
from tests.sim.world import T, World, caught, run_seeds

S = "sub"
KEYS = tuple(f"k{i}" for i in range(12))
ORDERS = {
    SubType.Exclusive: Order.TOPIC,
    SubType.Failover: Order.TOPIC,
    SubType.Shared: Order.NONE,
    SubType.Key_Shared: Order.KEY,
}
WATCHED = Settings(livenessCheckSeconds=2, dispatchThrottlingRateInMsg=200)


async def change_limits(world: World) -> None:
    """Every now and then another limit on another level, or none."""
    rng, name = world.rng, TopicName.parse(T)
    for _ in range(25):
        await asyncio.sleep(rng.uniform(0.02, 0.4))
        try:
            resources = world.machine.broker.resources
            rate: Json = {
                "dispatchThrottlingRateInMsg": rng.choice((-1, 0, 5, 30, 300)),
                "dispatchThrottlingRateInByte": rng.choice((-1, -1, 500)),
                "ratePeriodInSecond": rng.choice((0, 1, 1, 3)),
            }
            which = rng.randrange(5)
            if which == 0:
                await resources.topic_policies.update(name, "dispatchRate", rng.choice((rate, None)))
            elif which == 1:
                await resources.topic_policies.update(name, "subscriptionDispatchRates", rng.choice(({S: rate}, None)))
            elif which == 2:
                publish: Json = {"publishThrottlingRateInMsg": rng.choice((10, 100))}
                await resources.topic_policies.update(name, "publishRate", rng.choice((publish, None)))
            elif which == 3:
                await resources.resource_groups.put(
                    "g", {"dispatchRateInMsgs": rng.choice((-1, 20)), "publishRateInMsgs": rng.choice((-1, 20))}
                )
            else:
                await resources.namespaces.update(
                    NamespaceName.parse("public/default"), resource_group_name=rng.choice(("g", None))
                )
        except Exception:
            if world.machine.running:
                raise


def limited(sub_type: SubType, crashes: int) -> Callable[[World], Coroutine[Any, Any, None]]:
    async def simulation(world: World) -> None:
        await world.boot()
        rng = world.rng
        habit = Habit(permits=rng.choice((1, 7, 40)), nacks=0.1, leaves=0.03, confirmed=0.5)
        count = 1 if sub_type is SubType.Exclusive else 3
        consumers = [Subscriber(world, f"c{i}", T, S, sub_type, habit) for i in range(count)]
        publisher = Publisher(world, "p", T, keys=KEYS if sub_type is SubType.Key_Shared else ())
        world.start(publisher.run(150), change_limits(world), *(consumer.run() for consumer in consumers))
        for _ in range(crashes):
            await asyncio.sleep(rng.uniform(0.3, 1.5))
            await world.restart()
        await asyncio.sleep(rng.uniform(1, 4))
        rng.choice(consumers).break_off(frozen=rng.random() < 0.4)
        await world.quiet(130.0)
        await world.end((T, S))
        assert world.backlog(T, S) == 0
        world.verify(Rules(order=ORDERS[sub_type]))

    simulation.__qualname__ = f"limited[{sub_type.name}-{crashes}]"
    return simulation


@pytest.mark.parametrize("crashes", [0, 1])
@pytest.mark.parametrize("sub_type", list(ORDERS), ids=lambda sub_type: sub_type.name)
def test_nothing_is_lost(sub_type: SubType, crashes: int) -> None:
    run_seeds(limited(sub_type, crashes), 3, settings=WATCHED, watched=True)


def test_a_lost_wake_up_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RateLimit, "_arm", lambda self: None)
    caught(limited(SubType.Shared, 0), lambda broker: None, settings=WATCHED)
