"""An acceptor with real sockets: which connections it takes or refuses, and what it does without free descriptors."""

from __future__ import annotations

import asyncio
import errno
import socket
from collections.abc import Callable, Coroutine
from typing import Any, cast

import pytest
import uvloop

from magnetar.runtime.connections.acceptor import Acceptor, ConnectionLimit, Release, listen
from magnetar.runtime.connections.descriptors import Descriptors

LOOPS = (asyncio.new_event_loop, uvloop.new_event_loop)


class Echo(asyncio.Protocol):
    def __init__(self, release: Release) -> None:
        self.release = release

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self.transport.write(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self.release()


def acceptor(most: int = 0, per_address: int = 0) -> Acceptor:
    connection_limit = ConnectionLimit(most, per_address, Descriptors(65_536, lambda: 30))
    return Acceptor("test", listen("127.0.0.1", 0, 128), connection_limit, Echo, lambda why: why.encode())


def run(scenario: Callable[[], Coroutine[Any, Any, None]], make: Callable[[], asyncio.AbstractEventLoop]) -> None:
    with asyncio.Runner(loop_factory=make) as runner:
        runner.run(asyncio.wait_for(scenario(), 30))


@pytest.mark.parametrize("loop", LOOPS)
def test_connections_are_served_counted_and_forgotten(loop: Callable[[], asyncio.AbstractEventLoop]) -> None:
    async def scenario() -> None:
        entry = acceptor()
        entry.open()
        ends = [await asyncio.open_connection("127.0.0.1", entry.port) for _ in range(50)]
        for reader, writer in ends:
            writer.write(b"hello")
            assert await reader.readexactly(5) == b"hello"
        assert entry.connection_limit.count == 50
        for _, writer in ends:
            writer.close()
        while entry.connection_limit.count:  # noqa: ASYNC110
            await asyncio.sleep(0.001)
        entry.close()

    run(scenario, loop)


@pytest.mark.parametrize("loop", LOOPS)
def test_a_connection_above_the_limit_receives_the_reason_and_frees_its_place(
    loop: Callable[[], asyncio.AbstractEventLoop],
) -> None:
    async def scenario() -> None:
        entry = acceptor(most=2)
        entry.open()
        ends = [await asyncio.open_connection("127.0.0.1", entry.port) for _ in range(2)]
        for reader, writer in ends:
            writer.write(b"x")
            await reader.readexactly(1)
        reader, writer = await asyncio.open_connection("127.0.0.1", entry.port)
        assert await reader.read() == b"Reached the maximum number of connections: 2"
        writer.close()
        ends[0][1].close()
        while entry.connection_limit.count == 2:  # noqa: ASYNC110
            await asyncio.sleep(0.001)
        reader, writer = await asyncio.open_connection("127.0.0.1", entry.port)
        writer.write(b"y")
        assert await reader.readexactly(1) == b"y"
        writer.close()
        ends[1][1].close()
        entry.close()

    run(scenario, loop)


def test_without_descriptors_accepting_pauses() -> None:
    """Without the pause the event loop would be woken for ever by connections that cannot be accepted."""

    class Bare:
        """A listening socket whose first calls of ``accept`` fail."""

        def __init__(self) -> None:
            self.real = listen("127.0.0.1", 0, 128)
            self.failures = 2
            self.asked = 0

        def accept(self) -> tuple[socket.socket, Any]:
            self.asked += 1
            if self.failures:
                self.failures -= 1
                raise OSError(errno.EMFILE, "Too many open files")
            return self.real.accept()

        def __getattr__(self, name: str) -> Any:
            return getattr(self.real, name)

    async def scenario() -> None:
        bare = Bare()
        connection_limit = ConnectionLimit(0, 0, Descriptors(65_536, lambda: 30))
        entry = Acceptor("test", cast(socket.socket, bare), connection_limit, Echo, lambda why: why.encode())
        entry.open()
        reader, writer = await asyncio.open_connection("127.0.0.1", entry.port)
        writer.write(b"x")
        for _ in range(200):
            await asyncio.sleep(0)
        assert bare.asked == 1
        assert await reader.readexactly(1) == b"x"
        assert bare.asked <= 5
        writer.close()
        entry.close()

    run(scenario, asyncio.new_event_loop)


@pytest.mark.parametrize("loop", LOOPS)
def test_connections_wait_in_the_system_while_it_holds(loop: Callable[[], asyncio.AbstractEventLoop]) -> None:
    """Also when it is opened meanwhile, as the HTTP port is."""

    async def scenario() -> None:
        entry = acceptor()
        entry.hold()
        entry.open()
        reader, writer = await asyncio.open_connection("127.0.0.1", entry.port)
        writer.write(b"x")
        for _ in range(50):
            await asyncio.sleep(0)
        assert entry.connection_limit.count == 0
        entry.go_on()
        assert await reader.readexactly(1) == b"x"
        entry.hold()
        writer.close()
        entry.close()

    run(scenario, loop)
