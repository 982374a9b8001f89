"""Handshakes of TLS over real sockets: those that fail, what they agree on, and how many and how long they may be."""

from __future__ import annotations

import asyncio
import logging
import re
import shutil
import socket
import ssl
import subprocess
from dataclasses import replace

import pytest

from magnetar.security.tls import handshakes as handshakes_module
from magnetar.security.tls.handshakes import Handshakes
from tests.support.certificates import Authority
from tests.support.tls_door import LOOPS, Door, Echo, Loop, client_hello, ended, run


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


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


def test_others_are_served_beside_more_silent_handshakes_than_there_may_be(
    authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(handshakes_module, "PATIENCE_SECONDS", 1.0)  # the others need some of it on a busy machine

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


def test_a_step_that_fails_does_not_hold_up_the_others() -> None:
    class One:
        def __init__(self, fault: Exception | None = None) -> None:
            self.fault = fault
            self.stepped = asyncio.Event()

        def step(self) -> None:
            self.stepped.set()
            if self.fault is not None:
                raise self.fault

        def give_up(self, why: str) -> None:
            raise AssertionError(why)

    async def main() -> None:
        reported: list[object] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context.get("exception")))
        found, fault = Handshakes(), OSError("a fault")
        broken, other = One(fault), One()
        found.arrived(broken)
        found.arrived(other)
        await asyncio.wait_for(other.stepped.wait(), 5)
        assert reported == [fault]

    asyncio.run(main())
