"""A changed bit in any file is noticed, named and kept; nothing wrong is delivered, everything else stays readable."""

from __future__ import annotations

import asyncio

import pytest

from magnetar.broker.topic.dispatch.unreadable_ranges import UnreadableRanges
from magnetar.broker.topic.subscription.explanation import explain
from magnetar.config.settings import Settings
from magnetar.model.errors import PersistenceError
from magnetar.protocol import commands as c
from magnetar.storage.log import records
from magnetar.testing.broker import HOST, PORT
from magnetar.testing.rawclient import RawClient
from tests.sim.clients import Publisher
from tests.sim.contents import keep
from tests.sim.world import T, World, caught, run_seeds
from tests.support.simulated_store import readable

TOPICS = (T, "persistent://public/default/u")


async def flipped(world: World, caplog: pytest.LogCaptureFixture) -> None:
    """Write, end the broker in order or not, flip one bit, start, read everything."""
    await world.boot()
    for topic in TOPICS:
        await keep(topic)
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
    reported = [*world.machine.broker.store.damage]
    reported += [record.getMessage() for record in caplog.records if record.levelname in ("ERROR", "WARNING")]
    if lost:
        assert reported, f"{lost} entries are missing after a flip at {name}+{offset}, and nobody says so"
        assert lost < 120, "more than one damaged place can explain"
    for one, content in image.items():
        now = [n for n in world.machine.files.names() if n == one or (n.startswith("quarantine-") and one in n)]
        assert now or one.startswith("checkpoint"), f"{one} was deleted"
        del content


async def waited_for(world: World, caplog: pytest.LogCaptureFixture) -> None:
    """A subscription comes to what is damaged, names it once, waits, and goes on after it when it may."""
    await world.boot()
    world.start(Publisher(world, "t", T, size=200).run(120))
    await world.quiet(1.0)
    world.check_tasks()
    await world.machine.stop()
    files = world.machine.files
    segments = sorted(name for name in files.names() if name.startswith("segment"))
    for name in world.rng.sample(segments[:-1], min(2, len(segments) - 1)):
        files.flip_bit(name, world.rng.randrange(files.open(name).size()), world.rng.randrange(8))
    await world.machine.start()
    broker = world.machine.broker
    log = broker.store.open_log(T)
    there = await readable(log)
    caplog.clear()
    client = await RawClient.open(HOST, PORT)
    await client.connect()
    sub_type = world.rng.choice(list(c.SubType))
    consumer = await client.subscribe(T, "s", sub_type, initial_position=c.InitialPosition.Earliest)
    consumer.flow(1000)
    subscription = broker.service.topics[T].subscriptions["s"]
    for _ in range(50):
        await asyncio.sleep(300)
        if subscription.unreadable.waiting is None:
            break
        assert not world.settings.autoSkipNonRecoverableData, "it waits although it may go on"
        before = len(client.heard(c.CommandMessage))
        assert explain(subscription)[0].what == "unreadable" or sub_type is c.SubType.Key_Shared
        await asyncio.sleep(300)
        assert len(client.heard(c.CommandMessage)) == before
        assert subscription.skip_unreadable() > 0
    got = client.heard(c.CommandMessage)
    assert [message.entry for message in got] == [there[ordinal] for ordinal in sorted(there)], (
        "readable ones are missing"
    )
    missing = log.end - log.first - len(there)
    assert subscription.unreadable.entries_skipped == missing
    assert sum(stop - start for start, stop in subscription.unreadable.skipped) == missing
    named = [record for record in caplog.records if "cannot be read:" in record.getMessage()]
    assert len(named) >= len(subscription.unreadable.skipped)
    assert len(named) == len({record.getMessage() for record in named}), "named more than once"
    for message in got:
        consumer.ack_unconfirmed(message.message_id)
    await asyncio.sleep(5)
    assert subscription.cursor.backlog() == 0


@pytest.mark.parametrize("auto", [False, True])
def test_a_subscription_goes_past_what_is_damaged_when_it_may(caplog: pytest.LogCaptureFixture, auto: bool) -> None:
    async def simulation(world: World) -> None:
        await waited_for(world, caplog)

    run_seeds(simulation, 20, settings=Settings(autoSkipNonRecoverableData=auto))


def test_more_skipped_than_is_damaged_is_noticed(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def simulation(world: World) -> None:
        await waited_for(world, caplog)

    met = UnreadableRanges.met
    monkeypatch.setattr(UnreadableRanges, "met", lambda self, start, stop: met(self, start, stop + 1))
    caught(simulation, lambda broker: None)


def test_a_flipped_bit_is_noticed_named_and_kept(caplog: pytest.LogCaptureFixture) -> None:
    async def simulation(world: World) -> None:
        await flipped(world, caplog)

    run_seeds(simulation, 40)


def test_missing_checksums_are_noticed(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    async def simulation(world: World) -> None:
        await flipped(world, caplog)

    monkeypatch.setattr(records, "crc32c", lambda data, crc=0: 0)
    caught(simulation, lambda broker: None)
