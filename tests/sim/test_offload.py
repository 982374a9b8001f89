"""Offloaded ledgers under crashes: everything is delivered once more from its copy, in order, whatever ended when.

The place of the copies is an object store that loses nothing by itself; it can be out of reach for a while, and what a
crash leaves in it is looked at in the end.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from magnetar.app.node import Broker
from magnetar.broker.offloader import Offloader
from magnetar.config.settings import Settings
from magnetar.model.names import TopicName
from magnetar.offload.parquet_archive import ParquetArchive
from magnetar.protocol.commands import SubType
from magnetar.storage.ledgers.archive import Offload
from magnetar.storage.ledgers.managed_ledger import ManagedLedger
from magnetar.testing.history_check import Rules
from tests.sim.clients import Habit, Publisher, Subscriber
from tests.sim.world import T, World, caught, run_seed, run_seeds
from tests.support.memory_object_store import MemoryObjectStore

SETTINGS = Settings(
    offloadUrl="file:///memory", managedLedgerOffloadAutoTriggerSizeThresholdBytes=0,
    managedLedgerOffloadDeletionLagMs=5_000,
)  # fmt: skip


def offloads(world: World) -> MemoryObjectStore:
    place = MemoryObjectStore()
    world.archive = ParquetArchive(lambda url: place)
    return place


async def offloading(world: World) -> None:
    """A subscription waits while its topic is offloaded under it, and then reads everything; the broker crashes."""
    place = offloads(world)
    await world.boot()
    rng = world.rng
    late = Subscriber(world, "late", T, "late", SubType.Exclusive, Habit(cumulative=True))
    world.start(late.run())
    await asyncio.sleep(1)
    late.stopped = True
    publisher = Publisher(world, "p", T, size=100)
    for round_ in range(1, 5):
        world.start(publisher.run(60 * round_))
        place.failing = rng.random() < 0.2
        await asyncio.sleep(rng.uniform(25, 75))
        place.failing = False
        if rng.random() < 0.8:
            await world.crash()
    assert publisher.sent == 240
    assert world.machine.broker.service.find(TopicName.parse(T)), "only loaded topics are looked at"
    await asyncio.sleep(150)
    ledgers = managed_of(world).table.ledgers
    assert sum(ledger.offload is not None and ledger.offload.released for ledger in ledgers) >= 3
    if rng.random() < 0.5:
        await world.crash()
    world.start(Subscriber(world, "again", T, "late", SubType.Exclusive, Habit(cumulative=True)).run())
    await world.end((T, "late"))
    world.verify(Rules())
    assert world.machine.broker.store._reader.copies_read
    await world.restart()
    world.start(Publisher(world, "q", T).run(3))
    await asyncio.sleep(200)
    kept = {ledger.offload.name for ledger in managed_of(world).table.ledgers if ledger.offload is not None}
    assert set(place.objects) == kept, "no object is left over, none is missing"


async def in_time(world: World) -> None:
    """A pass every 30 s copies what is above the threshold; the local entries go after the lag."""
    place = offloads(world)
    await world.boot()
    late = Subscriber(world, "late", T, "late", SubType.Exclusive, Habit(cumulative=True))
    world.start(late.run())
    await asyncio.sleep(1)
    late.stopped = True
    await world.finish(Publisher(world, "p", T, size=100).run(120))
    await asyncio.sleep(45)
    ledgers = managed_of(world).table.ledgers
    assert place.objects
    assert not any(ledger.offload is not None and ledger.offload.released for ledger in ledgers)
    await asyncio.sleep(90)
    assert any(ledger.offload is not None and ledger.offload.released for ledger in ledgers)


async def cut_short(world: World) -> None:
    """The power fails when the first copy is there and nothing durable says of which ledger."""
    place = offloads(world)
    await world.boot()
    late = Subscriber(world, "late", T, "late", SubType.Exclusive, Habit(cumulative=True))
    world.start(late.run())
    await asyncio.sleep(1)
    late.stopped = True
    await world.finish(Publisher(world, "p", T, size=100).run(120))
    while not place.objects:  # noqa: ASYNC110
        await asyncio.sleep(0.0002)
    world.machine.power_off()
    await asyncio.sleep(1)
    await world.machine.start()
    world.start(Publisher(world, "q", T).run(3))
    await asyncio.sleep(200)
    kept = {ledger.offload.name for ledger in managed_of(world).table.ledgers if ledger.offload is not None}
    assert set(place.objects) == kept, "no object is left over, none is missing"


def managed_of(world: World) -> ManagedLedger:
    managed = world.machine.broker.store.find_log(T)
    assert managed is not None
    return managed


def test_everything_is_delivered_from_its_copies() -> None:
    run_seeds(offloading, 5, settings=SETTINGS)


def test_ledgers_are_offloaded_above_the_threshold_and_released_after_the_lag() -> None:
    """managedLedgerOffloadAutoTriggerSizeThresholdBytes and managedLedgerOffloadDeletionLagMs."""
    run_seed(in_time, 1, settings=replace(SETTINGS, managedLedgerOffloadDeletionLagMs=50_000))


def test_a_copy_of_which_nothing_durable_speaks_is_deleted() -> None:
    run_seeds(cut_short, 3, settings=SETTINGS)


async def damaging(world: World) -> None:
    """Copies rot before their ledgers are released: nothing is lost, because those stay."""
    place = offloads(world)
    await world.boot()
    late = Subscriber(world, "late", T, "late", SubType.Exclusive, Habit(cumulative=True))
    world.start(late.run())
    await asyncio.sleep(1)
    late.stopped = True
    world.start(Publisher(world, "p", T, size=100).run(130))
    whole: list[Offload] = []
    while len(whole) < 2:
        await asyncio.sleep(0.3)
        whole = [ledger.offload for ledger in managed_of(world).table.ledgers if ledger.offload is not None]
    victims = [copy.name for copy in whole if not copy.released]
    assert victims
    place.damage(victims[0])
    place.objects.pop(victims[-1])
    await asyncio.sleep(100)
    if world.rng.random() < 0.5:
        await world.crash()
    world.start(Subscriber(world, "again", T, "late", SubType.Exclusive, Habit(cumulative=True)).run())
    await world.end((T, "late"))
    world.verify(Rules())


def test_a_copy_that_rots_before_the_release_costs_nothing() -> None:
    run_seeds(damaging, 3, settings=SETTINGS)


# wrong builds -------------------------------------------------------------------------------------------------------


def test_releasing_before_the_record_is_durable_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    async def record(self: Offloader, topic: object, ledger: object, copy: Offload) -> Offload:
        managed: ManagedLedger = topic.log  # type: ignore[attr-defined]  # a topic
        managed.apply_offload(ledger.id, copy._replace(released=True))  # type: ignore[attr-defined]  # a ledger
        return copy

    monkeypatch.setattr(Offloader, "_record", record)
    caught(offloading, lambda broker: None, settings=SETTINGS)


def test_releasing_without_looking_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ParquetArchive, "check", lambda self, offload, ledger: offload.size)
    caught(damaging, lambda broker: None, settings=SETTINGS)


def test_forgetting_what_was_begun_is_noticed() -> None:
    def tamper(broker: Broker) -> None:
        broker.store.copy_begun = lambda offload, done, failed: done()  # type: ignore[method-assign]  # a wrong build

    caught(cut_short, tamper, settings=SETTINGS)


def test_deleting_a_copy_that_is_needed_is_noticed() -> None:
    def tamper(broker: Broker) -> None:
        broker.store.copy_needed = lambda offload: None  # type: ignore[method-assign]  # a wrong build

    caught(offloading, tamper, settings=SETTINGS)
