"""Exclusive and Failover: one consumer at a time, in order; the next takes over where it must and only there."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

import pytest

from magnetar.broker.connection.session import Session
from magnetar.broker.delivery.dispatchers.exclusive import Exclusive
from magnetar.broker.delivery.dispatchers.failover import Failover
from magnetar.broker.delivery.dispatchers.failover_order import FailoverOrder
from magnetar.broker.delivery.sticky_keys import sticky_ranges
from magnetar.model.errors import ConsumerAssignError, ServerError
from magnetar.protocol.commands import InitialPosition, IntRange, KeySharedMeta, KeySharedMode, SubType
from magnetar.testing.broker import HOST, PORT
from magnetar.testing.history_check import Order, Rules
from magnetar.testing.rawclient import RawClient, RawClientError
from tests.sim.clients import Habit, Publisher, Subscriber
from tests.sim.world import T, World, caught, run_seeds

S = "sub"
PLACES = {ServerError.ProducerBusy, ServerError.ConsumerBusy, ServerError.ConsumerAssignError}


async def exclusive(world: World) -> None:
    """A second consumer is refused while the first gives signs of life, and admitted when it is silent (rule 5.3.1)."""
    await world.boot()
    first = Subscriber(world, "first", T, S, SubType.Exclusive, Habit(think_s=0.05))
    world.start(first.run(), Publisher(world, "p", T).run(200))
    await asyncio.sleep(world.rng.uniform(0.1, 0.5))
    other = await RawClient.open(HOST, PORT)
    await other.connect()
    for _ in range(3):
        await asyncio.sleep(world.rng.uniform(0.0, 0.1))
        if first.connection is None:
            continue
        try:
            await other.subscribe(T, S, SubType.Exclusive)
        except RawClientError as refused:
            assert refused.code is ServerError.ConsumerBusy
        else:
            raise AssertionError("two consumers on an exclusive subscription")
    first.stopped = True
    first.break_off(frozen=True)
    asked = world.loop.time()
    taken = None
    while taken is None:
        try:
            taken = await other.subscribe(T, S, SubType.Exclusive, initial_position=InitialPosition.Earliest)
        except RawClientError:
            await asyncio.sleep(0.5)
        else:
            assert world.loop.time() - asked < 15
            await taken.close()
            break
    second = Subscriber(world, "second", T, S, SubType.Exclusive)
    world.start(second.run())
    await world.end((T, S))
    assert world.backlog(T, S) == 0
    world.verify(Rules(order=Order.TOPIC))


async def frozen_holders(world: World) -> None:
    """A frozen client's name, Exclusive place and hash ranges are free when the time that is set is over, not before.

    Three wait for each; one of them gets it, and the others are refused by its first sign of life.
    """
    patience_s = world.rng.choice((0.5, 3.0, 12.0))
    world.settings = replace(world.settings, connectionLivenessCheckTimeoutMillis=round(1000 * patience_s))
    await world.boot()
    sticky = KeySharedMeta(KeySharedMode.STICKY, (IntRange(0, 9), IntRange(100, 199)))

    async def take(client: RawClient, place: str) -> None:
        if place == "name":
            await client.producer(T, "n")
        elif place == "exclusive":
            await client.subscribe(T, S)
        else:
            await client.subscribe(T, "keys", SubType.Key_Shared, key_shared_meta=sticky)

    async def want(place: str, asked: float) -> bool:
        client = await RawClient.open(HOST, PORT)
        await client.connect()
        try:
            await take(client, place)
        except RawClientError as refused:
            assert refused.code in PLACES, refused
            return False
        waited = world.loop.time() - asked
        assert patience_s <= waited < patience_s + 1, f"{place} was free after {waited} s"
        return True

    places = ("name", "exclusive", "keys")
    holder = await RawClient.open(HOST, PORT)
    await holder.connect()
    for place in places:
        await take(holder, place)
    await asyncio.sleep(world.rng.uniform(0.0, 5.0))
    for link in world.network.links:
        link.freeze()
    asked = world.loop.time()
    wanted = [want(place, asked) for place in places for _ in range(3)]
    taken = await asyncio.gather(*wanted)
    assert [sum(taken[at : at + 3]) for at in (0, 3, 6)] == [1, 1, 1], taken


async def failover(world: World) -> None:
    """The consumer that ranks first is served; when it breaks off, the next gets all unacknowledged ones in order."""
    await world.boot()
    consumers = [Subscriber(world, f"c{i}", T, S, SubType.Failover, Habit(leaves=0.02)) for i in range(3)]
    world.start(Publisher(world, "p", T).run(200), *(consumer.run() for consumer in consumers))
    for _ in range(5):
        await asyncio.sleep(world.rng.uniform(0.2, 2.5))
        subscription = world.machine.broker.service.topics[T].subscriptions[S]
        active = subscription.active_consumer
        if active is not None:
            members = [consumer.state for consumer in subscription.consumers]
            ranking = FailoverOrder(T)
            for member in members:
                ranking.add(member)
            assert active.state is ranking.first()
            next(one for one in consumers if one.name == active.name).break_off(frozen=False)
    await world.end((T, S))
    assert world.backlog(T, S) == 0
    world.verify(Rules(order=Order.TOPIC))


def test_exclusive_is_exclusive() -> None:
    run_seeds(exclusive, 10)


def test_places_of_frozen_clients_are_free_in_time() -> None:
    run_seeds(frozen_holders, 10)


def test_failover_takes_over() -> None:
    run_seeds(failover, 10)


def test_a_second_exclusive_consumer_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def admit(self: Exclusive, consumer: object) -> list[object]:
        self.consumers.append(consumer)  # type: ignore[arg-type]  # passed on as it came
        self.active = consumer  # type: ignore[assignment]
        return []

    monkeypatch.setattr(Exclusive, "add", admit)
    caught(exclusive, lambda broker: None)


def test_a_silent_holder_that_is_never_evicted_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Session, "probe", lambda self, answer: answer(True))
    caught(exclusive, lambda broker: None)


def test_an_eviction_at_another_time_than_is_set_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = Session.probe

    def as_usual(self: Session, answer: Callable[[bool], None]) -> None:
        service, chosen = self.service, self.service.settings
        service.settings = replace(chosen, connectionLivenessCheckTimeoutMillis=5000)
        whole(self, answer)
        service.settings = chosen

    monkeypatch.setattr(Session, "probe", as_usual)
    caught(frozen_holders, lambda broker: None, saying="was free after")


def test_ranges_that_a_dead_consumer_keeps_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sticky_ranges, "RangeTakenError", lambda holder: ConsumerAssignError(holder.description))
    caught(frozen_holders, lambda broker: None)


def test_a_takeover_without_a_rewind_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    activate = Failover.activate
    monkeypatch.setattr(Failover, "activate", lambda self: activate(self)[1:])
    caught(failover, lambda broker: None)
