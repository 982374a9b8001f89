"""One connection with TLS over real sockets, on both event loops: bytes, handshakes that fail, bounds."""

from __future__ import annotations

import asyncio
import gc
import logging
import re
import shutil
import socket
import ssl
import subprocess
import weakref
from collections.abc import Callable, Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
import uvloop

from magnetar.config.settings import Settings
from magnetar.runtime.acceptor import Acceptor, ConnectionLimit, Entrance, Release, listen
from magnetar.runtime.descriptors import Descriptors
from magnetar.security.tls import handshakes as handshakes_module
from magnetar.security.tls.connection import HANDSHAKE_BYTES_MAX, SLICE, TlsConnection
from magnetar.security.tls.doors import TlsDoors
from magnetar.security.tls.handshakes import Handshakes
from tests.support.certificates import Authority

LOOPS = (asyncio.new_event_loop, uvloop.new_event_loop)
Loop = Callable[[], asyncio.AbstractEventLoop]
LARGE = bytes(range(256)) * (1 << 12)


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
        self.doors = TlsDoors(replace(wanted, **settings))
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


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


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


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize(
    ("sent", "said"),
    [
        (b"\0\0\0\x1a\0\0\0\x16\x08\x02", "speaks Pulsar's protocol without TLS to a port with TLS"),
        (b"GET / HTTP/1.1\r\n\r\n", "speaks HTTP without TLS"),
        (b"x", "speaks something that is no TLS"),
        (b"\x16\x03\x01\x00\x04\x01\x02\x03\x04", "breaks the TLS handshake"),
        (b"\x16\x03\x01\x00\x05\x01\x00\x00\x01\xff", "breaks the TLS handshake"),
        (b"\x16\x03\x01\x3f\xff\x01\x00\xff\xff" + b"\0" * 200_000, "more than 131072 bytes|breaks the TLS handshake"),
    ],
    ids=["frame", "http", "byte", "no hello", "empty hello", "huge hello"],
)
def test_what_is_no_handshake_is_closed_and_named(
    authority: Authority, loop: Loop, sent: bytes, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(door: Door) -> None:
        reader, writer = await door.plain()
        writer.write(sent)
        await ended(reader)
        writer.close()
        await door.empty()
        assert not Echo.opened
        assert door.doors.handshakes.failed == 1

    with caplog.at_level(logging.WARNING):
        run(lambda: Door(authority), scenario, loop)
    assert re.search(rf"broker \(TLS\): closing /127.0.0.1:\d+: .*({said})", caplog.text), caplog.text


def test_a_client_that_distrusts_the_broker_is_named(authority: Authority, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(door: Door) -> None:
        distrusting = ssl.create_default_context()
        with socket.create_connection(("127.0.0.1", door.port)) as raw, pytest.raises(ssl.SSLCertVerificationError):
            await asyncio.to_thread(distrusting.wrap_socket, raw, server_hostname="127.0.0.1")
        await door.empty()
        _, writer = await door.plain()
        writer.write(client_hello())
        writer.close()
        await door.empty()

    with caplog.at_level(logging.WARNING):
        run(lambda: Door(authority), scenario)
    assert "it does not trust this broker's certificate" in caplog.text
    assert "it left in the TLS handshake" in caplog.text


def test_versions_and_ciphers_of_the_settings_count(authority: Authority, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(door: Door) -> None:
        door.trusting.minimum_version = ssl.TLSVersion.TLSv1_3
        with pytest.raises(ssl.SSLError):
            await door.connect()
        door.trusting.minimum_version = ssl.TLSVersion.TLSv1_2
        _, writer = await door.connect()
        assert writer.get_extra_info("cipher")[0] == "ECDHE-ECDSA-AES128-GCM-SHA256"
        writer.close()
        await door.empty()

    with caplog.at_level(logging.WARNING):
        run(lambda: Door(authority, tlsCiphers="TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"), scenario)
    assert "offers no protocol or cipher that this port accepts" in caplog.text


def test_a_suite_that_was_left_out_never_carries_a_byte(authority: Authority) -> None:
    """The library cannot leave out suites of TLS 1.3: a connection that agreed on one is closed."""

    async def scenario(door: Door) -> None:
        offer = door.doors.contexts[0].offer
        assert offer.suites is not None
        door.doors.contexts[0].offer = replace(offer, suites=offer.suites._replace(latest=("TLS_AES_128_GCM_SHA256",)))
        reader, writer = await door.connect()
        writer.write(b"x")
        assert await ended(reader) == b""
        writer.close()
        await door.empty()
        assert not Echo.opened

    run(lambda: Door(authority, tlsCiphers="TLS_AES_256_GCM_SHA384"), scenario)


def test_a_handshake_has_ten_seconds(authority: Authority, monkeypatch: pytest.MonkeyPatch) -> None:
    """Silence, half a ClientHello and silence after it: all are ended, and none of them is ever a connection."""
    monkeypatch.setattr(handshakes_module, "HANDSHAKE_SECONDS", 0.3)
    monkeypatch.setattr(handshakes_module, "PATIENCE_SECONDS", 0.2)
    hello = client_hello()

    async def scenario(door: Door) -> None:
        ends = [await door.plain() for _ in range(30)]
        for number, (_, writer) in enumerate(ends):
            writer.write((b"", hello[:20], hello)[number % 3])
        for reader, writer in ends:
            await ended(reader)
            writer.close()
        await door.empty()
        assert not Echo.opened

    run(lambda: Door(authority), scenario)


def client_hello() -> bytes:
    out = ssl.MemoryBIO()
    client = ssl.create_default_context().wrap_bio(ssl.MemoryBIO(), out, server_hostname="localhost")
    with pytest.raises(ssl.SSLWantReadError):
        client.do_handshake()
    return out.read()


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


def test_others_are_served_beside_more_silent_handshakes_than_there_may_be(
    authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(handshakes_module, "PATIENCE_SECONDS", 0.1)

    async def scenario(door: Door) -> None:
        door.doors.handshakes._most = 50
        silent = [await door.plain() for _ in range(200)]
        hello = client_hello()
        for number, (_, writer) in enumerate(silent):
            writer.write((b"", hello)[number % 2])
        for _ in range(5):
            reader, writer = await door.connect()
            writer.write(b"hello")
            assert await reader.readexactly(5) == b"hello"
            writer.close()
        assert len(door.doors.handshakes) <= 50 + 32
        for _, writer in silent:
            writer.close()
        await door.empty()

    run(lambda: Door(authority), scenario)


@pytest.mark.skipif(shutil.which("openssl") is None, reason="there is no openssl program to renegotiate")
def test_renegotiation_is_refused(authority: Authority) -> None:
    async def scenario(door: Door) -> None:
        command = ["openssl", "s_client", "-connect", f"127.0.0.1:{door.port}", "-tls1_2"]

        def ask() -> str:
            done = subprocess.run(command, input=b"R\n", capture_output=True, timeout=20, check=False)
            return (done.stdout + done.stderr).decode(errors="replace")

        said = await asyncio.to_thread(ask)
        assert "no renegotiation" in said
        await door.empty()

    run(lambda: Door(authority), scenario)


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


def test_a_turn_takes_a_few_steps_only() -> None:
    """A thousand signatures must not come between two looks at the sockets of others."""

    class Slow:
        def __init__(self) -> None:
            self.stepped = 0

        def step(self) -> None:
            self.stepped += 1

        def give_up(self, why: str) -> None:
            raise AssertionError(why)

    async def scenario() -> None:
        handshakes, all_of_them = Handshakes(), [Slow() for _ in range(10)]
        for one in all_of_them:
            handshakes.began(one)
            handshakes.arrived(one)
        await asyncio.sleep(0)
        assert sum(one.stepped for one in all_of_them) == handshakes_module.STEPS_PER_TURN
        for _ in range(5):
            await asyncio.sleep(0)
        assert [one.stepped for one in all_of_them] == [1] * 10
        for one in all_of_them:
            handshakes.ended(one, well=True)
        handshakes.close()

    asyncio.run(scenario())


def test_no_client_is_silent_about_a_missing_path(tmp_path: Path) -> None:
    """A door whose files are missing does not open at all."""
    from magnetar.model.errors import InvalidValueError

    with pytest.raises(InvalidValueError, match="tlsKeyFilePath"):
        TlsDoors(Settings(brokerServicePortTls=0, tlsCertificateFilePath=str(tmp_path / "x")))
