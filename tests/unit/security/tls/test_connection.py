"""One connection with TLS over real sockets, on both event loops: bytes, buffers, its end."""

from __future__ import annotations

import asyncio
import gc
import socket
import ssl
import sys
import weakref
from typing import Any

import pytest

from magnetar.security.tls import handshakes as handshakes_module
from magnetar.security.tls.connection import HANDSHAKE_BYTES_MAX, SLICE, TlsConnection
from tests.support.certificates import Authority
from tests.support.tls_door import LOOPS, Door, Echo, Loop, client_hello, run

LARGE = bytes(range(256)) * (1 << 12)
NOBODY_IS_PAUSED = (3, 12) <= sys.version_info < (3, 12, 9) or (3, 13) <= sys.version_info < (3, 13, 2)
"""asyncio's ``writelines`` pauses no writer in these (CVE-2024-12254); uvloop, which brokers use, does."""


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.mark.parametrize("loop", LOOPS)
def test_bytes_of_all_sizes_pass_both_ways(authority: Authority, loop: Loop) -> None:
    async def scenario(door: Door) -> None:
        reader, writer = await door.connect()
        for size in (1, 2, 10, 16_384, 16_385, 70_000, len(LARGE)):
            writer.write(LARGE[:size])
            assert await reader.readexactly(size) == LARGE[:size]
        assert writer.get_extra_info("cipher")[1] == "TLSv1.3"
        writer.close()
        await door.empty()
        assert Echo.opened[0].lost
        assert (door.doors.handshakes.finished, door.doors.handshakes.failed) == (1, 0)

    run(lambda: Door(authority), scenario, loop)


@pytest.mark.parametrize("loop", LOOPS)
def test_what_the_client_does_not_take_is_counted_and_the_writer_paused(authority: Authority, loop: Loop) -> None:
    """Bytes that are encrypted already count as well, which the event loops' own TLS leaves out."""
    if NOBODY_IS_PAUSED and loop is asyncio.new_event_loop:
        pytest.skip("asyncio's writelines pauses nobody in this Python")

    async def scenario(door: Door) -> None:
        raw = socket.create_connection(("127.0.0.1", door.port))
        secured = await asyncio.to_thread(door.trusting.wrap_socket, raw, server_hostname="127.0.0.1")
        while not Echo.opened:  # noqa: ASYNC110
            await asyncio.sleep(0.005)
        protocol = Echo.opened[0]
        paused = asyncio.Event()
        protocol.pause_writing = paused.set  # type: ignore[method-assign]
        protocol.transport.set_write_buffer_limits(1 << 16, 1 << 15)
        protocol.transport.writelines([LARGE] * 16)
        await paused.wait()
        unsent = protocol.transport.get_write_buffer_size()
        assert unsent > (1 << 16)
        taken = await asyncio.to_thread(_read_all, secured, len(LARGE) * 16)
        assert taken == LARGE * 16
        secured.close()
        await door.empty()

    run(lambda: Door(authority), scenario, loop)


def _read_all(source: ssl.SSLSocket, size: int) -> bytes:
    found = bytearray()
    while len(found) < size:
        found += source.recv(1 << 16)
    return bytes(found)


def test_garbage_after_the_handshake_ends_the_connection(authority: Authority) -> None:
    async def scenario(door: Door) -> None:
        raw = socket.create_connection(("127.0.0.1", door.port))
        secured = await asyncio.to_thread(door.trusting.wrap_socket, raw, server_hostname="127.0.0.1")
        plain = socket.socket(fileno=secured.detach())
        plain.sendall(b"garbage" * 1000)
        while not Echo.opened or not Echo.opened[0].lost:  # noqa: ASYNC110
            await asyncio.sleep(0.005)
        plain.close()
        await door.empty()

    run(lambda: Door(authority), scenario)


@pytest.mark.parametrize("loop", LOOPS)
def test_what_is_written_after_garbage_is_dropped(authority: Authority, loop: Loop) -> None:
    """OpenSSL writes nothing after a fatal error; answers that were on their way then are no failures of the broker."""

    async def scenario(door: Door) -> None:
        _, writer = await door.connect()
        while not Echo.opened:  # noqa: ASYNC110
            await asyncio.sleep(0.005)
        secured: Any = Echo.opened[0].transport
        secured.data_received(b"garbage" * 1000)
        assert secured.is_closing()
        secured.write(b"receipt")
        secured.write(LARGE)
        secured.writelines([b"receipt", LARGE])
        secured.close()
        await door.empty()
        writer.close()

    run(lambda: Door(authority), scenario, loop)


class Counted:
    """Passes everything on to ``real`` and keeps the size of the largest write."""

    def __init__(self, real: Any) -> None:
        self.real = real
        self.largest = 0

    def write(self, data: bytes) -> int:
        self.largest = max(self.largest, len(data))
        return int(self.real.write(data))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.real, name)


def test_buffers_stay_small_after_large_writes(authority: Authority) -> None:
    """OpenSSL's buffers in memory never shrink: they are fed in small pieces."""

    async def scenario(door: Door) -> None:
        reader, writer = await door.connect()
        while not Echo.opened:  # noqa: ASYNC110
            await asyncio.sleep(0.005)
        secured: Any = Echo.opened[0].transport
        secured._ssl, secured._incoming = Counted(secured._ssl), Counted(secured._incoming)
        writer.write(LARGE * 4)
        assert len(await reader.readexactly(len(LARGE) * 4)) == len(LARGE) * 4
        assert 0 < secured._ssl.largest <= SLICE
        assert 0 < secured._incoming.largest <= SLICE
        writer.close()
        await door.empty()

    run(lambda: Door(authority), scenario)


@pytest.mark.parametrize("loop", LOOPS)
def test_a_lost_connection_is_free_without_the_garbage_collector(authority: Authority, loop: Loop) -> None:
    async def scenario(door: Door) -> None:
        reader, writer = await door.connect()
        writer.write(b"hello")
        await reader.readexactly(5)
        held = weakref.ref(Echo.opened[0].transport)
        writer.close()
        _, half = await door.plain()
        half.write(client_hello())
        half.close()
        await door.empty()
        Echo.opened.clear()
        while held() is not None:  # noqa: ASYNC110 - the loop itself lets go a turn later
            await asyncio.sleep(0.005)

    gc.collect()
    gc.disable()
    try:
        run(lambda: Door(authority), scenario, loop)
    finally:
        gc.enable()


@pytest.mark.parametrize("loop", LOOPS)
def test_a_request_that_came_with_the_end_of_the_handshake_is_no_part_of_it(
    authority: Authority, loop: Loop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A busy broker finds a client's last handshake message and a large request behind it in one go."""
    body = LARGE[: 4 * HANDSHAKE_BYTES_MAX]

    async def scenario(door: Door) -> None:
        reader, writer = await door.plain()
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        client = door.trusting.wrap_bio(incoming, outgoing, server_hostname="127.0.0.1")
        while True:
            try:
                client.do_handshake()
                break
            except ssl.SSLWantReadError:
                writer.write(outgoing.read())
                incoming.write(await reader.read(1 << 16))
        monkeypatch.setattr(handshakes_module, "STEPS_PER_TURN", 0)
        client.write(body)
        writer.write(outgoing.read())
        (held,) = door.doors.handshakes._began
        assert isinstance(held, TlsConnection)
        while held._received <= HANDSHAKE_BYTES_MAX:  # noqa: ASYNC110
            await asyncio.sleep(0.005)
        monkeypatch.setattr(handshakes_module, "STEPS_PER_TURN", 4)
        answer = bytearray()
        while len(answer) < len(body):
            try:
                answer += client.read(1 << 16)
            except ssl.SSLWantReadError:
                data = await reader.read(1 << 16)
                assert data, "the broker closed the connection"
                incoming.write(data)
        assert answer == body
        writer.close()
        await door.empty()

    run(lambda: Door(authority), scenario, loop)
