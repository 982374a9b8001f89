"""Talking to a simulated broker over its wire: a client that is connected, what statistics say, one run."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from magnetar.admin.local_broker.broker import local_ports
from magnetar.admin.ports import StatsOptions
from magnetar.config.settings import Settings
from magnetar.model.names import TopicName
from magnetar.testing.broker import HOST, PORT
from magnetar.testing.rawclient import RawClient
from tests.sim.world import T, World, run_seed

Talk = Callable[[World], Coroutine[Any, Any, None]]


async def connected(*, answer_pings: bool = True, version: str = "raw") -> RawClient:
    client = await RawClient.open(HOST, PORT, answer_pings=answer_pings)
    await client.connect(version=version)
    return client


async def stats(world: World, topic: str = T) -> Any:
    broker = world.machine.broker
    ports = local_ports(broker.service, broker.rates, broker.connections)
    return await ports.statistics.topic_stats(TopicName.parse(topic), StatsOptions())


def talk(simulation: Talk, settings: Settings | None = None) -> None:
    async def booted(world: World) -> None:
        await world.boot()
        await simulation(world)

    run_seed(booted, 1, settings=settings)
