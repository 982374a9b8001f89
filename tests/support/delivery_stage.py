"""A broker and a client in virtual time, for what comes again, later or not at all."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from magnetar.client.aio.client import Client
from magnetar.client.aio.consumers.consumer import Consumer
from magnetar.client.errors import ClientTimeoutError
from magnetar.client.machines.message import Message
from magnetar.client.machines.message_id import MessageId
from magnetar.config.settings import Settings
from magnetar.model.names import TopicName
from magnetar.protocol.commands import InitialPosition, SubType
from magnetar.testing.broker import HOST, PORT
from magnetar.testing.simloop import SimClock
from tests.sim.world import T, World, run_seed

S = "sub"
DLQ = f"{T}-{S}-DLQ"
RETRY = f"{T}-{S}-RETRY"
Story = Callable[["Stage"], Coroutine[Any, Any, None]]


class Stage:
    """A broker and a client in virtual time."""

    def __init__(self, world: World, client: Client) -> None:
        self.world = world
        self.client = client

    @property
    def now(self) -> float:
        return self.world.loop.time()

    async def subscribe(self, topic: str | list[str] = T, **options: Any) -> Consumer:
        known: dict[str, Any] = {"consumer_type": SubType.Shared, "initial_position": InitialPosition.Earliest}
        return await self.client.subscribe(topic, S, **(known | options))

    async def send(self, *values: bytes, topic: str = T, batch: bool = False, **more: Any) -> None:
        async with await self.client.create_producer(
            topic, batching_enabled=batch, batching_max_publish_delay_ms=1_000
        ) as producer:
            for value in values:
                _ = producer.send_nowait(producer.message(value, **more))

    async def all_of(self, topic: str) -> list[Message]:
        """What stands in a topic."""
        reader = await self.client.create_reader(topic, MessageId.earliest)
        found = []
        while await reader.has_message_available():
            found.append(await reader.read_next())
        await reader.close()
        return found

    def backlog(self, topic: str = T, subscription: str = S) -> int:
        return self.world.backlog(topic, subscription)

    def stands(self, topic: str) -> int:
        """How many entries a topic has."""
        found = self.world.machine.broker.service.topics.get(topic)
        return 0 if found is None else found.msg_in

    async def partitioned(self, topic: str, count: int) -> None:
        resources = self.world.machine.broker.resources
        await resources.partitioned.create(TopicName.parse(topic), count, to_make=True)


def client_in(world: World, **options: Any) -> Client:
    """A client that has the time of the simulation."""
    url = f"pulsar://{HOST}:{PORT}"
    return Client(url, operation_timeout_seconds=20, clock=SimClock(world.loop), rng=world.rng, **options)


def play(story: Story) -> None:
    async def run(world: World) -> None:
        await world.boot()
        async with client_in(world) as client:
            await story(Stage(world, client))

    run_seed(run, 0, settings=Settings(acknowledgmentAtBatchIndexLevelEnabled=True, maxMessageSize=50_000))


async def nothing(consumer: Consumer, seconds: float) -> None:
    with pytest.raises(ClientTimeoutError):
        await consumer.receive(int(seconds * 1000))
