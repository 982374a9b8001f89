"""A backup of a running broker is the state of one moment: all that was receipted before is in it, nothing that was not
sent, and what was written one after the other is there up to one point (docs/guarantees.md)."""

from __future__ import annotations

import asyncio
from random import Random

import pytest

from magnetar.app.node import Broker
from magnetar.model.errors import ConflictError, PersistenceError
from magnetar.protocol.commands import SubType
from magnetar.storage.backup import file_copy
from magnetar.storage.backup.restored_files import checked_manifest, restore_files
from magnetar.storage.backup.running_backup import RUNNING, SUCCESS, BackupStatus, RunningBackups
from magnetar.storage.space.segment_keeper import SegmentKeeper
from magnetar.storage.verify import verify
from magnetar.testing.broker import HOST, PORT
from magnetar.testing.faultfiles import FaultFileSystem
from magnetar.testing.history import AckConfirmed, Acked, Crashed, Event, Receipted, Sent
from magnetar.testing.history_check import Order, Rules
from magnetar.testing.rawclient import RawClient
from tests.sim.clients import Habit, Publisher, Subscriber
from tests.sim.world import T, World, caught, run_seeds

S = "sub"
ONE, OTHER = "persistent://public/default/one", "persistent://public/default/other"
COUNT = "/counters/in-between"


class SimulatedPlace:
    """Implements :class:`magnetar.storage.backup.running_backup.BackupPlace` with a disk for each backup."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng
        self.disks: dict[str, FaultFileSystem] = {}

    def make(self, name: str) -> FaultFileSystem:
        self.disks[name] = FaultFileSystem(self._rng)
        return self.disks[name]

    def remove(self, name: str) -> None:
        assert not self.disks.pop(name).names()


@pytest.fixture(autouse=True)
def small_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Much happens while a backup is written."""
    monkeypatch.setattr(file_copy, "SLICE_BYTES", 800)


def of(broker: Broker) -> RunningBackups:
    assert broker.backups is not None
    return broker.backups


async def busy(world: World) -> tuple[SimulatedPlace, list[Publisher], Subscriber]:
    """Start a broker with work that rolls, removes and moves segments, and that counts in log and metadata by turns."""
    await world.boot()
    place = SimulatedPlace(world.rng)
    of(world.machine.broker)._place = place
    reader = Subscriber(world, "reader", T, S, SubType.Shared, Habit(keeps=0.002, think_s=0.002))
    publishers = [Publisher(world, f"p{i}", T, size=world.rng.choice((20, 300))) for i in range(2)]
    world.start(reader.run(), *(publisher.run(150) for publisher in publishers))
    return place, publishers, reader


async def count(world: World) -> None:
    """One, in between, other, one, …: each is durable before the next begins."""
    client = await RawClient.open(HOST, PORT, patience_s=8.0)
    await client.connect()
    one, other = await client.producer(ONE, "one"), await client.producer(OTHER, "other")
    metadata = world.machine.broker.service.metadata
    assert metadata is not None
    for number in range(1, 80):
        await one.publish(b"%d" % number)
        await metadata.put(COUNT, b"%d" % number)
        await other.publish(b"%d" % number)


async def clean(world: World) -> None:
    for _ in range(60):
        store = world.machine.broker.store
        await world.machine.broker.upkeep.trim()
        await store.keeper.remove_dead()
        if world.rng.random() < 0.5:
            rolled: asyncio.Future[None] = world.loop.create_future()
            store.journal.roll(lambda rolled=rolled: rolled.set_result(None), lambda error: None)  # type: ignore[misc]
            await rolled
        await asyncio.sleep(0.02)


async def back_up(world: World, until: list[int]) -> BackupStatus:
    backups = of(world.machine.broker)
    until.append(len(world.history))
    status = await backups.begin("b")
    with pytest.raises(ConflictError, match="still being written"):
        await backups.begin("second")
    while status.state == RUNNING:  # noqa: ASYNC110  nobody tells; a client asks as well
        await asyncio.sleep(0.01)
    until.append(len(world.history))
    return status


def known(history: list[Event], begun: int, ended: int) -> list[Event]:
    """Return what may be expected of a backup: answers before it began, questions until it ended."""
    asked = [event for event in history[begun:ended] if isinstance(event, Sent | Acked)]
    answered = [event for event in history[:begun] if isinstance(event, Sent | Acked | Receipted | AckConfirmed)]
    return [*answered, *asked, Crashed()]


async def restored(world: World) -> None:
    place, publishers, reader = await busy(world)
    counting = world.machine.run(count(world))
    cleaning = world.machine.run(clean(world))
    await asyncio.sleep(world.rng.uniform(0.3, 1.2))
    until: list[int] = []
    statuses: list[BackupStatus] = []

    async def errand() -> None:
        statuses.append(await back_up(world, until))

    await world.machine.run(errand())
    assert statuses[0].state == SUCCESS, statuses[0].error
    assert not world.machine.broker.store.keeper.keeps_all
    await asyncio.gather(counting, cleaning)
    reader.stopped = True
    await world.quiet(3.0)
    assert all(publisher.sent == 150 for publisher in publishers)
    world.check_tasks()
    world.machine.kill()
    files = FaultFileSystem(world.rng)
    backup = place.disks["b"].crash(world.rng)
    restore_files(backup, checked_manifest(backup), files)
    files = files.crash(world.rng)
    assert verify(files).damage == []
    world.history = known(world.history, *until)
    world.machine.files = files
    await world.machine.start()
    store = world.machine.broker.store
    assert store.damage == []
    assert world.machine.broker.service.metadata is not None
    record = world.machine.broker.service.metadata.get(COUNT)
    ends = [0 if log is None else log.end for log in (store.find_log(ONE), store.find_log(OTHER))]
    assert ends[0] >= int(record.data if record else 0) >= ends[1] >= ends[0] - 1, (ends, record)
    world.start(Subscriber(world, "after", T, S, SubType.Shared).run())
    await world.end((T, S))
    world.verify(Rules(order=Order.NONE))


async def interrupted(world: World) -> None:
    """The power fails somewhere in a backup: the broker has everything, and the backup is whole or refused."""
    place, _, _ = await busy(world)
    until: list[int] = []

    async def errand() -> None:
        await back_up(world, until)

    _ = world.machine.run(errand())
    await asyncio.sleep(world.rng.uniform(0.0, 0.6))
    disk = place.disks.get("b")
    backup = None if disk is None else disk.crash(world.rng)
    await world.crash()
    if backup is not None and len(until) < 2:
        try:
            manifest = checked_manifest(backup)
        except PersistenceError as refused:
            assert "there is no manifest.json" in str(refused)
        else:
            restore_files(backup, manifest, restored := FaultFileSystem(world.rng))
            assert verify(restored).damage == []
    await world.end((T, S))
    world.verify(Rules(order=Order.NONE))


def test_a_restored_backup_is_one_moment() -> None:
    run_seeds(restored, 5)


def test_an_interrupted_backup_is_none() -> None:
    run_seeds(interrupted, 4)


def test_segments_that_are_removed_meanwhile_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SegmentKeeper, "keeps_all", property(lambda _: False, lambda _, value: None), raising=False)
    caught(restored, lambda broker: None)


def test_metadata_of_another_moment_is_noticed() -> None:
    def late(broker: Broker) -> None:
        backups = of(broker)
        parts = backups._parts

        def without(*arguments: object) -> object:
            found = parts(*arguments)  # type: ignore[arg-type]
            return [part._replace(length=None) if part.name.startswith("metadata") else part for part in found]

        backups._parts = without  # type: ignore[assignment,method-assign]

    caught(restored, late)


def test_a_checkpoint_of_another_moment_is_noticed() -> None:
    def late(broker: Broker) -> None:
        keeper = broker.store.keeper
        keeper.no_checkpoint = asyncio.Lock  # type: ignore[method-assign]
        backups = of(broker)
        parts = backups._parts

        def newest(*arguments: object) -> object:
            found = parts(*arguments)  # type: ignore[arg-type]
            return [part._replace(file=None) if part.name.startswith("checkpoint") else part for part in found]

        backups._parts = newest  # type: ignore[assignment,method-assign]

    caught(restored, late)


def test_a_moment_before_what_was_receipted_is_noticed() -> None:
    def early(broker: Broker) -> None:
        backups = of(broker)
        parts = backups._parts

        def without(listed: object, before: object, opened: object) -> object:
            found = parts(listed, before, opened)  # type: ignore[arg-type]
            newest = max(part.name for part in found if part.name.startswith("segment-"))
            return [part for part in found if part.name not in (newest, "newest")]

        backups._parts = without  # type: ignore[assignment,method-assign]

    caught(restored, early)
