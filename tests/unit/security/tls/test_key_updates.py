"""Clients of TLS 1.3 that change their keys: now and then, or to keep the broker busy."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from pathlib import Path

import pytest

from magnetar.security.tls import connection
from magnetar.security.tls import handshakes as handshakes_module
from magnetar.security.tls.connection import HIDDEN_MAX, PIECE, SLICE, TlsConnection
from tests.support.certificates import Authority
from tests.support.key_updates import KeyChangingClient
from tests.support.tls_door import LOOPS, Door, Echo, Loop, ended, run


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    found: Path = tmp_path_factory.mktemp("authority")
    return Authority(found)


async def _shaken(door: Door, client: KeyChangingClient) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A connection whose handshake the client has finished, with the last bytes of it still to be sent."""
    reader, writer = await door.plain()
    received = b""
    while not client.shake(received):
        writer.write(client.taken())
        received = await reader.read(1 << 16)
    return reader, writer


async def _echoed(
    client: KeyChangingClient, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, data: bytes
) -> bytes:
    client.write(data)
    writer.write(client.taken())
    found = b""
    while len(found) < len(data):
        received = await reader.read(1 << 16)
        assert received, "the broker closed the connection"
        found += client.read(received)
    return found


@pytest.mark.parametrize("loop", LOOPS)
def test_keys_may_change_now_and_then(authority: Authority, loop: Loop) -> None:
    async def scenario(door: Door) -> None:
        client = KeyChangingClient(door.trusting, "127.0.0.1")
        reader, writer = await _shaken(door, client)
        for number in range(20):
            client.change_keys(1, answered=bool(number % 2))
            data = bytes([number]) * (number * 3000 + 1)
            assert await _echoed(client, reader, writer, data) == data
        writer.close()
        await door.empty()

    run(lambda: Door(authority), scenario, loop)


def test_data_pays_back_what_changes_of_keys_took(authority: Authority, monkeypatch: pytest.MonkeyPatch) -> None:
    """However long a connection lives, changes of keys that are rare enough never end it."""
    monkeypatch.setattr(connection, "HIDDEN_MAX", 17_000)

    async def scenario(door: Door) -> None:
        client = KeyChangingClient(door.trusting, "127.0.0.1")
        reader, writer = await _shaken(door, client)
        data = bytes(20_000)
        for _ in range(40):
            client.change_keys(40, answered=False)
            assert await _echoed(client, reader, writer, data) == data
        writer.close()
        await door.empty()

    run(lambda: Door(authority), scenario)


@pytest.mark.parametrize("behind", [False, True], ids=["later", "behind the handshake"])
@pytest.mark.parametrize("answered", [False, True])
@pytest.mark.parametrize("loop", LOOPS)
def test_a_flood_of_changes_ends_the_connection_at_once(
    authority: Authority,
    loop: Loop,
    answered: bool,
    behind: bool,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each takes 27 bytes and no budget of a message covers it; no more are worked on than the budget and a slice."""

    async def scenario(door: Door) -> None:
        client = KeyChangingClient(door.trusting, "127.0.0.1")
        reader, writer = await _shaken(door, client)
        if not behind:
            assert await _echoed(client, reader, writer, b"hello") == b"hello"
        client.change_keys(4 * HIDDEN_MAX // 27, answered=answered)
        if behind:
            monkeypatch.setattr(handshakes_module, "STEPS_PER_TURN", 0)
        writer.write(client.taken())
        if behind:
            (held,) = door.doors.handshakes._began
            assert isinstance(held, TlsConnection)
            while held._received <= connection.HANDSHAKE_BYTES_MAX:  # noqa: ASYNC110
                await asyncio.sleep(0.005)
            monkeypatch.setattr(handshakes_module, "STEPS_PER_TURN", 4)
        said = await ended(reader)
        assert len(said) < SLICE * 2
        writer.close()
        await door.empty()
        assert Echo.opened[-1].lost

    with caplog.at_level(logging.WARNING):
        run(lambda: Door(authority), scenario, loop)
    assert "it changes keys or sends records without data all the time" in caplog.text


def test_floods_of_many_connections_share_the_turns_of_the_loop(
    authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many come at once: between two looks at the sockets of others only so much is decrypted."""
    work: Counter[int] = Counter()
    turn = 0
    decrypt = TlsConnection._decrypt_all

    def counted(self: TlsConnection, protocol: asyncio.Protocol, data: bytes) -> None:
        waiting = len(self._held)
        decrypt(self, protocol, data)
        work[turn] += len(data) - (len(self._held) - waiting)

    def next_turn() -> None:
        nonlocal turn
        turn += 1
        asyncio.get_running_loop().call_soon(next_turn)

    async def scenario(door: Door) -> None:
        clients = [KeyChangingClient(door.trusting, "127.0.0.1") for _ in range(12)]
        held = [(client, *await _shaken(door, client)) for client in clients]
        for client, reader, writer in held:
            assert await _echoed(client, reader, writer, b"hello") == b"hello"
            client.change_keys(4 * HIDDEN_MAX // 27, answered=False)
        honest, reader, writer = held.pop()
        honest.taken()
        monkeypatch.setattr(TlsConnection, "_decrypt_all", counted)
        asyncio.get_running_loop().call_soon(next_turn)
        for client, _, flooding in held:
            flooding.write(client.taken())
        for _, flooded, flooding in held:
            await ended(flooded)
            flooding.close()
        writer.close()
        await door.empty()

    run(lambda: Door(authority), scenario)
    assert max(work.values()) <= SLICE + handshakes_module.STEPS_PER_TURN * PIECE, work.most_common(3)
