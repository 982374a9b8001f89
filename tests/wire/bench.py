"""A broker in virtual time and raw connections to it: what the wire tests that speak frames run on."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from magnetar.config.settings import Settings
from magnetar.testing.broker import HOST, PORT
from magnetar.testing.rawclient import RawClient
from tests.sim.world import World, run_seed


class Wires:
    """Opens connections; ``now`` is the virtual time in seconds."""

    def __init__(self, world: World) -> None:
        self.world = world

    @property
    def now(self) -> float:
        return self.world.loop.time()

    async def silent(self) -> RawClient:
        """A connection that has sent nothing yet."""
        return await RawClient.open(HOST, PORT)

    async def open(self, *, answer_pings: bool = True) -> RawClient:
        """A connection after its handshake; one that does not answer PING looks dead to the broker."""
        client = await RawClient.open(HOST, PORT, answer_pings=answer_pings)
        await client.connect()
        return client


def on_broker(test: Callable[[Wires], Awaitable[None]], **settings: Any) -> None:
    """Run ``test`` against a broker that has just booted on an empty disk."""

    async def simulation(world: World) -> None:
        await world.boot()
        await test(Wires(world))

    run_seed(simulation, 1, settings=Settings(**settings))
