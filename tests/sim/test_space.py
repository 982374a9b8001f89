"""Disk space comes back whatever few messages stay, and nothing that stays is lost or changed by that."""

from __future__ import annotations

import asyncio
from functools import partial

import pytest

from magnetar.app.node import Broker
from magnetar.model.names import TopicName
from magnetar.protocol.commands import SubType
from magnetar.storage.log.journal import Journal
from magnetar.storage.log.write_group import PendingMove
from magnetar.storage.replay.replayed_extents import ReplayedExtents
from magnetar.storage.space import extent_mover, segment_cleaner
from magnetar.storage.space.occupancy import Occupancy
from magnetar.storage.store import LedgerStore
from magnetar.testing.faultfiles import FaultFileSystem
from magnetar.testing.history import Delivered
from magnetar.testing.history_check import Order, Rules
from tests.sim.clients import Habit, Publisher, Subscriber
from tests.sim.world import SMALL, T, World, caught, run_seeds

S = "sub"
QUIET = tuple(f"persistent://public/default/q{i}" for i in range(4))
DOOMED = "persistent://public/default/doomed"
ENTRY = 200
"""What an entry takes at most beside its payload: its metadata, its record, its place."""
SLACK = 5 * SMALL.segment_bytes
"""docs/disk.md."""


@pytest.fixture(autouse=True)
def small_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    """A crash finds a segment half moved."""
    monkeypatch.setattr(extent_mover, "_SLICE_BYTES", 700)
    monkeypatch.setattr(extent_mover, "_HURRIED_BYTES", 700)


def on_disk(files: FaultFileSystem) -> int:
    return sum(files.open(name).size() for name in files.names() if name.startswith("segment-"))


def living(world: World) -> int:
    """What is retained, by the tables of ledgers and not by those that moving keeps."""
    logs = [world.machine.broker.store.find_log(name) for name in world.machine.broker.store.names()]
    return sum(log.retained_bytes() - log.hidden_bytes + ENTRY * (log.end - log.first) for log in logs if log)


def check_space(world: World) -> None:
    held, lives = on_disk(world.machine.files), living(world)
    assert held <= 2 * lives + SLACK, f"{held} bytes on disk, {lives} live"


async def space(world: World) -> None:
    """One topic's traffic comes and goes, four keep everything, one is deleted; the broker crashes while it moves."""
    await world.boot()
    rng = world.rng
    fast = Subscriber(world, "fast", T, S, SubType.Exclusive, Habit(cumulative=True, permits=200))
    first = [Subscriber(world, f"first {topic[-2:]}", topic, S, SubType.Shared) for topic in QUIET]
    world.start(fast.run(), *(one.run() for one in first))
    await asyncio.sleep(1)
    for one in first:
        one.stopped = True
    busy = Publisher(world, "busy", T, size=400)
    quiet = [Publisher(world, topic[-2:], topic, size=rng.choice((30, 300))) for topic in QUIET]
    doomed = Publisher(world, "doomed", DOOMED, size=100)
    for round_ in range(1, 6):
        work = [busy.run(120 * round_), *(one.run(rng.randint(4, 9) * round_) for one in quiet)]
        world.start(*work, *([doomed.run(20 * round_)] if round_ < 4 else []))
        await asyncio.sleep(rng.uniform(3, 8))
        if round_ == 4:
            name = TopicName.parse(DOOMED)
            if world.machine.broker.service.find(name) is not None:
                await world.machine.broker.service.delete(name, force=True)
        # a pass comes every 10 s after a start; with luck it is under way
        await asyncio.sleep(rng.choice((0.5, 10.0 - world.loop.time() % 10.0 + rng.uniform(0, 0.1))))
        if rng.random() < 0.7:
            await world.crash()
        if rng.random() < 0.3:
            world.start(*(after_a_while(one, rng.uniform(1, 20)) for one in quiet[:1]))
    await world.quiet(15.0)
    await asyncio.sleep(90)
    check_space(world)
    if rng.random() < 0.5:
        await world.crash()
    world.start(*(Subscriber(world, f"last {t[-2:]}", t, S, SubType.Shared).run() for t in QUIET))
    await world.end((T, S), *((topic, S) for topic in QUIET))
    world.verify(Rules(order=Order.NONE))
    assert all(world.backlog(topic, S) == 0 for topic in QUIET)
    await asyncio.sleep(90)
    check_space(world)


async def after_a_while(publisher: Publisher, seconds: float) -> None:
    await asyncio.sleep(seconds)
    await publisher.run(publisher.sent + 5)


def test_space_comes_back_and_nothing_is_lost() -> None:
    run_seeds(space, 12)


def test_no_moving_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segment_cleaner, "victims", lambda uses, slack: [])
    caught(space, lambda broker: None)


def test_no_checkpoints_for_the_sake_of_space_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segment_cleaner, "_ROLL_PART", 0)
    caught(space, lambda broker: None)


def test_a_replay_that_leaves_moved_entries_where_they_were_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ReplayedExtents, "_moved", lambda self, managed, extent: None)
    monkeypatch.setattr(Occupancy, "removable", lambda self, number, border: number <= border and number not in self)
    caught(space, lambda broker: None)


def test_a_move_that_counts_before_it_is_durable_is_noticed() -> None:
    def tamper(broker: Broker) -> None:
        journal = broker.store.journal
        add = journal.add_move

        def add_move(move: PendingMove) -> None:
            move.done(journal.segment, 0)
            add(move)

        journal.add_move = add_move  # type: ignore[method-assign]  # a wrong build

    caught(space, tamper)


def test_a_move_of_which_nothing_is_written_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def forgetful(self: Journal, move: PendingMove) -> None:
        move.data, move.records = b"", 0
        self._group.move = move
        self._schedule()

    monkeypatch.setattr(Journal, "add_move", forgetful)
    caught(space, lambda broker: None)


async def removed_early(world: World) -> None:
    """Both checkpoints have to know of a move: the newest is damaged, and the start goes by the one before."""
    await world.boot()
    rng = world.rng
    first = Subscriber(world, "first", QUIET[0], S, SubType.Shared)
    world.start(first.run(), Subscriber(world, "fast", T, S, SubType.Exclusive, Habit(cumulative=True)).run())
    await asyncio.sleep(1)
    first.stopped = True
    busy, quiet = Publisher(world, "busy", T, size=400), Publisher(world, "quiet", QUIET[0], size=50)
    for round_ in range(1, 4):
        await world.finish(busy.run(100 * round_), quiet.run(10 * round_))
        await asyncio.sleep(rng.uniform(5, 60))
    world.machine.kill()
    files = world.machine.files
    newest = max(name for name in files.names() if name.startswith("checkpoint-"))
    files.flip_bit(newest, 40)
    await asyncio.sleep(1)
    await world.machine.start()
    world.start(Subscriber(world, "last", QUIET[0], S, SubType.Shared).run())
    await asyncio.sleep(30)
    delivered = {event.value for event in world.history if isinstance(event, Delivered) and event.topic == QUIET[0]}
    assert {f"quiet-{i}" for i in range(30)} <= delivered


def test_the_checkpoint_before_the_newest_still_leads_to_everything() -> None:
    run_seeds(removed_early, 6)


def test_removing_what_only_the_newest_checkpoint_knows_of_is_noticed() -> None:
    def early(broker: Broker) -> None:
        broker.store.occupancy.removable = partial(_by_the_newest, broker.store)  # type: ignore[method-assign]

    caught(removed_early, early)


def _by_the_newest(store: LedgerStore, number: int, border: int) -> bool:
    return number <= store.keeper.covered()[1] and number not in store.occupancy
