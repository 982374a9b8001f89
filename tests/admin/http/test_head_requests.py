"""HEAD is a GET without the body, and the connection serves on: over sockets, for answers of every kind."""

from __future__ import annotations

import asyncio
import http.client
from collections.abc import AsyncIterator
from pathlib import Path

from starlette.types import Message, Receive, Scope, Send

from magnetar.admin.http.bodies import HeadRequests, Streamed
from tests.support.real_broker import RealBroker, run_on_broker

PATHS = (
    "/admin/v2/brokers/health", "/admin/v2/brokers/ready", "/admin/v2/tenants", "/admin/v2/persistent/public/default",
    "/metrics", "/metrics/", "/openapi.json", "/docs", "/status.html", "/admin/v2/tenants/nobody", "/admin/v2/nothing",
    "/admin/v2/namespaces/public/default/unload", "/admin/v3/functions/public/default/f",
    "/lookup/v2/topic/persistent/public/default/t", "/ws/v2/producer/persistent/public/default/t",
)  # fmt: skip
_CHANGING = ("date", "content-length")
"""Figures change between two requests for metrics."""


def test_head_is_get_without_a_body(tmp_path: Path) -> None:
    async def scenario(broker: RealBroker) -> None:
        await (await (await broker.client()).producer("persistent://public/default/t")).publish(b"m")
        assert broker.node.rest is not None
        port = int(broker.node.broker.service.web_service_url.rpartition(":")[2])
        found = await asyncio.to_thread(asked, port)
        assert found["/admin/v2/brokers/health"] == 200
        assert found["/admin/v2/nothing"] == 404
        assert found["/admin/v2/namespaces/public/default/unload"] == 405

    run_on_broker(tmp_path, scenario)


def asked(port: int) -> dict[str, int]:
    """All on one connection: what a HEAD left behind would be read as the beginning of the next answer."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.connect()
    own = connection.sock
    statuses = {}
    for path in PATHS:
        seen = []
        for method in ("HEAD", "GET"):
            connection.request(method, path)
            answered = connection.getresponse()
            body = answered.read()
            assert (method, bool(body)) in (("HEAD", False), ("GET", True), ("GET", answered.status == 204)), path
            headers = [(name.lower(), value) for name, value in answered.getheaders()]
            seen.append((answered.status, sorted(one for one in headers if one[0] not in _CHANGING)))
            assert connection.sock is own, path
        assert seen[0] == seen[1], path
        statuses[path] = seen[0][0]
    connection.close()
    return statuses


def test_an_answer_that_is_streamed_is_not_made_for_its_head() -> None:
    made: list[int] = []

    async def scenario() -> list[Message]:
        async def pieces() -> AsyncIterator[str]:
            for number in range(1000):
                made.append(number)
                yield "x"

        sent: list[Message] = []

        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            await Streamed(pieces(), "text/plain")(scope, receive, send)

        async def receive() -> Message:
            never: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
            return await never

        async def send(message: Message) -> None:
            sent.append(message)

        await HeadRequests(app)({"type": "http", "method": "HEAD"}, receive, send)
        return sent

    sent = asyncio.run(scenario())
    assert len(made) <= 1
    assert [one.get("body") for one in sent] == [None, b""]
