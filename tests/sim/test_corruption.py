"""A changed bit in any file is noticed, named and kept; nothing wrong is delivered, everything else stays readable."""

from __future__ import annotations

import asyncio

import pytest

from magnetar.model.errors import PersistenceError
from magnetar.storage import records
from magnetar.storage.cache import Run
from magnetar.storage.managed_ledger import ManagedLedger
from tests.sim.clients import Publisher
from tests.sim.world import T, World, caught, run_seeds

TOPICS = (T, "persistent://public/default/u")


async def flipped(world: World, caplog: pytest.LogCaptureFixture) -> None:
    """Write, end the broker in order or not, flip one bit, start, read everything."""
    await world.boot()
    for topic in TOPICS:
        world.start(Publisher(world, topic[-1], topic, size=world.rng.choice((20, 200))).run(80))
    await world.quiet(1.0)
    world.check_tasks()
    before = {topic: await readable(world.machine.broker.store.open_log(topic)) for topic in TOPICS}
    if world.rng.random() < 0.5:
        await world.machine.stop()
    else:
        world.machine.kill()
    files = world.machine.files
    names = [name for name in files.names() if name not in ("LOCK", "reserve")]
    kind = world.rng.choice(("segment", "index", "checkpoint"))
    fitting = [name for name in names if name.startswith(kind)] or [name for name in names if name.endswith(kind)]
    name = world.rng.choice(fitting or names)
    file = files.open(name)
    offset = world.rng.randrange(file.size())
    image = {one: files.open(one).read(0, 1 << 30) for one in names}
    files.flip_bit(name, offset, world.rng.randrange(8))
    caplog.clear()
    try:
        await world.machine.start()
    except PersistenceError as refused:
        # allowed only if it names the file, and if undoing the damage heals it
        assert "checkpoint" in str(refused) or "segment" in str(refused), refused
        assert "checkpoint" in name
        return
    lost = 0
    for topic in TOPICS:
        after = await readable(world.machine.broker.store.open_log(topic))
        assert {o: v for o, v in after.items() if before[topic].get(o) != v} == {}, "something wrong was read"
        lost += len(before[topic]) - len(after)
    told = [*world.machine.broker.store.damage]
    told += [record.getMessage() for record in caplog.records if record.levelname in ("ERROR", "WARNING")]
    if lost:
        assert told, f"{lost} entries are missing after a flip at {name}+{offset}, and nobody says so"
        assert lost < 120, "more than one damaged place can explain"
    for one, content in image.items():
        now = [n for n in world.machine.files.names() if n == one or (n.startswith("quarantine-") and one in n)]
        assert now or one.startswith("checkpoint"), f"{one} was deleted"
        del content


async def readable(log: ManagedLedger) -> dict[int, bytes]:
    """Every entry that can be read, by ordinal; reading goes on behind what cannot."""
    out: dict[int, bytes] = {}
    at = log.first
    while at < log.end:
        future: asyncio.Future[Run | Exception] = asyncio.get_running_loop().create_future()
        log.read(at, 100, 1 << 20, future.set_result)
        found = await future
        if isinstance(found, Exception):
            at += 1
            continue
        for i, entry in enumerate(found.entries):
            out[found.first + i] = entry
        at = found.first + len(found.entries)
    return out


def test_a_flipped_bit_is_noticed_named_and_kept(caplog: pytest.LogCaptureFixture) -> None:
    async def simulation(world: World) -> None:
        await flipped(world, caplog)

    run_seeds(simulation, 40)


def test_missing_checksums_are_noticed(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    async def simulation(world: World) -> None:
        await flipped(world, caplog)

    monkeypatch.setattr(records, "crc32c", lambda data, crc=0: 0)
    assert caught(simulation, lambda broker: None, 30)
