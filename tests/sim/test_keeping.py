"""What is kept, expires and is evicted: exactly what a naive model says, across crashes and restarts."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from magnetar.broker.topic.cleanup import backlog_quotas, expiry, retention
from magnetar.broker.topic.topic import Topic
from magnetar.config.settings import Settings
from magnetar.model.errors import QuotaExceededHoldError
from magnetar.model.names import TopicName
from magnetar.protocol.commands import InitialPosition
from magnetar.protocol.entries import publish_time
from magnetar.testing.broker import HOST, PORT
from magnetar.testing.rawclient import RawClient, make_entry
from tests.sim.world import T, World, caught, run_seeds
from tests.support.at_once import at_once

S = "sub"
NEVER = 1 << 24
PASSIVE = Settings(
    messageExpiryCheckIntervalInMinutes=NEVER, retentionCheckIntervalInSeconds=NEVER,
    backlogQuotaCheckIntervalInSeconds=NEVER, brokerDeleteInactiveTopicsEnabled=False,
)  # fmt: skip
"""The simulation itself says when a pass is due, so that it knows the time of it."""


class Model:
    """The topic as a list; nothing is clever here."""

    def __init__(self) -> None:
        self.times: list[int] = []
        self.sizes: list[int] = []
        self.acked: set[int] = set()
        self.first = 0

    def mark(self) -> int:
        """Behind the acknowledged prefix."""
        mark = 0
        while mark in self.acked:
            mark += 1
        return mark

    def backlog(self) -> int:
        return len(self.times) - len(self.acked)

    def expire(self, before_ms: int) -> None:
        for ordinal, time in enumerate(self.times):
            if ordinal not in self.acked and time >= before_ms:
                break
            self.acked.add(ordinal)

    def retain(self, cutoff_ms: int | None, size: int | None) -> None:
        while self.first < self.mark():
            old = cutoff_ms is not None and self.times[self.first] < cutoff_ms
            if not old and (size is None or sum(self.sizes[self.first + 1 :]) < size):
                break
            self.first += 1

    def behind(self) -> int:
        return sum(self.sizes[self.mark() :])

    def evict(self, limit: int) -> None:
        if self.behind() < limit:
            return
        while self.mark() < len(self.sizes):
            if self.behind() < limit and self.behind() - self.sizes[self.mark()] < 0.9 * limit:
                return
            self.acked.add(self.mark())


def topic_of(world: World) -> Topic:
    found = world.machine.broker.service.find(TopicName.parse(T))
    assert found is not None
    return found


def check(world: World, model: Model, what: str) -> None:
    topic = topic_of(world)
    cursor = topic.subscriptions[S].cursor
    assert cursor.backlog() == model.backlog(), what
    assert [o for o in range(len(model.times)) if cursor.acknowledged(o)] == sorted(model.acked), what
    assert topic.log.first == model.first, what


async def publish(world: World, model: Model, count: int) -> None:
    client = await RawClient.open(HOST, PORT)
    await client.connect()
    producer = await client.producer(T)
    for _ in range(count):
        await asyncio.sleep(world.rng.uniform(0.1, 20))
        now = world.machine.clock.now_ms()
        payload = b"x" * world.rng.randint(1, 300)
        entry = make_entry(payload, producer=producer.name, sequence_id=len(model.times), publish_time_ms=now)
        await producer.receipt(producer.send(b"", entry=entry))
        model.times.append(now)
        model.sizes.append(len(entry))
    client.transport.close()


def acknowledge(world: World, model: Model) -> None:
    cursor = topic_of(world).subscriptions[S].cursor
    some = [o for o in range(len(model.times)) if o not in model.acked and world.rng.random() < 0.4]
    cursor.acknowledge(some)
    model.acked.update(some)


def say(world: World, **policies: Any) -> None:
    """Set policies; the expiry that a shorter time to live asks for is left to the passes: the model knows theirs."""
    world.machine.broker.service.policy_notification.on_shorter_life = lambda: None
    for name, value in policies.items():
        at_once(world.machine.broker.resources.topic_policies.update(TopicName.parse(T), name, value))


async def passes(world: World, model: Model) -> None:
    """Each pass once, in any order, and the model's."""
    rng, upkeep, policies = world.rng, world.machine.broker.upkeep, topic_of(world).policies
    for which in rng.sample(("expire", "retain", "quota"), 3):
        await asyncio.sleep(rng.uniform(0.1, 30))
        now = world.machine.clock.now_ms()
        if which == "expire":
            await upkeep.expire()
            if policies.message_ttl_s:
                model.expire(now - policies.message_ttl_s * 1000)
        elif which == "quota":
            await upkeep.check_quotas()
            if policies.size_quota.limit >= 0:
                model.evict(policies.size_quota.limit)
        else:
            await upkeep.retain()
            if policies.retention != (0, 0):
                minutes, size = policies.retention
                model.retain(None if minutes < 0 else now - minutes * 60_000, None if size < 0 else size << 20)
        check(world, model, f"after {which}")
    await by_size(world, model)


async def by_size(world: World, model: Model) -> None:
    """Where a size limit smaller than a whole MiB would keep from; nothing is let go."""
    size, now = world.rng.randint(100, 4000), world.machine.clock.now_ms()
    topic, expected = topic_of(world), Model()
    expected.times, expected.sizes, expected.acked = model.times, model.sizes, model.acked
    expected.first = model.first
    expected.retain(None, size)
    keep_from, _ = await retention.RetentionScan(topic.log, retention.RetentionRule(None, size), now).to(
        topic.slowest() + 1
    )
    assert keep_from == expected.first, f"with {size} bytes"


async def keeping(world: World) -> None:
    """Publish, acknowledge here and there, let time go by, change policies, crash; compare after every pass."""
    await world.boot()
    rng, model = world.rng, Model()
    client = await RawClient.open(HOST, PORT)
    await client.connect()
    await client.subscribe(T, S, initial_position=InitialPosition.Earliest)
    client.transport.close()
    for _ in range(6):
        say(
            world,
            messageTTL=rng.choice((None, 60, 200)),
            retention=rng.choice((None, {"retentionTimeInMinutes": rng.choice((1, 3)), "retentionSizeInMB": -1})),
            backlogQuotaMap={
                "destination_storage": {"limitSize": rng.randint(500, 5000), "policy": "consumer_backlog_eviction"}
            },
        )
        # without retention the broker may drop whole ledgers at any time: the model does not speak of those
        if topic_of(world).policies.retention == (0, 0):
            say(world, retention={"retentionTimeInMinutes": 1000, "retentionSizeInMB": -1})
        await publish(world, model, rng.randint(1, 25))
        acknowledge(world, model)
        await passes(world, model)
        await asyncio.sleep(1)
        if rng.random() < 0.5:
            await (world.crash() if rng.random() < 0.7 else world.restart())
            check(world, model, "after a crash")
    await read_all(model)
    TRIMMED.append(model.first)


TRIMMED: list[int] = []
"""How much retention let go of, per seed: a simulation that trims nothing shows nothing."""


async def read_all(model: Model) -> None:
    """A reader that begins at the earliest message sees what is retained, and nothing else."""
    client = await RawClient.open(HOST, PORT)
    await client.connect()
    reader = await client.subscribe(T, "reader", initial_position=InitialPosition.Earliest, durable=False)
    reader.flow(1000)
    sizes = []
    for _ in model.sizes[model.first :]:
        sizes.append(len((await reader.receive()).entry))
    assert sizes == model.sizes[model.first :]
    client.transport.close()


def test_keeping_is_exact() -> None:
    """Retention, expiry and eviction keep exactly what a naive model keeps (rules 4.4.2, 4.5.2, 4.5.5)."""
    TRIMMED.clear()
    run_seeds(keeping, 12, settings=PASSIVE)
    assert sum(TRIMMED) > 50


def test_an_entry_too_many_that_expires_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expiry, "stored_publish_time", lambda entry: publish_time(entry) - 20_000)
    caught(keeping, lambda broker: None, settings=PASSIVE)


def test_retention_that_keeps_less_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retention, "stored_ms", lambda published, ledger, now: published - 40_000)
    caught(keeping, lambda broker: None, settings=PASSIVE)


def test_eviction_to_the_limit_instead_of_below_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backlog_quotas, "_TARGET", 1.0)
    caught(keeping, lambda broker: None, settings=PASSIVE)


def refused(topic: Topic) -> bool:
    try:
        topic.quotas.check_producer()
    except QuotaExceededHoldError:
        return True
    return False


async def blocked(world: World) -> None:
    """While the backlog is over the quota no producer is admitted, and none stays; by itself, on virtual time."""
    await world.boot()
    model = Model()
    client = await RawClient.open(HOST, PORT)
    await client.connect()
    await client.subscribe(T, S, initial_position=InitialPosition.Earliest)
    limit = world.rng.randint(500, 3000)
    say(world, backlogQuotaMap={"destination_storage": {"limitSize": limit, "policy": "producer_request_hold"}})
    while model.behind() < limit:
        await publish(world, model, 1)
    producers = topic_of(world).producers
    await asyncio.sleep(120)
    assert not len(producers)
    assert refused(topic_of(world))
    acknowledged = list(range(len(model.times)))
    topic_of(world).subscriptions[S].cursor.acknowledge(acknowledged)
    await client.producer(T)
    client.transport.close()


def test_over_quota_nobody_publishes() -> None:
    run_seeds(blocked, 3)


def test_a_quota_that_is_not_checked_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backlog_quotas.BacklogQuotas, "any", property(lambda self: False))
    caught(blocked, lambda broker: None)
