"""A door with TLS on a real socket that echoes what comes, and clients that knock at it."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any, cast

import pytest
import uvloop

from magnetar.config.settings import Settings
from magnetar.runtime.connections.acceptor import Acceptor, ConnectionLimit, Entrance, Release, listen
from magnetar.runtime.connections.descriptors import Descriptors
from magnetar.security.tls.broker_tls import BrokerTls
from tests.support.certificates import Authority

LOOPS = (asyncio.new_event_loop, uvloop.new_event_loop)
Loop = Callable[[], asyncio.AbstractEventLoop]


class Echo(asyncio.Protocol):
    """Answers with what comes; ``opened`` holds all that were made."""

    opened: list[Echo]

    def __init__(self, release: Release) -> None:
        self.release = release
        self.lost = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        Echo.opened.append(self)

    def data_received(self, data: bytes) -> None:
        self.transport.writelines([data[:10], data[10:]])

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost = True
        self.release()


class Door:
    """An acceptor with TLS and what a client needs to know of it."""

    def __init__(self, authority: Authority, **settings: Any) -> None:
        shown = authority.issue("broker")
        wanted = Settings(
            brokerServicePortTls=0, tlsCertificateFilePath=shown.certificate_file, tlsKeyFilePath=shown.key_file
        )
        self.doors = BrokerTls(replace(wanted, **settings))
        entrance = Entrance("test", listen("127.0.0.1", 0, 1024), self.doors.binary, self.doors.handshakes.watch)
        self.acceptor = Acceptor.at(entrance, ConnectionLimit(0, 0, Descriptors(65_536, lambda: 30)), Echo, str.encode)
        self.port = self.acceptor.port
        self.trusting = ssl.create_default_context(cafile=authority.file)
        Echo.opened = []

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("127.0.0.1", self.port, ssl=self.trusting)

    async def plain(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("127.0.0.1", self.port)

    async def empty(self) -> None:
        """Return when every connection was counted out."""
        while self.acceptor.connection_limit.count or len(self.doors.handshakes):  # noqa: ASYNC110
            await asyncio.sleep(0.005)


Scenario = Callable[[Door], Coroutine[Any, Any, None]]


def run(door: Callable[[], Door], scenario: Scenario, loop: Loop = asyncio.new_event_loop) -> None:
    async def main() -> None:
        opened = door()
        opened.acceptor.open()
        try:
            await asyncio.wait_for(scenario(opened), 30)
        finally:
            opened.acceptor.close()
            opened.doors.handshakes.close()

    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(main())


async def ended(reader: asyncio.StreamReader) -> bytes:
    """What the other side still said before it closed, politely or not."""
    try:
        return await reader.read()
    except (ConnectionError, ssl.SSLError):
        return b""


def client_hello() -> bytes:
    out = ssl.MemoryBIO()
    client = ssl.create_default_context().wrap_bio(ssl.MemoryBIO(), out, server_hostname="localhost")
    with pytest.raises(ssl.SSLWantReadError):
        client.do_handshake()
    return out.read()
