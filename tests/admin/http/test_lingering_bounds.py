"""What lingers is bounded: it counts as a connection, ends with the broker, and takes nothing away from anybody."""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from collections.abc import Awaitable, Callable
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from magnetar.runtime.connections import lingering_close
from tests.support.certificates import Authority
from tests.support.real_broker import HOST, RealBroker, real_broker
from tests.support.websocket_frames import CLOSE, ws_frame

TENANT = "/admin/v2/tenants/t"
UPGRADE = ("upgrade: websocket", "connection: upgrade", "sec-websocket-version: 13")
KEY = "sec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA=="
JSON = "content-type: application/json"


def with_broker(tmp_path: Path, scenario: Callable[[RealBroker], Awaitable[None]], **settings: Any) -> None:
    async def run() -> None:
        async with real_broker(tmp_path / "data", **settings) as broker:
            await broker.node.complete()
            await asyncio.wait_for(scenario(broker), 60)

    asyncio.run(run())


def port_of(url: str) -> int:
    return int(url.rpartition(":")[2])


def head(method: str, path: str, *lines: str) -> bytes:
    return "\r\n".join([f"{method} {path} HTTP/1.1", "host: 127.0.0.1", *lines, "", ""]).encode()


REFUSED = {
    "413": (head("PUT", TENANT, f"content-length: {4 << 20}", JSON), 413),
    "413 and close": (head("PUT", TENANT, f"content-length: {4 << 20}", JSON, "connection: close"), 413),
    "404 and close": (head("POST", "/nowhere", f"content-length: {4 << 20}", "connection: close"), 404),
    "404 chunked": (head("POST", "/nowhere", "transfer-encoding: chunked") + b"400000\r\n", 404),
    "431 lines": (head("GET", TENANT, *(f"a: {i}" for i in range(1200)))[:-2], 431),
    "431 bytes": (head("GET", TENANT, "a: " + "b" * 70_000)[:-4], 431),
    "400": (b"GET nothing at all\r\n\r\n", 400),
    "socket 400": (head("GET", "/ws/v2/producer/persistent/public/default/t", *UPGRADE, "sec-websocket-key: x"), 400),
    "socket 404": (head("GET", "/ws/v2/nowhere", *UPGRADE, KEY), 404),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_the_answer_is_read_over_tls(tmp_path: Path, kind: str) -> None:
    request, status = REFUSED[kind]
    authority = Authority(tmp_path / "authority")
    own = authority.issue("broker")
    context = ssl.create_default_context(cafile=authority.file)

    def sent_first(port: int) -> bytes:
        with (
            socket.create_connection((HOST, port), 20) as plain,
            context.wrap_socket(plain, server_hostname=HOST) as wire,
        ):
            wire.sendall(request)
            for _ in range(63):
                wire.sendall(bytes(65_536))
            answer = b""
            while b"\r\n\r\n" not in answer:
                chunk = wire.recv(65_536)
                if not chunk:
                    break
                answer += chunk
            return answer

    async def scenario(broker: RealBroker) -> None:
        port = port_of(broker.node.broker.service.web_service_url_tls)
        for _ in range(3):
            answer = await asyncio.to_thread(sent_first, port)
            assert answer.startswith(b"HTTP/1.1 %d" % status), answer[:300]

    with_broker(
        tmp_path,
        scenario,
        webServicePortTls=0,
        tlsCertificateFilePath=own.certificate_file,
        tlsKeyFilePath=own.key_file,
    )


SOCKET = head("GET", "/ws/v2/producer/persistent/public/default/t", *UPGRADE, KEY)
LINGERING = [kind for kind in REFUSED if kind not in ("413", "404 chunked")]


class Lingering:
    """Connections that are waited for, seen from within."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.begun: asyncio.Queue[None] = asyncio.Queue()
        real = lingering_close._Drain

        def drain(*args: Any) -> Any:
            self.begun.put_nowait(None)
            return real(*args)

        monkeypatch.setattr(lingering_close, "_Drain", drain)
        monkeypatch.setattr(lingering_close, "LINGER_SECONDS", 3.0)
        self.writers: list[asyncio.StreamWriter] = []

    async def refused(self, broker: RealBroker, kind: str) -> None:
        """One more of them."""
        reader, writer = await asyncio.open_connection(HOST, port_of(broker.node.broker.service.web_service_url))
        self.writers.append(writer)
        if kind in REFUSED:
            writer.write(REFUSED[kind][0] + bytes(400_000))
            assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 %d" % REFUSED[kind][1])
        else:
            writer.write(SOCKET)
            assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 101")
            writer.write((ws_frame(CLOSE, b"\x03\xe8") if kind == "socket closed" else b"\xff" * 20) + bytes(400_000))
        await self.begun.get()

    async def part(self) -> None:
        for writer in self.writers:
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()


@pytest.mark.parametrize("kind", [*LINGERING, "socket closed", "socket broken"])
def test_a_broker_stops_while_somebody_lingers(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    import_module("magnetar.client.aio.client")  # not in a thread, where pytest would rewrite its assertions
    lingering = Lingering(monkeypatch)

    async def run() -> None:
        async with real_broker(tmp_path / "data") as broker:
            await asyncio.wait_for(lingering.refused(broker, kind), 20)
        await lingering.part()

    with caplog.at_level(logging.ERROR):
        asyncio.run(run())
    assert not caplog.records, caplog.text


@pytest.mark.parametrize(("method", "path"), [("PUT", TENANT), ("POST", "/topics/persistent/public/default/t")])
def test_a_stop_refuses_a_request_whose_body_is_not_whole(
    tmp_path: Path, method: str, path: str, caplog: pytest.LogCaptureFixture
) -> None:
    """It was waited for until the stop had no time left, and then cancelled."""
    import_module("magnetar.client.aio.client")  # not in a thread, where pytest would rewrite its assertions

    async def run() -> bytes:
        async with real_broker(tmp_path / "data") as broker:
            port = port_of(broker.node.broker.service.web_service_url)
            await asyncio.wait_for(broker.node.complete(), 60)
            reader, writer = await asyncio.open_connection(HOST, port)
            expecting = head(method, path, "content-length: 100", JSON, "expect: 100-continue")
            writer.write(expecting + b'{"a')
            answer = await reader.readuntil(b"\r\n\r\n")
            assert answer.startswith(b"HTTP/1.1 100"), "the body is waited for"
        answer = await reader.readuntil(b"\r\n\r\n")
        writer.close()
        return answer

    with caplog.at_level(logging.ERROR):
        answer = asyncio.run(run())
    assert answer.startswith(b"HTTP/1.1 503"), answer
    assert not caplog.records, caplog.text


def test_those_who_linger_count_as_connections(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lingering = Lingering(monkeypatch)
    monkeypatch.setattr(lingering_close, "LINGER_SECONDS", 30.0)

    async def scenario(broker: RealBroker) -> None:
        assert broker.node.rest is not None
        counted, released = broker.node.rest.connection_limit, asyncio.Queue[str]()
        release = counted.release

        def left(host: str) -> None:
            release(host)
            released.put_nowait(host)

        monkeypatch.setattr(counted, "release", left)
        try:
            for _ in range(3):
                await lingering.refused(broker, "404 and close")
            assert counted.count == 3
            reader, one_too_many = await asyncio.open_connection(
                HOST, port_of(broker.node.broker.service.web_service_url)
            )
            lingering.writers.append(one_too_many)
            assert (await reader.read()).startswith(b"HTTP/1.1 503")
        finally:
            await lingering.part()
        while counted.count:  # who has left counts no more
            await released.get()

    with_broker(tmp_path, scenario, maxHttpServerConnections=3)


def test_a_request_behind_a_refused_one_is_answered(tmp_path: Path) -> None:
    """The refused body is passed over, and the connection goes on, also for somebody who has ended his side."""
    requests = head("PUT", TENANT, f"content-length: {2 << 20}", JSON) + bytes(2 << 20)
    requests += head("GET", "/admin/v2/clusters")

    def sent_first(port: int) -> bytes:
        with socket.create_connection((HOST, port), 20) as wire:
            wire.sendall(requests)
            answer = b""
            while answer.count(b"HTTP/1.1 ") < 2 and (chunk := wire.recv(65_536)):
                answer += chunk
            return answer

    async def scenario(broker: RealBroker) -> None:
        answer = await asyncio.to_thread(sent_first, port_of(broker.node.broker.service.web_service_url))
        assert answer.startswith(b"HTTP/1.1 413"), answer[:300]
        assert b"HTTP/1.1 200" in answer, answer[:900]

    with_broker(tmp_path, scenario)


@pytest.mark.parametrize("kind", [kind for kind in REFUSED if kind != "404 chunked"])
def test_who_has_ended_his_side_reads_the_answer(tmp_path: Path, kind: str) -> None:
    def sent_first(port: int) -> bytes:
        with socket.create_connection((HOST, port), 20) as wire:
            wire.sendall(REFUSED[kind][0] + bytes(4 << 20))
            wire.shutdown(socket.SHUT_WR)
            answer = b""
            while chunk := wire.recv(65_536):
                answer += chunk
            return answer

    async def scenario(broker: RealBroker) -> None:
        answer = await asyncio.to_thread(sent_first, port_of(broker.node.broker.service.web_service_url))
        assert answer.startswith(b"HTTP/1.1 %d" % REFUSED[kind][1]), answer[:300]

    with_broker(tmp_path, scenario)


class _Slow(asyncio.Transport):
    """A transport whose peer takes what it was sent a little at a time."""

    def __init__(self, unsent: list[int]) -> None:
        super().__init__()
        self._unsent = unsent
        self._taken_by: asyncio.BaseProtocol = asyncio.Protocol()
        self.aborted = asyncio.get_running_loop().create_future()

    def get_write_buffer_size(self) -> int:
        return self._unsent.pop(0)

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self._taken_by = protocol

    def get_protocol(self) -> asyncio.BaseProtocol:
        return self._taken_by

    def is_closing(self) -> bool:
        return False

    def can_write_eof(self) -> bool:
        return False

    def resume_reading(self) -> None:
        pass

    def abort(self) -> None:
        self.aborted.set_result(len(self._unsent))


@pytest.mark.parametrize(("unsent", "left"), [([0, 0, 9], 1), ([9, 9, 8], 1), ([9, 8, 3, 3, 2], 1), ([9, 8, 0, 9], 1)])
def test_an_answer_that_is_being_taken_is_waited_for(
    unsent: list[int], left: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lingering_close, "LINGER_SECONDS", 0.001)

    async def run() -> int:
        plain = _Slow(list(unsent))
        transport = lingering_close.LingeringTransport(plain)
        transport.patient = True
        transport.close()
        return await asyncio.wait_for(plain.aborted, 20)

    assert asyncio.run(run()) == left
