"""Receipted is durable: whatever ends the broker at whatever moment, no receipted message is missing.

Also: positions are unique and grow, and each producer's order is kept (docs/guarantees.md).
"""

from __future__ import annotations

import asyncio

import pytest

from magnetar.app.node import Broker
from magnetar.protocol.commands import SubType
from magnetar.storage.backends.local_journal import LocalJournal
from magnetar.testing.faultfiles import FaultFileSystem
from magnetar.testing.history import Crashed
from magnetar.testing.history_check import Order, Rules
from tests.sim.clients import Habit, Publisher, Subscriber
from tests.sim.world import T, World, caught, run_seeds

S = "sub"


async def crashes(world: World) -> None:
    await world.boot()
    reader = Subscriber(world, "reader", T, S, SubType.Exclusive, Habit(cumulative=True, leaves=0.01))
    publishers = [Publisher(world, f"p{i}", T, size=world.rng.choice((20, 300))) for i in range(3)]
    world.start(reader.run(), *(publisher.run(80) for publisher in publishers))
    for _ in range(3):
        await asyncio.sleep(world.rng.uniform(0.05, 0.4))
        await world.crash()
        if world.rng.random() < 0.3:
            world.machine.clock.jump(world.rng.randint(-7_200_000, 7_200_000))
    await world.quiet(2.0)
    await world.crash()
    await world.end((T, S))
    world.verify(Rules())
    assert sum(publisher.receipts for publisher in publishers) > 100


async def restarts(world: World) -> None:
    """Orderly stops, crashes and power cuts mixed; every stop leaves a checkpoint, so nothing is scanned."""
    await world.boot()
    reader = Subscriber(world, "reader", T, S, SubType.Shared)
    publisher = Publisher(world, "p", T)
    world.start(reader.run(), publisher.run(150))
    for _ in range(4):
        await asyncio.sleep(world.rng.uniform(0.05, 0.3))
        await world.restart()
        await asyncio.sleep(world.rng.uniform(0.0, 0.3))
        await world.crash()
    await world.end((T, S))
    world.verify(Rules(order=Order.NONE))


async def first_life(world: World) -> None:
    """A power cut in the first life of a directory: its own name must have been synced, not only what is in it."""
    await world.boot()
    await world.finish(Publisher(world, "p", T).run(world.rng.randint(1, 40)))
    world.machine.power_off()
    world.add(Crashed())
    await world.machine.start()
    world.start(Subscriber(world, "reader", T, S, SubType.Shared).run())
    await world.end((T, S))
    world.verify(Rules(order=Order.NONE))


def test_receipted_is_durable() -> None:
    run_seeds(crashes, 18)


def test_a_power_cut_in_the_first_life() -> None:
    run_seeds(first_life, 8)


def test_stops_and_crashes_mixed() -> None:
    run_seeds(restarts, 8)


def lying_disk(broker: Broker) -> None:
    """Syncs succeed and do nothing."""
    backend = broker.store._backend
    assert isinstance(backend, LocalJournal)
    files = backend._files
    assert isinstance(files, FaultFileSystem)
    files.faults.lying_sync = True


def answers_before_the_sync(broker: Broker) -> None:
    """The journal takes a written group for a durable one."""
    broker.store.journal.sync_data = False


def test_a_lying_disk_is_noticed() -> None:
    caught(crashes, lying_disk)


def test_a_directory_whose_name_was_never_synced_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FaultFileSystem, "make", lambda files: None)
    caught(first_life, lambda broker: None)


def test_an_answer_before_the_sync_is_noticed() -> None:
    caught(crashes, answers_before_the_sync)
