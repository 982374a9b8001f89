"""A delayed message is never early (strict) and always comes, whatever crashes between."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import pytest
from typing_extensions import override

from magnetar.broker.delivery.delay_index import DelayIndex
from magnetar.broker.topic.dispatch.delays import Delays, DelayState
from magnetar.broker.topic.dispatch.dispatch_filter import DispatchRule
from magnetar.config.settings import Settings
from magnetar.protocol.commands import SubType
from magnetar.testing.history import Delivered, Event
from magnetar.testing.history_check import Order, Rules
from magnetar.testing.rawclient import RawProducer, make_entry
from tests.sim.clients import Habit, Publisher, Subscriber
from tests.sim.world import T, World, caught, run_seeds

S = "sub"
STRICT = Settings(isDelayedDeliveryDeliverAtTimeStrict=True)
LATE_MS = 1_500
"""What a delivery may take when nothing is broken: the network and a consumer that thinks."""


class DelayingPublisher(Publisher):
    """Most messages are to come later; remembers when."""

    def __init__(self, world: World, name: str) -> None:
        super().__init__(world, name, T, keys=("a", "b", "c"))
        self.due_ms: dict[str, int] = {}

    @override
    def _send(self, producer: RawProducer, value: str, key: str) -> None:
        rng = self.world.rng
        at = self.world.machine.clock.now_ms() + rng.choice((0, 0, 5, 300, 2_000, 20_000)) + rng.randint(0, 900)
        if rng.random() < 0.2:
            at = 0
        self.due_ms[value] = at
        payload = value.encode().ljust(self.size, b".")
        number = producer.next_sequence_id
        entry = make_entry(payload, producer=self.name, sequence_id=number, key=key, deliver_at_ms=at)
        producer.send(payload, entry=entry)


class Witness:
    """Judges every first delivery when it happens."""

    def __init__(self, world: World, publisher: DelayingPublisher, *, calm: bool) -> None:
        self.world = world
        self.publisher = publisher
        self.calm = calm
        self.seen: set[str] = set()
        self.late_ms = 0
        self._add = world.add

    def add(self, event: Event) -> None:
        self._add(event)
        if isinstance(event, Delivered) and event.value not in self.seen:
            self.seen.add(event.value)
            now, due = self.world.machine.clock.now_ms(), self.publisher.due_ms[event.value]
            assert now >= due, f"{event.value} came {due - now} ms early"
            if due and self.calm:
                assert now - due <= LATE_MS or due < self.world.machine.clock.epoch_ms, f"{now - due} ms late"


def delayed(sub_type: SubType, *, crashes: int) -> Callable[[World], Coroutine[Any, Any, None]]:
    async def simulation(world: World) -> None:
        await world.boot()
        rng = world.rng
        publisher = DelayingPublisher(world, "p")
        witness = Witness(world, publisher, calm=not crashes)
        world.add = witness.add  # type: ignore[method-assign]
        habit = Habit(permits=rng.choice((5, 40)), nacks=0.1, leaves=0.02 if crashes else 0.0, confirmed=0.5)
        consumers = [Subscriber(world, f"c{i}", T, S, sub_type, habit) for i in range(2)]
        world.start(publisher.run(80), *(consumer.run() for consumer in consumers))
        for _ in range(crashes):
            await asyncio.sleep(rng.uniform(0.05, 4.0))
            if rng.random() < 0.2:
                await world.restart()
            else:
                await world.crash()
        await world.quiet(45.0)
        await world.end((T, S))
        assert world.backlog(T, S) == 0, "a delayed message never came"
        topic = world.machine.broker.service.topics[T]
        assert not topic.dispatch_rules, "nothing is delayed any more, and yet there is a gate"
        assert topic.subscriptions[S].stats().delayed_entries == 0
        world.verify(Rules(order=Order.NONE))

    simulation.__qualname__ = f"delayed[{sub_type.name}-{crashes}]"
    return simulation


@pytest.mark.parametrize("sub_type", [SubType.Shared, SubType.Key_Shared], ids=lambda sub_type: sub_type.name)
def test_never_early_always_delivered(sub_type: SubType) -> None:
    run_seeds(delayed(sub_type, crashes=0), 5, settings=STRICT)
    run_seeds(delayed(sub_type, crashes=4), 10, settings=STRICT)


def test_an_index_that_does_not_survive_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DelayIndex, "load", lambda self, dumped, after_ms: None)
    monkeypatch.setattr(DelayIndex, "load_pairs", lambda self, data, after_ms: None)
    caught(delayed(SubType.Shared, crashes=4), lambda broker: None, settings=STRICT)


def test_a_change_that_is_not_written_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The simulation notices a change that is known in memory and not on disk."""
    changes = DelayState.changes

    def silent(self: DelayState) -> None:
        changes(self)
        self.durable()

    monkeypatch.setattr(DelayState, "changes", silent)
    caught(delayed(SubType.Shared, crashes=4), lambda broker: None, settings=STRICT)


def test_a_dropped_wake_up_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    let = Delays._wake

    def sleepy(self: Delays) -> None:
        topic, self._topic = self._topic, Deaf(self._topic)
        let(self)
        self._topic = topic

    monkeypatch.setattr(Delays, "_wake", sleepy)
    caught(delayed(SubType.Shared, crashes=0), lambda broker: None, settings=STRICT)


class Deaf:
    """Lets every third stretch get lost."""

    calls = 0

    def __init__(self, topic: Any) -> None:
        self._topic = topic

    def let_through(self, ordinals: Sequence[int], reason: DispatchRule | None = None) -> None:
        Deaf.calls += 1
        if Deaf.calls % 3:
            self._topic.let_through(ordinals, reason)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._topic, name)
