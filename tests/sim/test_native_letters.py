"""Refusals, retries and dead letters of the native client through crashes, cuts and cancellation at any await.

Every message ends acknowledged by the application or in the dead letter topic, and none is dead before its count.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest

from magnetar.app.node import Broker
from magnetar.client.aio.client import Client
from magnetar.client.aio.consumers.consumer import Consumer
from magnetar.client.aio.consumers.original import Original
from magnetar.client.errors import ClientError
from magnetar.client.machines.consumption import Consumption
from magnetar.client.machines.message import Message
from magnetar.client.machines.message_id import MessageId
from magnetar.client.machines.redelivery.dead_letter_policy import ConsumerDeadLetterPolicy
from magnetar.protocol.commands import InitialPosition, SubType
from magnetar.testing.broker import HOST, PORT
from magnetar.testing.simloop import SimClock
from tests.sim.world import T, World, caught, run_seeds

S = "sub"
TOTAL = 30
ATTEMPTS = 2
DLQ = f"{T}-{S}-DLQ"
POLICY = ConsumerDeadLetterPolicy(ATTEMPTS, initial_subscription_name="review")


def new_client(world: World) -> Client:
    url = f"pulsar://{HOST}:{PORT}"
    return Client(url, operation_timeout_seconds=20, clock=SimClock(world.loop), rng=world.rng)


async def trouble(world: World) -> None:
    for _ in range(3):
        await asyncio.sleep(world.rng.uniform(0.1, 2.0))
        if world.rng.random() < 0.5:
            await world.crash()
        else:
            for link in world.network.links:
                if world.rng.random() < 0.6:
                    link.cut()


async def handle(world: World, consumer: Consumer, message: Message, acknowledged: set[int]) -> None:
    """Do something with a message, and perhaps stop waiting for it."""
    rng, number = world.rng, int(message.data())
    if number % 3 == 0:
        acknowledged.add(number)
        call = consumer.acknowledge(message)
    elif rng.random() < 0.3:
        return  # nothing is said; its time runs out
    elif rng.random() < 0.5:
        call = consumer.reconsume_later(message, rng.choice((0, 200)))
    else:
        call = consumer.negative_acknowledge(message, rng.choice((None, 100)))
    task = asyncio.ensure_future(call)
    await asyncio.wait([task], timeout=rng.choice((0.0, 0.003, 30.0)))
    task.cancel()
    await asyncio.wait([task])
    if not task.cancelled() and (error := task.exception()) is not None and not isinstance(error, ClientError):
        raise error


async def in_the_end(world: World) -> None:
    """Those divisible by three are acknowledged when they are seen; all others go to the dead letter topic."""
    await world.boot()
    acknowledged: set[int] = set()
    seen: Counter[int] = Counter()
    async with new_client(world) as client:
        consumer = await client.subscribe(
            T, S, world.rng.choice((SubType.Shared, SubType.Key_Shared)), initial_position=InitialPosition.Earliest,
            unacked_messages_timeout_ms=1_000, ack_timeout_tick_ms=100, negative_ack_redelivery_delay_ms=300,
            retry_enable=True, dead_letter_policy=POLICY,
            batch_index_ack_enabled=world.rng.random() < 0.5, receiver_queue_size=world.rng.choice((1, 5, 100)),
        )  # fmt: skip
        async with await client.create_producer(
            T, batching_enabled=world.rng.random() < 0.6, batching_max_messages=4, send_timeout_millis=0
        ) as producer:
            for number in range(TOTAL):
                _ = producer.send_nowait(producer.message(b"%d" % number, partition_key=f"k{number % 4}"))
        troubles = world.loop.create_task(trouble(world))
        quiet = 0
        while quiet < 3:
            try:
                message = await consumer.receive(20_000)
            except ClientError:
                quiet += 1
                continue
            quiet = 0
            seen[int(message.data())] += 1
            await handle(world, consumer, message, acknowledged)
        await troubles
        dead = await all_of(client)
    missing = set(range(TOTAL)) - acknowledged - {int(one.data()) for one in dead}
    assert not missing, f"neither acknowledged nor dead: {sorted(missing)}"
    early = {int(one.data()) for one in dead if not _enough(one)}
    assert not early, f"dead before their count: {sorted(early)}"
    world.check_tasks()


def _enough(dead: Message) -> bool:
    found = dead.properties()
    return int(found.get("RECONSUMETIMES", 0)) > ATTEMPTS or int(found["DEAD_LETTER_DELIVERIES"]) > ATTEMPTS


async def all_of(client: Client) -> list[Message]:
    reader = await client.create_reader(DLQ, MessageId.earliest)
    found = []
    while await reader.has_message_available():
        found.append(await reader.read_next(5_000))
    return found


def test_in_the_end() -> None:
    run_seeds(in_the_end, 6)


def as_it_is(_: Broker) -> None:
    """What is wrong in the next simulations is the client."""


def test_a_client_that_acknowledges_before_the_copy_is_stored_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = Original.copied

    async def hasty(self: Original, posting: object) -> None:
        self._acknowledge(self.source, self.message)
        await whole(self, posting)  # type: ignore[arg-type]  # it is handed on

    monkeypatch.setattr(Original, "copied", hasty)
    caught(in_the_end, as_it_is, saying="neither acknowledged nor dead")


def test_a_client_that_gives_up_too_early_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = Consumption.__init__

    def impatient(self: Consumption, *given: Any, **named: Any) -> None:
        whole(self, *given, **named)
        if self.redeliveries.last is not None:
            self._redelivered_max = self.redeliveries.last.max_redeliver_count = ATTEMPTS - 1

    monkeypatch.setattr(Consumption, "__init__", impatient)
    caught(in_the_end, as_it_is, saying="dead before their count")
