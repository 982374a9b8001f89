"""Handlers of the native client through crashes and cuts.

What is acknowledged was handled, keys stay in order, and what a handler publishes in a transaction is there once.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence

import pytest

from magnetar.app.node import Broker
from magnetar.client.aio.client import Client
from magnetar.client.aio.client_transaction import ClientTransaction
from magnetar.client.aio.handlers.handler_run import HandlerRun
from magnetar.client.aio.handlers.outcome import Outcome, Retry
from magnetar.client.aio.handlers.transaction_run import TransactionRun
from magnetar.client.errors import ClientError
from magnetar.client.machines.message import Message
from magnetar.client.machines.message_id import MessageId
from magnetar.config.settings import Settings
from magnetar.protocol.commands import InitialPosition, SubType
from magnetar.testing.broker import HOST, PORT
from magnetar.testing.simloop import SimClock
from tests.sim.world import T, World, caught, run_seeds

S = "sub"
OUT = "persistent://public/default/out"
TOTAL = 60
SETTINGS = Settings(transactionCoordinatorEnabled=True)


def new_client(world: World) -> Client:
    url = f"pulsar://{HOST}:{PORT}"
    return Client(url, operation_timeout_seconds=20, clock=SimClock(world.loop), rng=world.rng)


async def trouble(world: World, times: int) -> None:
    for _ in range(times):
        await asyncio.sleep(world.rng.uniform(0.2, 1.0))
        if world.rng.random() < 0.5:
            await world.crash()
        else:
            for link in world.network.links:
                link.cut()


async def publish(world: World) -> None:
    async with new_client(world) as client:
        await (await client.subscribe(T, "keeps what is stored")).close()
        batching = world.rng.random() < 0.5
        producer = await client.create_producer(T, send_timeout_millis=0, batching_enabled=batching)
        for number in range(TOTAL):
            await producer.send(b"%d" % number, partition_key=f"k{number % 4}")


async def read_all(world: World, topic: str) -> list[int]:
    while True:
        try:
            return await _read_all(world, topic)
        except ClientError:
            await asyncio.sleep(0.5)


async def _read_all(world: World, topic: str) -> list[int]:
    async with new_client(world) as client:
        reader = await client.create_reader(topic, MessageId.earliest)
        found: list[int] = []
        while await reader.has_message_available():
            found.append(int((await reader.read_next(5_000)).data()))
        return found


async def handled(world: World) -> None:
    """Handlers that fail, ask for another try, are stopped and begin again: every message is handled to its end, and
    the first success of a key's messages is in their order."""
    await world.boot()
    rng = world.rng
    done: list[int] = []
    troubles = world.loop.create_task(trouble(world, 3))
    await publish(world)

    async def handle(message: Message) -> Outcome:
        await asyncio.sleep(rng.uniform(0.0, 0.05))
        if rng.random() < 0.15:
            raise ValueError("as handlers fail")
        if rng.random() < 0.1:
            return Retry(rng.uniform(0.0, 0.5))
        done.append(int(message.data()))
        return None

    async with new_client(world) as client:
        stored = set(await read_all(world, T))
        for _ in range(60):
            if stored <= set(done):
                break
            consumer = await client.subscribe(
                T, S, SubType.Key_Shared, initial_position=InitialPosition.Earliest, batch_index_ack_enabled=True
            )
            world.loop.call_later(rng.uniform(0.2, 3.0), consumer.stop)
            await consumer.run(handle, concurrency=rng.randint(1, 5), drain_seconds=rng.choice((0.0, 1.0)))
            await consumer.close()
        await troubles
        firsts = list(dict.fromkeys(done))
        for key in range(4):
            mine = [number for number in firsts if number % 4 == key]
            assert mine == sorted(mine), f"key {key} out of order: {mine}"
        consumer = await client.subscribe(T, S, SubType.Key_Shared)
        left: list[int] = []
        try:
            while True:
                left.append(int((await consumer.receive(3_000)).data()))
        except ClientError:
            pass
        assert set(done) | set(left) == stored, "neither handled nor there"


def test_handled() -> None:
    run_seeds(handled, 5)


async def in_transactions(world: World) -> None:
    """Each input is in the output once for those who read what is committed, whatever crashed."""
    await world.boot()
    rng = world.rng
    await publish(world)
    troubles = world.loop.create_task(trouble(world, 3))

    async def life() -> bool:
        async with new_client(world) as client:
            await (await client.subscribe(OUT, "keeps what is stored")).close()
            producer = await client.create_producer(OUT, send_timeout_millis=0, txn_enabled=True)
            consumer = await client.subscribe(
                T, S, rng.choice((SubType.Shared, SubType.Failover)), initial_position=InitialPosition.Earliest,
                batch_index_ack_enabled=True, negative_ack_redelivery_delay_ms=200,
            )  # fmt: skip

            async def handle(batch: Sequence[Message], txn: ClientTransaction) -> None:
                await asyncio.gather(*(producer.send(message.data(), txn=txn) for message in batch))
                if rng.random() < 0.2:
                    raise ValueError("as handlers fail")

            world.loop.call_later(rng.uniform(3.0, 20.0), consumer.stop)
            await consumer.run_in_transactions(
                client, handle, messages=rng.randint(1, 20), drain_seconds=rng.choice((0.0, 5.0)), attempts=50
            )
            return len(set(await read_all(world, OUT))) == TOTAL

    for _ in range(40):
        try:
            if await life():
                break
        except ClientError:
            pass
    await troubles
    assert Counter(await read_all(world, OUT)) == Counter(range(TOTAL)), "not once each"


def test_in_transactions() -> None:
    run_seeds(in_transactions, 4, settings=SETTINGS)


def as_it_is(_: Broker) -> None:
    """What is wrong in the last simulations is the client."""


def test_a_run_that_forgets_what_is_at_hand_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    async def acknowledged(self: HandlerRun, message_id: MessageId) -> None:
        await self._consumer.acknowledge(self._messages.pop(message_id))

    monkeypatch.setattr(HandlerRun, "_return", acknowledged)
    caught(handled, as_it_is, saying="neither handled nor there")


def test_a_run_that_acknowledges_outside_the_transaction_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    async def outside(self: TransactionRun, batch: Sequence[Message]) -> None:
        async with await self._begin() as txn:
            await self._handler(batch, txn)
        for message in batch:
            await self._consumer.acknowledge(message)

    monkeypatch.setattr(TransactionRun, "_one", outside)
    caught(in_transactions, as_it_is, saying="not once each", settings=SETTINGS)
