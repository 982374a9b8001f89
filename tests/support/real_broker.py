"""A whole broker in this process: real store, real sockets, REST over HTTP; for tests."""

from __future__ import annotations

import asyncio
import json
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from magnetar.app.node import Node
from magnetar.config.settings import Settings
from magnetar.offload.object_store import DirectoryObjectStore
from magnetar.testing.rawclient import RawClient

HOST = "127.0.0.1"
TOPIC = "/admin/v2/persistent/public/default"


class RealBroker:
    """A running node, reached by the wire protocol and over REST."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self._clients: list[RawClient] = []

    async def client(self, **said: Any) -> RawClient:
        """A connection that has said CONNECT, with more of its fields; closed with the broker at the latest."""
        client = await RawClient.open(HOST, self.node.port)
        self._clients.append(client)
        await client.connect(**said)
        return client

    async def part(self) -> None:
        """Close all clients."""
        for client in self._clients:
            await client.close()

    async def ask(self, method: str, path: str, body: object = None) -> tuple[int, Any]:
        """Make a REST call; return its status and its JSON or text."""
        return await asyncio.to_thread(self._ask, method, path, body)

    def _ask(self, method: str, path: str, body: object) -> tuple[int, Any]:
        data = None if body is None else json.dumps(body).encode()
        url = self.node.broker.service.web_service_url + path
        request = urllib.request.Request(url, data, {"content-type": "application/json"}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=20) as answered:
                return answered.status, _read(answered.read())
        except urllib.error.HTTPError as refused:
            return refused.code, _read(refused.read())

    async def stats(self, topic: str, options: str = "") -> Any:
        """Statistics of a topic in public/default."""
        status, found = await self.ask("GET", f"{TOPIC}/{topic}/stats{options}")
        assert status == 200, found
        return found


def _read(data: bytes) -> Any:
    try:
        return json.loads(data)
    except ValueError:
        return data.decode()


@asynccontextmanager
async def real_broker(data: Path, **settings: Any) -> AsyncIterator[RealBroker]:
    """Start a broker on free ports, and stop it at the end."""
    wanted = {"bindAddress": HOST, "brokerServicePort": 0, "webServicePort": 0, **settings}
    if (place := str(wanted.get("offloadUrl", ""))).startswith("file:///"):
        DirectoryObjectStore(place, urlsplit(place).path).require()  # as the command does before it starts a broker
    node = Node(data, Settings(**wanted))
    await node.start()
    try:
        await node.complete()
        broker = RealBroker(node)
        try:
            yield broker
        finally:
            await broker.part()
    finally:
        await node.stop()


Scenario = Callable[[RealBroker], Awaitable[Any]]


def run_on_broker(data: Path, scenario: Scenario, **settings: Any) -> None:
    """Run ``scenario`` on a broker that is started on ``data``, which may hold the data of an earlier one."""

    async def run() -> None:
        async with real_broker(data, **settings) as broker:
            await scenario(broker)

    asyncio.run(run())


async def message_over_rest(broker: RealBroker, path: str) -> tuple[int, dict[str, str], bytes]:
    """Ask for a stored message of topic ``t``: status, Pulsar's headers without their prefix, and the bytes."""

    def ask() -> tuple[int, dict[str, str], bytes]:
        try:
            with urllib.request.urlopen(
                broker.node.broker.service.web_service_url + TOPIC + "/t" + path, timeout=20
            ) as got:
                found = {key.lower(): value for key, value in got.headers.items()}
                own = {key[9:]: value for key, value in found.items() if key.startswith("x-pulsar-")}
                return got.status, own, got.read()
        except urllib.error.HTTPError as refused:
            return refused.code, {}, refused.read()

    return await asyncio.to_thread(ask)
