"""What stands in a topic at the end of a simulation, read as clients read it."""

from __future__ import annotations

import asyncio

from magnetar.protocol import commands as c
from magnetar.testing.broker import HOST, PORT
from magnetar.testing.rawclient import RawClient, RawClientError, RawConsumer, payload_of
from tests.sim.world import World

_KEEPER = "keeper"


async def _keeper(topic: str) -> RawConsumer:
    while True:
        try:
            client = await RawClient.open(HOST, PORT)
            await client.connect()
            return await client.subscribe(topic, _KEEPER, initial_position=c.InitialPosition.Earliest)
        except (ConnectionError, RawClientError, TimeoutError):  # perhaps a failing write was left over
            await asyncio.sleep(0.5)


async def keep(topic: str) -> None:
    """Make a subscription that acknowledges nothing, so that nothing is trimmed from now on."""
    consumer = await _keeper(topic)
    await consumer.client.close()


async def contents(world: World, topic: str) -> list[str]:
    """The payload of every entry, in order; call :func:`keep` at the beginning."""
    consumer = await _keeper(topic)
    consumer.flow(100_000)
    end = world.machine.broker.service.topics[topic].log.end
    return [payload_of((await consumer.receive()).entry).decode() for _ in range(end)]
