"""A subscription that could deliver and does not is found and healed, even if the build is wrong."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from typing import Any

import pytest

from magnetar.broker.delivery.dispatchers.key_shared import KeyShared
from magnetar.broker.delivery.dispatchers.shared import Shared
from magnetar.broker.topic.subscription.subscription import Subscription
from magnetar.config.settings import Settings
from magnetar.protocol.commands import SubType
from tests.sim.clients import Habit, Publisher, Subscriber
from tests.sim.world import T, World, caught, run_seeds

S = "sub"
WATCHED = Settings(livenessCheckSeconds=2)
KEYS = tuple(f"k{i}" for i in range(12))


def work(sub_type: SubType, *, sound: bool) -> Callable[[World], Coroutine[Any, Any, None]]:
    """Consumers nack and leave; in the end everything must have been acknowledged."""

    async def simulation(world: World) -> None:
        await world.boot()
        rng = world.rng
        habit = Habit(permits=rng.choice((5, 40)), nacks=0.2, leaves=0.02, confirmed=0.5)
        count = 1 if sub_type is SubType.Exclusive else 3
        consumers = [Subscriber(world, f"c{i}", T, S, sub_type, habit) for i in range(count)]
        publisher = Publisher(world, "p", T, keys=KEYS if sub_type is SubType.Key_Shared else ())
        world.start(publisher.run(100), *(consumer.run() for consumer in consumers))
        await asyncio.sleep(60.0 if sound else 300.0)
        assert publisher.receipts == 100
        assert world.backlog(T, S) == 0, "something was never delivered"
        stuck = world.machine.broker.service.stuck_total
        if sound:
            assert not stuck, "a sound broker was found standing still"

    simulation.__qualname__ = f"work[{sub_type.name}]"
    return simulation


ALL = pytest.mark.parametrize("sub_type", list(SubType), ids=lambda sub_type: sub_type.name)


@ALL
def test_a_sound_broker_never_needs_it(sub_type: SubType) -> None:
    run_seeds(work(sub_type, sound=True), 4, settings=WATCHED, watched=True)


def forget_requeued(monkeypatch: pytest.MonkeyPatch) -> None:
    """A redelivery loses its first entry."""

    def shared(self: Any, ordinals: Iterable[int], requeue: Any = Shared._requeue) -> None:
        requeue(self, list(ordinals)[1:])

    def key_shared(self: Any, ordinals: Iterable[int], requeue: Any = KeyShared._requeue) -> None:
        again = list(ordinals)
        for lost in again[:1]:
            self._slots.pop(lost)
        requeue(self, again[1:])

    monkeypatch.setattr(Shared, "_requeue", shared)
    monkeypatch.setattr(KeyShared, "_requeue", key_shared)


def forget_wake_ups(monkeypatch: pytest.MonkeyPatch) -> None:
    """New entries wake no consumer, and neither does a FLOW."""
    monkeypatch.setattr(Subscription, "entries_appended", lambda self: 0)

    def flow(self: Subscription, consumer: Any, permits: int) -> None:
        assert self.dispatcher is not None
        self.dispatcher.flow(consumer.state, permits)

    monkeypatch.setattr(Subscription, "flow", flow)


@pytest.mark.parametrize(
    ("sub_type", "breakage"),
    [
        (SubType.Shared, forget_requeued), (SubType.Key_Shared, forget_requeued),
        (SubType.Shared, forget_wake_ups), (SubType.Exclusive, forget_wake_ups),
    ],
)  # fmt: skip
def test_a_wrong_build_is_noticed_and_healed(
    sub_type: SubType, breakage: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    breakage(monkeypatch)
    caught(work(sub_type, sound=False), lambda broker: None, settings=WATCHED)
    run_seeds(work(sub_type, sound=False), 3, settings=WATCHED, watched=True)
