"""Somebody who is refused while still sending reads the answer: no reset takes it away, and nothing waits for ever."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from typing_extensions import override

from magnetar.admin.http import connection
from magnetar.runtime.connections import lingering_close
from tests.support.real_broker import HOST, RealBroker, real_broker

TENANT = "/admin/v2/tenants/t"
SOCKET = "/ws/v2/producer/persistent/public/default/t"
UPGRADE = "upgrade: websocket\r\nconnection: upgrade\r\nsec-websocket-version: 13\r\n"
KEY = "sec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"


def with_broker(tmp_path: Path, scenario: Callable[[RealBroker], Awaitable[None]]) -> None:
    async def run() -> None:
        async with real_broker(tmp_path / "data") as broker:
            await broker.node.complete()
            await asyncio.wait_for(scenario(broker), 60)

    asyncio.run(run())


def port_of(broker: RealBroker) -> int:
    return int(broker.node.broker.service.web_service_url.rpartition(":")[2])


def head(method: str, path: str, *lines: str) -> bytes:
    return "\r\n".join([f"{method} {path} HTTP/1.1", "host: 127.0.0.1", *lines, "", ""]).encode()


def sent_first(port: int, request: bytes, behind: int) -> bytes:
    """The answer, which is read only when all was sent."""
    with socket.create_connection((HOST, port), 20) as wire:
        wire.sendall(request + bytes(min(behind, 65_536)))
        for _ in range(1, behind >> 16):
            wire.sendall(bytes(65_536))
        answer = b""
        while chunk := wire.recv(65_536):
            answer += chunk
            if b"\r\n\r\n" in answer:
                whole, _, body = answer.partition(b"\r\n\r\n")
                size = next(int(line[15:]) for line in whole.lower().split(b"\r\n") if b"content-length" in line)
                if len(body) >= size:
                    return answer
    return answer


LONG = str(4 << 20)


@pytest.mark.parametrize(
    ("request_head", "status"),
    [
        (head("PUT", TENANT, "content-length: " + LONG, "content-type: application/json"), 413),
        (head("PUT", TENANT, "content-length: " + LONG, "content-type: application/json", "connection: close"), 413),
        (head("POST", "/nowhere", "content-length: " + LONG, "connection: close"), 404),
        (head("POST", "/nowhere", "content-length: " + LONG), 404),
        (head("GET", TENANT, *(f"a: {i}" for i in range(1200)))[:-2], 431),
        (head("GET", TENANT, "a: " + "b" * 70_000)[:-4], 431),
        (b"GET nothing at all\r\n\r\n", 400),
        (head("GET", SOCKET, UPGRADE.rstrip(), "sec-websocket-key: x"), 400),
        (head("GET", "/ws/v2/nowhere", UPGRADE.rstrip(), KEY.rstrip()), 404),
    ],
    ids=["413", "413 and close", "404 and close", "404", "431 lines", "431 bytes", "400", "socket 400", "socket 404"],
)
def test_the_answer_is_read_by_who_sends_first(tmp_path: Path, request_head: bytes, status: int) -> None:
    async def scenario(broker: RealBroker) -> None:
        for _ in range(5):
            answer = await asyncio.to_thread(sent_first, port_of(broker), request_head, 4 << 20)
            assert answer.startswith(b"HTTP/1.1 %d" % status), answer[:300]

    with_broker(tmp_path, scenario)


@pytest.mark.parametrize(
    ("request_head", "status"),
    [
        (head("POST", "/nowhere", "content-length: 268435456"), 404),
        (head("POST", "/nowhere", "transfer-encoding: chunked"), 404),
        (head("DELETE", "/admin/v2/brokers/health", "content-length: 268435456"), 405),
        (head("PUT", TENANT, "content-length: 268435456", "content-type: application/json"), 413),
    ],
    ids=["404", "404 chunked", "405", "413"],
)
def test_nothing_of_a_body_that_nobody_wants_is_waited_for(tmp_path: Path, request_head: bytes, status: int) -> None:
    async def scenario(broker: RealBroker) -> None:
        answer = await asyncio.to_thread(sent_first, port_of(broker), request_head, 0)
        assert answer.startswith(b"HTTP/1.1 %d" % status), answer[:300]
        if status == 413:
            assert "1048576 bytes" in json.loads(answer.partition(b"\r\n\r\n")[2])["reason"]

    with_broker(tmp_path, scenario)


@pytest.mark.parametrize("closes", [True, False])
@pytest.mark.parametrize("bound", ["bytes", "seconds"])
def test_the_wait_has_an_end(tmp_path: Path, bound: str, closes: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lingering_close, "LINGER_BYTES", 1 << 16 if bound == "bytes" else 1 << 40)
    monkeypatch.setattr(lingering_close, "LINGER_SECONDS", 0.3 if bound == "seconds" else 1e6)
    monkeypatch.setattr(lingering_close, "LINGER_SECONDS_MAX", 0.6)

    async def scenario(broker: RealBroker) -> None:
        reader, writer = await asyncio.open_connection(HOST, port_of(broker))
        writer.write(head("POST", "/nowhere", "content-length: 268435456", *(["connection: close"] if closes else [])))
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 404")
        if bound == "bytes":
            with pytest.raises(ConnectionError):
                while True:
                    writer.write(bytes(65_536))
                    await writer.drain()
        else:
            try:
                while not reader.at_eof():
                    await reader.read(65_536)
                while True:
                    writer.write(b"x")
                    await writer.drain()
                    await asyncio.sleep(0.01)
            except ConnectionError:
                pass
        writer.close()

    with_broker(tmp_path, scenario)


def test_a_connection_whose_body_came_after_its_answer_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lingering_close, "LINGER_SECONDS", 0.3)

    async def scenario(broker: RealBroker) -> None:
        reader, writer = await asyncio.open_connection(HOST, port_of(broker))
        writer.write(head("POST", "/nowhere", "content-length: 10"))
        answered = await reader.readuntil(b"\r\n\r\n")
        await reader.readexactly(int(answered.lower().partition(b"content-length: ")[2].partition(b"\r")[0]))
        writer.write(b"0123456789")
        await asyncio.sleep(0.6)
        writer.write(head("GET", "/admin/v2/clusters"))
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200")
        writer.close()

    with_broker(tmp_path, scenario)


def test_what_comes_of_a_body_after_its_answer_is_told_to_who_bounds_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So a slow upload is not cut while it comes, as the answer is read only behind it."""
    told: asyncio.Queue[int] = asyncio.Queue()

    class Told(lingering_close.Linger):
        @override
        def dropped(self, size: int) -> None:
            told.put_nowait(size)
            super().dropped(size)

    monkeypatch.setattr(connection, "Linger", Told)

    async def scenario(broker: RealBroker) -> None:
        reader, writer = await asyncio.open_connection(HOST, port_of(broker))
        writer.write(head("POST", "/nowhere", "content-length: 20"))
        answered = await reader.readuntil(b"\r\n\r\n")
        await reader.readexactly(int(answered.lower().partition(b"content-length: ")[2].partition(b"\r")[0]))
        for _ in range(19):
            writer.write(b"x")
            assert await told.get() == 1
        writer.write(b"x" + head("GET", "/admin/v2/clusters"))
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200")
        writer.close()

    with_broker(tmp_path, scenario)
