"""Acknowledged stays acknowledged: an answered ack survives everything, an unanswered one after milliseconds."""

from __future__ import annotations

import asyncio

import pytest

from magnetar.protocol.commands import SubType
from magnetar.storage.log import cursor_records
from magnetar.storage.log.journal import Journal
from magnetar.storage.log.write_group import DirtyCursor, Done
from magnetar.storage.store_settings import StoreSettings
from magnetar.testing.history import Delivered
from magnetar.testing.history_check import Order, Rules
from tests.sim.clients import Habit, Publisher, Subscriber
from tests.sim.world import T, World, caught, run_seed, run_seeds

S = "sub"
ACK_DELAY_S = 0.02
"""The time that docs/guarantees.md says; a disk write comes on top."""


async def holes(world: World) -> None:
    """Consumers acknowledge here and there, answered or not, and the broker crashes."""
    await world.boot()
    habit = Habit(keeps=0.2, confirmed=0.7, leaves=0.02)
    world.start(*(Subscriber(world, f"c{i}", T, S, SubType.Shared, habit).run() for i in range(2)))
    world.start(Publisher(world, "p", T).run(200))
    for _ in range(4):
        await asyncio.sleep(world.rng.uniform(0.05, 0.5))
        await world.crash()
    await world.end((T, S))
    world.verify(Rules(order=Order.NONE))


async def exactly_the_rest(world: World) -> None:
    """After a crash exactly what was not acknowledged comes again; unanswered acks had their 20 ms."""
    await world.boot()
    publisher = Publisher(world, "p", T)
    await world.finish(publisher.run(120))
    habit = Habit(permits=1000, keeps=0.4, confirmed=world.rng.choice((0.0, 1.0)))
    consumer = Subscriber(world, "c", T, S, SubType.Shared, habit)
    world.start(consumer.run())
    await world.quiet(3.0)
    acked = set(consumer.acked)
    got = {place for place, _, _ in consumer.got}
    assert len(got) == 120
    assert 20 < len(acked) < 100
    consumer.stopped = True
    await world.crash()
    again = Subscriber(world, "d", T, S, SubType.Shared, Habit(permits=1000, keeps=1.0))
    world.start(again.run())
    await world.quiet(3.0)
    assert {place for place, _, _ in again.got} == got - acked
    world.check_tasks()


async def soon_durable(world: World) -> None:
    """An ack without a request id outlives a crash that comes 20 ms and one write after it arrived."""
    await world.boot()
    await world.finish(Publisher(world, "p", T).run(20))
    consumer = Subscriber(world, "c", T, S, SubType.Shared, Habit(permits=1000, keeps=1.0))
    world.start(consumer.run())
    await world.quiet(2.0)
    consumer.acknowledge_all_unanswered()
    await asyncio.sleep(0.1)  # the wire
    topic = world.machine.broker.service.topics[T]
    assert topic.subscriptions[S].cursor.backlog() == 0
    await asyncio.sleep(ACK_DELAY_S + 0.02)
    consumer.stopped = True
    await world.crash()
    before = len(world.history)
    again = Subscriber(world, "d", T, S, SubType.Shared)
    world.start(again.run())
    await world.quiet(2.0)
    assert not [event for event in world.history[before:] if isinstance(event, Delivered)]


async def many_holes(world: World) -> None:
    """100,000 holes in one cursor are the same ones after a power loss."""
    await world.boot()
    store = world.machine.broker.store
    log = store.open_log("persistent://public/default/holes")
    cursor = log.open_cursor(S, 0)
    for _ in range(200):
        for _ in range(1_000):
            log.append(b"x", 1, None)
        await store.journal.drain()
    answered = asyncio.Event()
    cursor.acknowledge(range(1, 200_000, 2), answered.set)
    await answered.wait()
    world.machine.power_off()
    await world.machine.start()
    again = world.machine.broker.store.open_log("persistent://public/default/holes").cursors[S]
    assert again.backlog() == 100_000
    assert all(again.acknowledged(i) == (i % 2 == 1) for i in range(200_000))


def test_answered_acks_survive() -> None:
    run_seeds(holes, 12)


def test_exactly_the_unacknowledged_come_again() -> None:
    run_seeds(exactly_the_rest, 15)


def test_unanswered_acks_are_soon_durable() -> None:
    run_seeds(soon_durable, 8)


def test_100_000_holes_survive() -> None:
    run_seed(many_holes, 1, storage=StoreSettings())


def test_an_ack_answered_too_early_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    touch = Journal.touch

    def early(self: Journal, cursor: DirtyCursor, done: Done | None) -> None:
        touch(self, cursor, None)
        if done is not None:
            done()

    monkeypatch.setattr(Journal, "touch", early)
    caught(holes, lambda broker: None)


def test_a_cursor_that_forgets_holes_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = cursor_records.cursor_state
    monkeypatch.setattr(cursor_records, "cursor_state", lambda state: whole(state._replace(ranges=())))
    caught(exactly_the_rest, lambda broker: None)


def test_an_ack_that_waits_too_long_is_noticed() -> None:
    slow = lambda broker: setattr(broker.store.journal, "_ack_delay", 5.0)  # noqa: E731
    caught(soon_durable, slow)
