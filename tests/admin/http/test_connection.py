"""HTTP connections that are ended: half a request, a slow one, an answer that is not read."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Awaitable, Callable

import pytest
import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send

from magnetar.admin.http import connection
from magnetar.admin.http import server as http_server
from magnetar.admin.http.connection import HttpConnection
from magnetar.admin.http.server import AdminServer
from magnetar.runtime.connections.acceptor import ConnectionLimit, Entrance, listen
from magnetar.runtime.connections.descriptors import Descriptors

LARGE = 8 << 20


async def application(scope: Scope, receive: Receive, send: Send) -> None:
    more = True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            return
        more = message.get("more_body", False)
    await send({"type": "http.response.start", "status": 200, "headers": []})
    for _ in range(LARGE >> 16 if scope["path"] == "/large" else 1):
        await send({"type": "http.response.body", "body": b"x" * 65_536, "more_body": True})
    await send({"type": "http.response.body", "body": b""})


Scenario = Callable[[int, ConnectionLimit], Awaitable[None]]


def served(scenario: Scenario, most: int = 0, application: ASGIApp = application) -> None:
    async def main() -> None:
        listening = listen("127.0.0.1", 0, 128)
        connection_limit = ConnectionLimit(most, 0, Descriptors(65_536, lambda: 30))
        server = AdminServer(application, [Entrance("http", listening)], connection_limit)
        server.start()
        try:
            await asyncio.wait_for(scenario(listening.getsockname()[1], connection_limit), 30)
        finally:
            await server.close()

    asyncio.run(main())


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"GET / HTT",
        b"GET / HTTP/1.1\r\nhost: a\r\n",
        b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 9\r\n\r\nabc",
    ],
)
def test_a_connection_without_a_whole_request_is_ended(sent: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "REQUEST_SECONDS", 0.2)

    async def scenario(port: int, connection_limit: ConnectionLimit) -> None:
        ends = [await asyncio.open_connection("127.0.0.1", port) for _ in range(20)]
        for _, writer in ends:
            writer.write(sent)
        for reader, writer in ends:
            with pytest.raises(ConnectionResetError):
                assert await reader.read() == b""
                raise ConnectionResetError  # closing without a reset counts as well
            writer.close()
        assert connection_limit.count == 0

    served(scenario)


def test_a_slow_request_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "REQUEST_SECONDS", 0.3)

    async def scenario(port: int, connection_limit: ConnectionLimit) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET / HTTP/1.1\r\nhost: a\r\nx: ")
        ended = asyncio.get_running_loop().create_task(reader.read())
        while not ended.done():
            writer.write(b"y")
            await asyncio.sleep(0.02)
        await asyncio.gather(ended, return_exceptions=True)
        writer.close()
        assert connection_limit.count == 0

    served(scenario)


def test_a_connection_that_does_not_read_its_answer_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "REQUEST_SECONDS", 0.3)

    async def scenario(port: int, connection_limit: ConnectionLimit) -> None:
        _, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 10)
        writer.write(b"GET /large HTTP/1.1\r\nhost: a\r\n\r\n")
        while not connection_limit.count:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        while connection_limit.count:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        writer.close()

    served(scenario)


def test_a_whole_request_and_the_next_one_are_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "REQUEST_SECONDS", 5.0)

    async def scenario(port: int, connection_limit: ConnectionLimit) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 20)
        for _ in range(3):
            writer.write(b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 3\r\n\r\nabc")
            assert b"200" in await reader.readuntil(b"\r\n")
            await reader.readuntil(b"\r\n0\r\n\r\n")
        assert connection_limit.count == 1
        writer.close()

    served(scenario)


async def deleted(scope: Scope, receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 204, "headers": []})
    await send({"type": "http.response.body", "body": b""})


DELETE = b"DELETE /a HTTP/1.1\r\nhost: a\r\nconnection: keep-alive\r\n\r\n"


@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize("behind", [b"{}", b"\r\n"])
def test_a_body_without_a_length_ends_the_connection_after_its_answer(behind: bytes, together: bool) -> None:
    """Node's HTTP client sends a DELETE so, and would put its next request behind the body."""

    async def scenario(port: int, connection_limit: ConnectionLimit) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(DELETE + behind * together)
        head = await reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 204")
        assert (b"connection: close" in head) is together
        if not together:
            writer.write(behind)
            assert (await reader.readuntil(b"\r\n")).startswith(b"HTTP/1.1 400")
        await reader.read()
        writer.close()

    served(scenario, application=deleted)


def test_what_is_no_request_is_refused_before_its_line_is_whole() -> None:
    async def scenario(port: int, connection_limit: ConnectionLimit) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"{")
        assert (await reader.read()).startswith(b"HTTP/1.1 400")
        writer.close()

    served(scenario)


def test_a_connection_above_the_limit_is_refused_with_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(port: int, connection_limit: ConnectionLimit) -> None:
        _, first = await asyncio.open_connection("127.0.0.1", port)
        while not connection_limit.count:  # noqa: ASYNC110
            await asyncio.sleep(0.001)
        reader, second = await asyncio.open_connection("127.0.0.1", port)
        answer = await reader.read()
        assert answer.startswith(b"HTTP/1.1 503 ")
        assert b'"Reached the maximum number of connections: 1"' in answer
        first.close()
        second.close()

    served(scenario, most=1)


def test_a_lost_connection_is_freed_without_the_collector(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[weakref.ref[HttpConnection]] = []
    real = HttpConnection.connection_made

    def noted(self: HttpConnection, transport: asyncio.Transport) -> None:
        made.append(weakref.ref(self))
        real(self, transport)

    monkeypatch.setattr(HttpConnection, "connection_made", noted)

    async def scenario(port: int, connection_limit: ConnectionLimit) -> None:
        for sent in (
            b"",
            b"GET / HTTP/1.1\r\nhost: a\r\n\r\n",
            b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 99\r\n\r\nabc",
        ):
            reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 20)
            writer.write(sent)
            if sent.startswith(b"GET"):
                await reader.readuntil(b"\r\n0\r\n\r\n")
            writer.close()
            await writer.wait_closed()
        while connection_limit.count or len(made) < 3:  # noqa: ASYNC110
            await asyncio.sleep(0.001)
        for _ in range(20):
            await asyncio.sleep(0)
        assert [one() for one in made] == [None] * 3

    gc.collect()
    gc.disable()
    try:
        served(scenario)
    finally:
        gc.enable()


def test_a_start_and_a_stop_without_clients_wait_for_no_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else each stop of a broker takes two tenths of a second, and a broker that nobody asks wakes ten times in one."""
    slept, dates = [], []
    sleep, tick = asyncio.sleep, uvicorn.Server.on_tick

    async def recorded(delay: float, result: object = None) -> object:
        slept.append(delay)
        return await sleep(delay, result)

    async def ticked(server: uvicorn.Server, counter: int) -> bool:
        dates.append(counter)
        return await tick(server, counter)

    monkeypatch.setattr(asyncio, "sleep", recorded)
    monkeypatch.setattr(uvicorn.Server, "on_tick", ticked)
    monkeypatch.setattr(http_server, "_DATE_SECONDS", 0.01)

    async def scenario(port: int, connection_limit: ConnectionLimit) -> None:
        while len(dates) < 3:
            await sleep(0.001)

    served(scenario)
    assert [delay for delay in slept if delay] == []
    assert set(dates) == {0}, "each renews the date"


@pytest.mark.parametrize(
    ("status", "body", "line"),
    [
        (404, b'{"reason": "Namespace not found"}', b"HTTP/1.1 404 Namespace not found"),
        (412, '{"reason": "a\\r\\nset-cookie: b \u00e4"}'.encode(), b"HTTP/1.1 412 a  set-cookie: b"),
        (409, b'{"reason": "' + b"x" * 900 + b'"}', b"HTTP/1.1 409 " + b"x" * 200),
        (404, b'{"reason": ""}', b"HTTP/1.1 404 Not Found"),
        (401, b'{"reason": "Authentication required"}', b"HTTP/1.1 401 Unauthorized"),
        (401, b'{"reason": "Need to authenticate"}', b"HTTP/1.1 401 Need to authenticate"),
        (404, b"no JSON", b"HTTP/1.1 404 Not Found"),
        (404, b"[1]", b"HTTP/1.1 404 Not Found"),
        (404, b"", b"HTTP/1.1 404 Not Found"),
        (200, b'{"reason": "all is well"}', b"HTTP/1.1 200 OK"),
    ],
)
def test_a_refusal_names_its_reason_in_the_status_line(status: int, body: bytes, line: bytes) -> None:
    """As in Apache Pulsar: Java clients that look topics up over HTTP show no other words of it."""

    async def refusing(scope: Scope, receive: Receive, send: Send) -> None:
        headers = [(b"content-length", str(len(body)).encode())]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    async def scenario(port: int, connection_limit: ConnectionLimit) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for _ in range(2):
            writer.write(b"GET /a HTTP/1.1\r\nhost: a\r\n\r\n")
            head = await reader.readuntil(b"\r\n\r\n")
            assert head.split(b"\r\n")[0] == line
            assert b"set-cookie" not in b"".join(head.split(b"\r\n")[1:])
            assert await reader.readexactly(len(body)) == body
        writer.write(b"HEAD /a HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n")
        assert (await reader.read()).startswith(b"HTTP/1.1 %d " % status)
        writer.close()

    served(scenario, application=refusing)
