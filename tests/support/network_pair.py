"""Two protocols that are connected over the simulated network, and what each of them saw."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from typing_extensions import override

from magnetar.testing.network import Link, Network
from magnetar.testing.simloop import SimLoop, run
from magnetar.testing.transport import Weather

T = TypeVar("T")


class Recorder(asyncio.Protocol):
    """Writes down everything that happens to it."""

    def __init__(self) -> None:
        self.transport: asyncio.Transport
        self.chunks: list[bytes] = []
        self.events: list[str] = []
        self.error: Exception | None = None
        self.resumed_at = -1
        self.lost = asyncio.get_running_loop().create_future()

    @property
    def received(self) -> bytes:
        return b"".join(self.chunks)

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.events.append("made")

    @override
    def data_received(self, data: bytes) -> None:
        assert data
        self.chunks.append(data)

    @override
    def eof_received(self) -> bool | None:
        self.events.append("eof")
        return None

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        self.events.append("lost")
        self.error = exc
        self.lost.set_result(None)

    @override
    def pause_writing(self) -> None:
        self.events.append("pause")

    @override
    def resume_writing(self) -> None:
        self.events.append("resume")
        self.resumed_at = self.transport.get_write_buffer_size()


class Pair:
    """A client and a server joined by one link."""

    def __init__(self, network: Network, client: Recorder, server: Recorder) -> None:
        self.network = network
        self.client = client
        self.server = server

    @property
    def link(self) -> Link:
        return self.network.links[0]


async def _pair(weather: Weather | None = None) -> Pair:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, SimLoop)
    network = Network(loop, weather)
    accepted: list[Recorder] = []

    def accept() -> Recorder:
        accepted.append(Recorder())
        return accepted[-1]

    server = await loop.create_server(accept, "broker", 6650)
    assert server.is_serving()
    _, client = await loop.create_connection(Recorder, "broker", 6650)
    await asyncio.sleep(0.1)
    assert isinstance(client, Recorder)
    return Pair(network, client, accepted[0])


def over(seeds: int, scenario: Callable[[Pair], Awaitable[T]], weather: Callable[[], Weather] = Weather) -> list[T]:
    """The scenario's result for each seed."""

    async def main() -> T:
        return await scenario(await _pair(weather()))

    return [run(seed, main()) for seed in range(seeds)]
