"""A transaction is all or nothing: what it produced and what it acknowledged, on all topics, through everything.

Workers take messages from one topic, send what they make of each to two others and acknowledge, all in a transaction;
then they commit, abort, or walk away. Whatever happens to them and to the broker, in the end every input stands exactly
once in each output: a lost acknowledgement or half a commit would double it, a leaked one would drop it.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any, cast

import pytest

from magnetar.broker.topic.subscription.subscription import Subscription
from magnetar.broker.topic.transactions.isolation import ReadCommittedRule
from magnetar.broker.topic.transactions.topic_transactions import TopicTransactions
from magnetar.config.settings import Settings
from magnetar.protocol import commands as c
from magnetar.protocol.commands import SubType
from magnetar.testing.broker import HOST, PORT
from magnetar.testing.faultfiles import Operation
from magnetar.testing.history import Receipted
from magnetar.testing.rawclient import RawClient, RawConsumer, RawProducer, payload_of
from magnetar.testing.rawtransaction import RawTransaction
from magnetar.transactions.feature_state import TransactionFeatureState
from magnetar.transactions.operation_log import OperationLog
from tests.sim.clients import TROUBLE, Publisher
from tests.sim.world import Simulation, T, World, caught, run_seeds

S = "sub"
OUT = ("persistent://public/default/out-0", "persistent://public/default/out-1")
SETTINGS = Settings(transactionCoordinatorEnabled=True)
EARLIEST = c.InitialPosition.Earliest


async def connection(patience_s: float = 8.0) -> RawClient:
    client = await RawClient.open(HOST, PORT, patience_s=patience_s)
    await client.connect()
    return client


class Worker:
    """One of several on the input's Shared subscription; a life ends with its connection or when it likes."""

    def __init__(self, world: World, name: str) -> None:
        self.world = world
        self.name = name
        self.attempts = 0
        self.ended: dict[str, bool] = {}
        """Attempts whose end was answered: committed or not."""
        self.stopped = False

    async def run(self) -> None:
        while not self.stopped:
            try:
                await self._life()
            except TROUBLE:
                pass
            await asyncio.sleep(self.world.rng.uniform(0.02, 0.3))

    async def _life(self) -> None:
        rng = self.world.rng
        client = await connection()
        try:
            producers = [await client.producer(topic) for topic in OUT]
            consumer = await client.subscribe(T, S, SubType.Shared, initial_position=EARLIEST)
            consumer.flow(1000)
            for _ in range(rng.randint(3, 12)):
                got = [await client.hear(c.CommandMessage)]
                while client.heard(c.CommandMessage) and len(got) < rng.randint(1, 5):
                    got.append(await client.hear(c.CommandMessage))
                await self._attempt(client, consumer, producers, got)
        finally:
            client.transport.close()

    async def _attempt(
        self, client: RawClient, consumer: RawConsumer, producers: list[RawProducer], got: list[c.CommandMessage]
    ) -> None:
        rng = self.world.rng
        self.attempts += 1
        attempt = f"{self.name}.{self.attempts}"
        txn = await RawTransaction.begin(client, rng.randint(300, 3000))
        if rng.random() < 0.5:
            await txn.add_partitions(*OUT)
        for message in got:
            value = payload_of(message.entry).rstrip(b".").decode()
            for producer in producers:
                await txn.publish(producer, f"{value}@{attempt}".encode())
            await txn.ack(consumer, message.message_id)
        choice = rng.random()
        if choice < 0.7:
            await txn.commit()
            self.ended[attempt] = True
        elif choice < 0.85:
            await txn.abort()
            self.ended[attempt] = False
        elif choice < 0.95:
            raise ConnectionError("walks away, and the transaction times out")


class Watcher:
    """Reads an output, acknowledges, and writes down what it saw, whatever happens later."""

    def __init__(self, topic: str) -> None:
        self.topic = topic
        self.seen: set[str] = set()

    async def run(self) -> None:
        while True:
            try:
                client = await connection()
                consumer = await client.subscribe(self.topic, "watch", SubType.Shared, initial_position=EARLIEST)
                consumer.flow(10_000)
                while True:
                    message = await client.hear(c.CommandMessage)
                    self.seen.add(payload_of(message.entry).rstrip(b".").decode())
                    consumer.ack_unconfirmed(message.message_id)
            except TROUBLE:
                await asyncio.sleep(0.05)


async def keep_everything() -> None:
    """Subscriptions that never acknowledge: nothing is trimmed."""
    client = await connection()
    for topic in (T, *OUT):
        await client.subscribe(topic, "all", initial_position=EARLIEST)
    client.transport.close()


async def everything(topic: str) -> list[str]:
    """What a subscription gets that has been there from the beginning."""
    client = await connection()
    consumer = await client.subscribe(topic, "all")
    consumer.flow(100_000)
    await asyncio.sleep(3.0)
    values = [payload_of(message.entry).rstrip(b".").decode() for message in client.heard(c.CommandMessage)]
    client.transport.close()
    return values


TROUBLES = ("crash", "crash", "sync", "append", "unload", "restart")


async def trouble(world: World, kind: str) -> None:
    """One thing that goes wrong."""
    rng, files = world.rng, world.machine.files
    if kind == "crash":
        await world.crash()
    elif kind == "restart":
        await world.restart()
    elif kind == "unload":
        service = world.machine.broker.service
        for topic in list(service.topics.values()):
            service.unload(topic.name)
    else:
        files.fail(cast(Operation, kind), skip=rng.randint(0, 3), times=rng.randint(1, 3))


async def all_or_nothing(world: World) -> None:
    """Consume, transform, produce; crashes, refusals of the disk, unloads and time-outs between."""
    await pipeline(world, TROUBLES, world.rng.randint(2, 5))


async def on_a_refusing_disk(world: World) -> None:
    """Run the pipeline on a disk that refuses again and again."""
    await pipeline(world, ("sync", "append"), 12)


async def crashing(world: World) -> None:
    """Run the pipeline through crash after crash."""
    await pipeline(world, ("crash",), 6)


async def pipeline(world: World, troubles: tuple[str, ...], rounds: int) -> None:
    await world.boot()
    await keep_everything()
    rng = world.rng
    inputs = Publisher(world, "i", T)
    plain = Publisher(world, "plain", OUT[0], size=0)
    workers = [Worker(world, f"w{n}") for n in range(2)]
    watchers = [Watcher(topic) for topic in OUT]
    world.start(inputs.run(30), plain.run(30), *(w.run() for w in workers), *(w.run() for w in watchers))
    for _ in range(rounds):
        await asyncio.sleep(rng.uniform(0.05, 0.6))
        await trouble(world, rng.choice(troubles))
    for _ in range(60):
        await asyncio.sleep(1.0)
        world.check_tasks()
        if inputs.sent == plain.sent == 30 and T in world.machine.broker.service.topics and not world.backlog(T, S):
            break
    else:
        raise AssertionError(f"{world.backlog(T, S)} inputs are never done with")
    for worker in workers:
        worker.stopped = True
    await asyncio.sleep(5.0)
    if rng.random() < 0.5:
        await world.crash()
    done_with = await everything(T)
    outputs = [await everything(topic) for topic in OUT]
    assert not world.machine.broker.service.coordinator.open
    check(done_with, outputs, workers, watchers)
    receipted = {e.value for e in world.history if isinstance(e, Receipted) and e.topic == OUT[0]}
    assert receipted <= set(outputs[0]), "a plain message between them was lost"


def check(inputs: list[str], outputs: list[list[str]], workers: list[Worker], watchers: list[Watcher]) -> None:
    made = [[value for value in values if "@" in value] for values in outputs]
    for values in made:
        sources = Counter(value.partition("@")[0] for value in values)
        assert sources == Counter(inputs), "an input stands in an output more or less than once"
    assert set(made[0]) == set(made[1]), "half a transaction"
    attempts = {value.partition("@")[2] for value in made[0]}
    for worker in workers:
        for attempt, committed in worker.ended.items():
            assert (attempt in attempts) == committed, f"{attempt} was answered {committed=}"
    for watcher, values in zip(watchers, outputs, strict=True):
        assert watcher.seen <= set(values), "what was seen was taken back"


@pytest.mark.parametrize("simulation", [all_or_nothing, on_a_refusing_disk, crashing])
def test_transactions_are_all_or_nothing(simulation: Simulation) -> None:
    """Whatever crashes, a transaction shows all of what it sent and acknowledged, or nothing (rule 9.16)."""
    run_seeds(simulation, 12, settings=SETTINGS)


def noticed(
    monkeypatch: pytest.MonkeyPatch, owner: type, name: str, wrong: Any, simulation: Simulation = all_or_nothing
) -> None:
    monkeypatch.setattr(owner, name, wrong)
    caught(simulation, lambda broker: None, settings=SETTINGS)


def test_entries_seen_before_the_end_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    noticed(monkeypatch, ReadCommittedRule, "readable_end", lambda self, end: end)


def test_aborted_entries_that_show_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    noticed(monkeypatch, ReadCommittedRule, "next_open", lambda self, start, stop: start)


def test_acknowledgements_that_do_not_wait_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    reserve = TopicTransactions.acknowledge

    def at_once(self: TopicTransactions, subscription: Subscription, *arguments: Any) -> None:
        reserve(self, subscription, *arguments)
        subscription.cursor.acknowledge(arguments[2])

    noticed(monkeypatch, TopicTransactions, "acknowledge", at_once)


def test_acknowledgements_forgotten_at_an_unload_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    noticed(monkeypatch, TopicTransactions, "_hand_over", lambda self: None)


def test_decisions_lost_with_a_group_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def lost(self: OperationLog[Any]) -> None:
        self._waiting, self._written = [], []

    noticed(monkeypatch, TransactionFeatureState, "lost", lost, on_a_refusing_disk)


def test_an_end_in_two_blocks_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    end = TopicTransactions.end

    def later(self: TopicTransactions, txn: c.TxnId, **how: bool) -> None:
        asyncio.get_running_loop().call_later(0.1, lambda: end(self, txn, **how))

    noticed(monkeypatch, TopicTransactions, "end", later, crashing)
