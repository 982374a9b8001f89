"""Trimming takes nothing that a durable subscription has not acknowledged, and gives the disk back."""

from __future__ import annotations

import asyncio

import pytest

from magnetar.broker.topic.topic import Topic
from magnetar.broker.upkeep import unloaded_topics
from magnetar.model.names import TopicName
from magnetar.protocol.commands import SubType
from magnetar.testing.history_check import Order, Rules
from tests.sim.clients import Habit, Publisher, Subscriber
from tests.sim.world import T, World, caught, run_seeds
from tests.support.simulated_store import used_bytes


async def trimming(world: World) -> None:
    """A fast, a slow and a late subscription; upkeep trims, the broker crashes; in the end all is consumed."""
    await world.boot()
    rng = world.rng
    fast = Subscriber(world, "fast", T, "fast", SubType.Exclusive, Habit(cumulative=True, permits=200))
    slow = Subscriber(world, "slow", T, "slow", SubType.Shared, Habit(permits=5, think_s=0.3, keeps=0.1))
    late = Subscriber(world, "late", T, "late", SubType.Shared)
    world.start(fast.run(), slow.run(), late.run())
    await asyncio.sleep(1)
    late.stopped = True
    publisher = Publisher(world, "p", T, size=200)
    for round_ in range(1, 4):
        world.start(publisher.run(60 * round_))
        await asyncio.sleep(rng.uniform(5, 25))
        if rng.random() < 0.6:
            await world.crash()
    await world.quiet(15.0)
    assert publisher.sent == 180
    again = Subscriber(world, "again", T, "late", SubType.Shared)
    slow.stopped = True
    world.start(again.run(), Subscriber(world, "rest", T, "slow", SubType.Shared).run())
    await world.end((T, "fast"), (T, "slow"), (T, "late"))
    world.verify(Rules(order=Order.NONE))
    assert all(world.backlog(T, name) == 0 for name in ("fast", "slow", "late"))
    await world.restart()
    world.start(Publisher(world, "q", T).run(3))
    await asyncio.sleep(30)
    await world.restart()
    assert used_bytes(world.machine.files) < 20_000, "180 entries of 200 bytes are gone"


NAMES = ("consumed", "kept", "half", "forever", "old", "expiring", "nobody")


async def unused(world: World) -> None:
    """After a restart no client uses the topics any more; what they need not keep goes; they are not loaded for it."""
    await world.boot()
    topics = {name: f"persistent://public/default/{name}" for name in NAMES}
    consumers = []
    for name in NAMES[:-1]:
        consumer = Subscriber(world, f"first {name}", topics[name], "sub", SubType.Shared)
        world.start(consumer.run())
        await asyncio.sleep(1)
        consumer.stopped = name in ("kept", "half", "expiring")
        consumers.append(consumer)
    say = world.machine.broker.resources.topic_policies.update
    await say(TopicName.parse(topics["forever"]), "retention", {"retentionTimeInMinutes": -1, "retentionSizeInMB": -1})
    await say(TopicName.parse(topics["old"]), "retention", {"retentionTimeInMinutes": 30, "retentionSizeInMB": -1})
    await say(TopicName.parse(topics["expiring"]), "messageTTL", 1800)
    # ledgers are cut at 40 entries, and the last one is not full
    await world.finish(*(Publisher(world, name, topics[name], size=100).run(100) for name in NAMES))
    await asyncio.sleep(5)
    half = world.machine.broker.service.topics[topics["half"]].subscriptions["sub"].cursor
    half.acknowledge_until(50)
    for consumer in consumers:
        consumer.stopped = True
    await asyncio.sleep(5)
    await world.restart()
    store = world.machine.broker.store

    def first(name: str) -> tuple[int, int]:
        log = store.find_log(topics[name])
        assert log is not None
        return log.first, log.end

    await asyncio.sleep(35)
    assert not world.machine.broker.service.topics, "none is loaded"
    kept = {name: first(name) for name in NAMES}
    assert {name: end for name, (_, end) in kept.items()} == dict.fromkeys(NAMES, 100)
    assert {name for name, (at, end) in kept.items() if at == end} == {"consumed"}
    assert {name for name, (at, _) in kept.items() if at == 0} == {"kept", "forever", "old", "expiring"}
    assert 0 < kept["half"][0] <= 51
    assert 0 < kept["nobody"][0] < 100, "without subscription and retention the last ledger stays"
    await asyncio.sleep(1800 + 330)  # expiry is looked for every five minutes
    assert first("old") == (100, 100)
    assert first("expiring") == (100, 100)
    assert first("kept") == first("forever") == (0, 100)
    assert set(world.machine.broker.service.topics) == {topics["expiring"]}, "loaded to look at its messages"
    await world.crash()
    store = world.machine.broker.store
    assert first("consumed") == first("old") == (100, 100)
    assert first("forever") == (0, 100)
    last = Subscriber(world, "last", topics["half"], "sub", SubType.Shared)
    world.start(last.run(), Subscriber(world, "also", topics["kept"], "sub", SubType.Shared).run())
    await world.end((topics["half"], "sub"), (topics["kept"], "sub"))
    assert world.backlog(topics["half"], "sub") == world.backlog(topics["kept"], "sub") == 0
    assert len(last.got) == 49


def test_topics_that_nobody_uses_are_trimmed() -> None:
    run_seeds(unused, 4)


def test_not_looking_at_topics_that_nobody_uses_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unloaded_topics, "_LOOKED_AT", 0)
    caught(unused, lambda broker: None)


def test_trimming_unused_topics_without_asking_the_cursors_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unloaded_topics, "releasable", lambda managed, rule, started_ms: managed.end)
    caught(unused, lambda broker: None)


def test_each_pass_goes_on_where_the_last_one_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unloaded_topics, "_LOOKED_AT", 3)
    run_seeds(unused, 1)


def test_trimming_takes_nothing_that_is_needed() -> None:
    run_seeds(trimming, 7)


def test_trimming_without_asking_the_cursors_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Topic, "trim", lambda self: self.log.trim(self.log.end))
    caught(trimming, lambda broker: None)


def test_no_trimming_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Topic, "trim", lambda self: 0)
    caught(trimming, lambda broker: None)
