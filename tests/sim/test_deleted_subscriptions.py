"""A subscription that is being deleted is back when the deletion has been answered, and not before."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from functools import partial

import pytest

from magnetar.app.node import Broker
from magnetar.model.errors import PersistenceError
from magnetar.model.ids import LATEST
from magnetar.model.names import TopicName
from magnetar.protocol import commands as c
from magnetar.storage.ledgers.cursor_deletions import CursorDeletions, Over
from magnetar.testing.broker import HOST, PORT
from magnetar.testing.rawclient import DisconnectedError, RawClient, RawClientError
from tests.sim.world import Simulation, T, World, caught, ports_of, run_seeds

S = "sub"
NAME = TopicName.parse(T)
HUNG_SECONDS = 3.0
TYPES = (c.SubType.Exclusive, c.SubType.Shared, c.SubType.Failover, c.SubType.Key_Shared)


async def connection() -> RawClient:
    client = await RawClient.open(HOST, PORT, patience_s=10_000.0)
    await client.connect()
    return client


class Returning:
    """A client whose consumer comes back as soon as it is disconnected, as libraries do."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.sub_type = world.rng.choice(TYPES)
        self.joined = 0
        """How often it was let in."""
        self.refused: list[RawClientError] = []

    def joined_more_than(self, times: int) -> bool:
        return self.joined > times

    async def run(self) -> None:
        while True:
            with suppress(DisconnectedError, ConnectionError):
                await self._stay(await connection())
            await asyncio.sleep(0.05)

    async def _stay(self, client: RawClient) -> None:
        while True:
            try:
                await client.subscribe(T, S, self.sub_type)
            except RawClientError as error:
                self.refused.append(error)
                await asyncio.sleep(0.1)
                continue
            self.joined += 1
            await client.hear(c.CommandCloseConsumer)


async def subscribes(world: World) -> None:
    client = await connection()
    try:
        await client.subscribe(T, S, c.SubType.Shared)
    finally:
        client.transport.abort()


async def produces(world: World) -> None:
    """A producer of letters, which makes the subscription that shall keep them."""
    client = await connection()
    try:
        await client.producer(T, initial_subscription_name=S)
    finally:
        client.transport.abort()


async def creates(world: World) -> None:
    await ports_of(world).subscriptions.create_subscription(NAME, S, LATEST, {}, replicated=False)


ASKED_BY = (subscribes, produces, creates)
"""How others may want the subscription."""


async def stage(world: World) -> Returning:
    """The topic has another subscription, which keeps it, and a consumer that comes back."""
    await world.boot()
    await (await connection()).subscribe(T, "keeps the topic")
    returning = Returning(world)
    world.start(returning.run())
    await until(lambda: returning.joined == 1)
    return returning


async def by_force(world: World) -> None:
    """Delete the subscription of a connected consumer, again and again, while others ask for it."""
    returning = await stage(world)
    subscriptions = ports_of(world).subscriptions
    for joined in range(1, 6):
        before = cursor_id(world)
        world.machine.hold_writes()
        deletion = asyncio.ensure_future(subscriptions.delete_subscription(NAME, S, force=True))
        await asyncio.sleep(0)
        second = asyncio.ensure_future(subscriptions.deletion_over(NAME, S))
        others = [asyncio.ensure_future(world.rng.choice(ASKED_BY)(world)) for _ in range(world.rng.randint(0, 3))]
        await asyncio.sleep(world.rng.uniform(0.05, HUNG_SECONDS))
        assert cursor_id(world) is None, "back before the deletion was durable"
        assert returning.joined == joined
        assert not any(other.done() for other in others)
        assert not deletion.done() and not second.done(), "answered while the disk hung"
        for other in others[1:]:
            other.cancel()  # its connection is lost
        world.machine.release_writes()
        await deletion
        assert returning.joined == joined, "back before the deletion was answered"
        await second
        await asyncio.wait(others or [second])
        await until(partial(returning.joined_more_than, joined))
        assert cursor_id(world) not in (None, before), "the deleted subscription is still there"
    at_rest(world)
    made = cursor_id(world)
    world.machine.power_off()
    await world.machine.start()
    await until(lambda: returning.joined > 6)
    assert cursor_id(world) == made, "the last one was answered and is gone"


async def on_a_refusing_disk(world: World) -> None:
    """The deletion is tried until the disk takes it; who waits for it is told, and asks again."""
    returning = await stage(world)
    before, faults = cursor_id(world), world.machine.files.faults
    faults.append_error_rate = faults.sync_error_rate = 1.0
    deletion = asyncio.ensure_future(ports_of(world).subscriptions.delete_subscription(NAME, S, force=True))
    await asyncio.sleep(world.rng.uniform(0.5, 10.0))
    assert cursor_id(world) is None, "back before the deletion was durable"
    assert returning.joined == 1
    assert returning.refused, "not told that the disk refuses writes"
    for ask in ASKED_BY:
        with pytest.raises((RawClientError, PersistenceError)):
            await ask(world)
    assert cursor_id(world) is None, "back before the deletion was durable"
    assert not deletion.done()
    faults.append_error_rate = faults.sync_error_rate = 0.0
    await deletion
    await until(lambda: returning.joined == 2)
    assert cursor_id(world) not in (None, before)
    at_rest(world)


async def without_its_topic(world: World) -> None:
    """The topic is unloaded or deleted while its subscription is being deleted, and comes back with its clients."""
    returning = await stage(world)
    before, service = cursor_id(world), world.machine.broker.service
    world.machine.hold_writes()
    deletion = asyncio.ensure_future(ports_of(world).subscriptions.delete_subscription(NAME, S, force=True))
    await asyncio.sleep(world.rng.uniform(0, 0.05))
    unloaded = world.rng.random() < 0.5
    gone = asyncio.ensure_future(service.delete(NAME, force=True)) if not unloaded else None
    if unloaded:
        service.unload(NAME)
    await asyncio.sleep(HUNG_SECONDS)
    if unloaded:
        assert cursor_id(world) is None, "back before the deletion was durable"
    assert returning.joined == 1
    world.machine.release_writes()
    await deletion
    if gone is not None:
        await gone
    await until(lambda: returning.joined == 2)
    assert cursor_id(world) not in (None, before)
    at_rest(world)


def cursor_id(world: World) -> int | None:
    """The number of the subscription's cursor, None if it has none."""
    log = world.machine.broker.store.find_log(T)
    return None if log is None or S not in log.cursors else log.cursors[S].id


def at_rest(world: World) -> None:
    """Nothing is left of any deletion."""
    world.audit()
    world.check_tasks()
    assert not len(world.machine.broker.store.cursor_deletions)


async def until(condition: Callable[[], bool]) -> None:
    for _ in range(2000):
        if condition():
            return
        await asyncio.sleep(0.02)
    raise AssertionError("it never came to that")


SIMULATIONS = [by_force, on_a_refusing_disk, without_its_topic]


@pytest.mark.parametrize("simulation", SIMULATIONS, ids=lambda simulation: simulation.__name__)
def test_a_deleted_subscription_is_back_after_the_answer(simulation: Simulation) -> None:
    run_seeds(simulation, 10)


def nobody_waits(broker: Broker) -> None:
    def at_once(log_id: int, name: str, answer: Over) -> None:
        answer(None)

    class Careless(CursorDeletions):
        when_over = staticmethod(at_once)

    broker.store.cursor_deletions = Careless(broker.store.journal)


@pytest.mark.parametrize("simulation", SIMULATIONS, ids=lambda simulation: simulation.__name__)
def test_a_consumer_that_does_not_wait_is_noticed(simulation: Simulation) -> None:
    caught(simulation, nobody_waits, saying="before the deletion was durable")


def test_a_waiter_that_is_left_on_a_refusing_disk_is_noticed() -> None:
    class Patient(CursorDeletions):
        def when_over(self, log_id: int, name: str, answer: Over) -> None:
            def again() -> None:
                self.when_over(log_id, name, answer)

            if (log_id, name) in self._under_way:
                self._journal.barrier(again)
            else:
                answer(None)

    def tamper(broker: Broker) -> None:
        broker.store.cursor_deletions = Patient(broker.store.journal)

    caught(on_a_refusing_disk, tamper, saying="not told that the disk refuses writes")


def test_the_error_is_that_of_the_disk() -> None:
    told: list[PersistenceError | None] = []

    async def simulation(world: World) -> None:
        await stage(world)
        log = world.machine.broker.store.find_log(T)
        assert log is not None
        world.machine.files.faults.append_error_rate = 1.0
        log.delete_cursor("keeps the topic")
        log.after_deletion("keeps the topic", told.append)
        log.after_deletion("another", told.append)
        assert told == [None]
        await until(lambda: len(told) == 2)
        world.machine.files.faults.append_error_rate = 0.0
        log.after_deletion("keeps the topic", told.append)
        await until(lambda: len(told) == 3)

    run_seeds(simulation, 1)
    assert told[0] is told[2] is None and isinstance(told[1], PersistenceError)
