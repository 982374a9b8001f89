"""A full or failing disk: PersistenceError instead of a false receipt, and everything goes on when the disk does."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import cast

import pytest

from magnetar.app.node import Broker
from magnetar.client.aio.client import Client
from magnetar.exceptions import ProducerBlockedQuotaExceededException
from magnetar.model.errors import ServerError
from magnetar.protocol.commands import SubType
from magnetar.storage.backends.committer import Committer
from magnetar.storage.backends.files import File
from magnetar.storage.backends.journal_backend import Chunk, Committed
from magnetar.storage.backends.reserve import Reserve
from magnetar.storage.backends.segment_writer import LocalSegmentWriter
from magnetar.storage.backends.zeros_ahead import NO_ZEROS, Zeros
from magnetar.storage.store import LedgerStore
from magnetar.testing.broker import HOST, PORT
from magnetar.testing.faultfiles import Operation
from magnetar.testing.history import Crashed, Receipted
from magnetar.testing.history_check import Order, Rules
from magnetar.testing.simloop import SimClock
from tests.sim.clients import Habit, Publisher, Subscriber
from tests.sim.world import SMALL, T, World, caught, run_seeds
from tests.support.simulated_store import used_bytes

S = "sub"
TROUBLES = ("full", "rate", "append", "sync", "sync_directory")
OTHER = "persistent://public/default/other"


def receipts(world: World, since: int) -> int:
    return sum(isinstance(event, Receipted) for event in world.history[since:])


async def trouble(world: World) -> None:
    """The disk fills up, or appends, syncs or directory syncs fail for a while, again and again; crashes between."""
    await world.boot()
    rng = world.rng
    habit = Habit(confirmed=0.5, keeps=0.1)
    publishers = [Publisher(world, f"p{i}", topic) for i, topic in enumerate((T, OTHER))]
    world.start(
        Subscriber(world, "c", T, S, SubType.Shared, habit).run(),
        Subscriber(world, "d", OTHER, S, SubType.Shared, habit).run(),
        *(publisher.run(200) for publisher in publishers),
    )
    for _ in range(5):
        await asyncio.sleep(rng.uniform(0.05, 0.3))
        kind = rng.choice(TROUBLES)
        faults = world.machine.files.faults
        if kind == "full":
            faults.capacity_bytes = used_bytes(world.machine.files) + rng.randint(0, 3000)
        elif kind == "rate":
            faults.sync_error_rate = faults.append_error_rate = 0.2
        else:
            world.machine.files.fail(cast(Operation, kind), skip=rng.randint(0, 3), times=rng.randint(1, 3))
        await asyncio.sleep(rng.uniform(0.1, 3.0))
        faults.capacity_bytes = None
        faults.sync_error_rate = faults.append_error_rate = 0.0
        if rng.random() < 0.5:
            await world.crash()
    await world.quiet(5.0)
    await world.crash()
    await world.end((T, S), (OTHER, S))
    world.verify(Rules(order=Order.NONE))
    for publisher in publishers:
        assert publisher.sent == 200
        assert {error.error for error in publisher.errors} <= {ServerError.PersistenceError}


async def full(world: World) -> None:
    """While the disk is full: no receipt, PersistenceError, other topics are read; then it goes on by itself."""
    await world.boot()
    for topic in (T, OTHER):  # or what no subscription needs would be trimmed, and the disk not full for long
        world.start(Subscriber(world, f"k{topic}", topic, S, SubType.Shared, Habit(keeps=1.0)).run())
    await asyncio.sleep(0.2)
    await world.finish(Publisher(world, "before", OTHER).run(50))
    publisher = Publisher(world, "p", T)
    world.start(publisher.run(1 << 30))
    await asyncio.sleep(0.2)
    faults = world.machine.files.faults
    faults.capacity_bytes = used_bytes(world.machine.files)
    await asyncio.sleep(3)
    since = len(world.history)
    reader = Subscriber(world, "r", OTHER, "look", SubType.Exclusive, Habit(options={"durable": False}, keeps=1.0))
    world.start(reader.run())
    await asyncio.sleep(5)
    assert receipts(world, since) == 0
    assert publisher.errors
    assert {error.error for error in publisher.errors} == {ServerError.PersistenceError}
    assert len(reader.got) >= 40, "reading needs no space"
    since = len(world.history)
    faults.capacity_bytes = None
    await asyncio.sleep(4)
    assert receipts(world, since) > 50
    world.check_tasks()


async def refused_when_full(world: World) -> None:
    """A send fails at once with the reason while the disk is full; the same producer goes on when there is room."""
    await world.boot()
    world.start(Subscriber(world, "k", T, S, SubType.Shared, Habit(keeps=1.0)).run())
    await asyncio.sleep(0.2)  # without a subscription all would be trimmed
    client = Client(f"pulsar://{HOST}:{PORT}", clock=SimClock(world.loop), rng=world.rng)
    producer = await client.create_producer(T, send_timeout_millis=60_000, batching_enabled=False)
    await producer.send(b"before" * 100)
    faults = world.machine.files.faults
    faults.capacity_bytes = used_bytes(world.machine.files)
    with pytest.raises(ProducerBlockedQuotaExceededException, match="the disk is full"):
        while True:  # what the reserve of a file system leaves may take some
            await producer.send(b"refused" * 100)
    faults.capacity_bytes = used_bytes(world.machine.files)  # somebody else takes what was reserved
    await asyncio.sleep(20)
    with pytest.raises(ProducerBlockedQuotaExceededException, match="the disk is full"):
        await client.create_producer("another")
    faults.capacity_bytes = None
    await producer.send(b"after" * 100)
    await client.close()


async def start_on_full(world: World) -> None:
    """A crash on a full disk: the broker starts, serves what it has, and writes when there is space."""
    await world.boot()
    await world.finish(Publisher(world, "before", T).run(60))
    world.machine.files.faults.capacity_bytes = used_bytes(world.machine.files)
    world.machine.kill()
    await asyncio.sleep(0.2)
    await world.machine.start()
    reader = Subscriber(world, "r", T, "look", SubType.Exclusive, Habit(options={"durable": False}, keeps=1.0))
    world.start(reader.run())
    await asyncio.sleep(5)
    assert len(reader.got) >= 40
    reader.stopped = True
    world.machine.files.faults.capacity_bytes = None
    await world.finish(Publisher(world, "after", T).run(60))
    await world.restart()
    consumer = Subscriber(world, "c", T, S, SubType.Shared)
    world.start(consumer.run())
    await world.end((T, S))
    world.verify(Rules(order=Order.NONE))


async def drained_when_full(world: World) -> None:
    """A backlog has filled the disk to the last byte and the broker is killed: it starts, is read and acknowledged."""
    await world.boot()
    rng = world.rng
    publisher = Publisher(world, "p", T, size=300)
    idle = Subscriber(world, "first", T, S, SubType.Shared, Habit(keeps=1.0))
    world.start(idle.run())
    await asyncio.sleep(0.1)
    idle.stopped = True
    await world.finish(publisher.run(100))
    files = world.machine.files
    capacity = files.faults.capacity_bytes = used_bytes(files) + rng.randint(0, 2_000)
    if rng.random() < 0.5:
        more = world.loop.create_task(Publisher(world, "more", T, size=300).run(1 << 30))
        await asyncio.sleep(2)
        assert world.machine.broker.store.journal.full is not None
        more.cancel()
    world.machine.kill() if rng.random() < 0.5 else world.machine.power_off()
    world.tasks.clear()
    world.add(Crashed())
    await asyncio.sleep(0.5)
    world.add(Crashed())
    await world.machine.start()
    store = world.machine.broker.store
    assert not store.damage
    consumer = Subscriber(world, "c", T, S, SubType.Shared, Habit(confirmed=1.0))
    world.start(consumer.run())
    await world.quiet(5)
    assert world.backlog(T, S) == 0
    assert files.faults.capacity_bytes == capacity
    await asyncio.sleep(150)  # trimming, and checkpoints for the sake of what was trimmed
    assert store.journal.full is None, f"{used_bytes(world.machine.files)} of {capacity} bytes are used"
    consumer.stopped = True
    await world.finish(Publisher(world, "after", T).run(20))
    await world.restart()
    world.start(Subscriber(world, "d", T, S, SubType.Shared).run())
    await world.end((T, S))
    world.verify(Rules(order=Order.NONE))


def test_a_full_disk_can_be_drained() -> None:
    run_seeds(drained_when_full, 8, storage=replace(SMALL, reserve_bytes=9_000))


def test_without_a_reserve_a_full_disk_is_a_trap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Reserve, "give_up", lambda reserve: False)
    caught(drained_when_full, lambda broker: None, storage=replace(SMALL, reserve_bytes=9_000))


def test_trouble_costs_nothing_receipted() -> None:
    run_seeds(trouble, 15)


def test_a_full_disk_is_said_and_left_behind() -> None:
    run_seeds(full, 2)


def test_a_full_disk_is_the_reason_that_a_send_fails_with() -> None:
    run_seeds(refused_when_full, 3)


def test_a_producer_that_is_let_in_on_a_full_disk_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LedgerStore, "when_entries_are_taken", lambda store, answer: answer(None))
    caught(refused_when_full, lambda broker: None)


def test_start_on_a_full_disk() -> None:
    run_seeds(start_on_full, 5)


class Hopeful:
    """A failed sync is asked again, and what it says then is believed."""

    def __init__(self, inner: Committer) -> None:
        self._inner = inner

    def commit(
        self, file: File, at: int, chunks: Sequence[Chunk], sync: bool, done: Committed, lead: int | None = None,
        zeros: Zeros = NO_ZEROS,
    ) -> None:  # fmt: skip
        def once_more(error: BaseException | None) -> None:
            if error is None:
                done(None)
            else:
                self._inner.commit(file, at, [], sync, done)

        self._inner.commit(file, at, chunks, sync, once_more, lead, zeros)

    def give_back_memory(self) -> None:
        self._inner.give_back_memory()

    def close(self) -> None:
        self._inner.close()


def hopeful(broker: Broker) -> None:
    writer = broker.store.journal._writer
    assert isinstance(writer, LocalSegmentWriter)
    writer._committer = Hopeful(writer._committer)  # a wrong build


def deaf(broker: Broker) -> None:
    """Whatever the disk says, the journal hears that it went well."""
    journal = broker.store.journal
    written = journal._written

    def hear(error: BaseException | None) -> None:
        written(None)

    journal._written = hear  # type: ignore[method-assign]  # a wrong build


def test_a_sync_error_retried_as_success_is_noticed() -> None:
    caught(trouble, hopeful)


def test_ignored_errors_are_noticed() -> None:
    caught(trouble, deaf)
