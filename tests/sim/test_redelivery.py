"""Redelivery and broken connections lose nothing and repeat nothing without a cause, on all four subscription types."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from typing import Any

import pytest

from magnetar.broker.delivery.dispatchers.key_shared import KeyShared
from magnetar.broker.delivery.dispatchers.shared import Shared
from magnetar.broker.topic.dispatch.entry_sender import EntrySender
from magnetar.broker.topic.dispatch.pump import Pump
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


def churn(sub_type: SubType) -> Callable[[World], Coroutine[Any, Any, None]]:
    """Consumers come, ask again, leave, are cut off or fall silent, while entries are published."""

    async def simulation(world: World) -> None:
        await world.boot()
        rng = world.rng
        single = sub_type in (SubType.Exclusive, SubType.Failover)
        habit = Habit(
            permits=rng.choice((1, 7, 40)), cumulative=single and rng.random() < 0.5, nacks=0.15, leaves=0.03,
            confirmed=0.5,
        )  # fmt: skip
        consumers = [
            Subscriber(world, f"c{i}", T, S, sub_type, habit) for i in range(1 if sub_type is SubType.Exclusive else 3)
        ]
        publisher = Publisher(world, "p", T, keys=KEYS if sub_type is SubType.Key_Shared else ())
        world.start(publisher.run(150), *(consumer.run() for consumer in consumers))
        for _ in range(8):
            await asyncio.sleep(rng.uniform(0.05, 0.4))
            consumer = rng.choice(consumers)
            consumer.break_off(frozen=rng.random() < 0.4)
        await world.quiet(130.0)  # a silent connection is given up after two keep-alive intervals
        await world.end((T, S))
        assert world.backlog(T, S) == 0, "an entry was delivered, not acknowledged, and never delivered again"
        world.verify(Rules(order=ORDERS[sub_type]))

    simulation.__qualname__ = f"churn[{sub_type.name}]"
    return simulation


@pytest.mark.parametrize("sub_type", list(ORDERS), ids=lambda sub_type: sub_type.name)
def test_nothing_is_lost(sub_type: SubType) -> None:
    run_seeds(churn(sub_type), 10)


def test_a_dropped_redelivery_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    for dispatcher in (Shared, KeyShared):
        requeue = dispatcher._requeue

        def forgetful(self: Any, ordinals: Iterable[int], requeue: Any = requeue) -> None:
            requeue(self, list(ordinals)[1:])

        monkeypatch.setattr(dispatcher, "_requeue", forgetful)
    caught(churn(SubType.Shared), lambda broker: None)
    caught(churn(SubType.Key_Shared), lambda broker: None)


def test_a_missing_rewind_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Pump, "rewind", lambda self: None)
    # a cumulative ack by the client's own hand covers what was skipped, so not every run can notice
    caught(churn(SubType.Exclusive), lambda broker: None)
    caught(churn(SubType.Failover), lambda broker: None)


def test_an_entry_sent_twice_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    send = EntrySender.send

    def twice(self: EntrySender, *arguments: Any) -> None:
        send(self, *arguments)
        if arguments[1].start % 50 == 49:
            send(self, *arguments)

    monkeypatch.setattr(EntrySender, "send", twice)
    caught(churn(SubType.Shared), lambda broker: None)
