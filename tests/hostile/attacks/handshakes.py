"""Handshakes of TLS: half of them and silence, floods of whole ones, bytes that are none, and changes of keys."""

from __future__ import annotations

import contextlib
import random
import socket
import ssl
import time
from concurrent.futures import ThreadPoolExecutor

from magnetar.client.address import Address
from magnetar.client.connection import Connection
from magnetar.security.tls.client_tls import ClientTls
from magnetar.security.tls.connection import HIDDEN_MAX
from tests.hostile.raw import HOST, command
from tests.hostile.victim import Target
from tests.support.key_updates import KeyChangingClient

_PATIENCE_SECONDS = 10.0
"""Within which an honest client is connected, whatever others do."""


def half_open(target: Target, scale: float) -> str:
    """Nothing, half a ClientHello, or one and then silence, on both ports; honest clients come in beside them."""
    hello = _hello()
    held = []
    count = max(40, int(1000 * scale))
    for number in range(count):
        with contextlib.suppress(OSError):
            port = target.https_port if number % 4 == 0 else target.tls_port
            one = socket.create_connection((HOST, port), timeout=5.0)
            one.sendall((b"", hello[: len(hello) // 2], hello)[number % 3])
            held.append(one)
    longest = max(_honest(target) for _ in range(10))
    for one in held:
        one.close()
    return f"{count} handshakes begun, honest ones beside them took {longest * 1000:.0f} ms at most"


def storm(target: Target, scale: float) -> str:
    """Whole handshakes, each of which costs the broker a signature, as fast as four threads do them."""
    context = ssl.create_default_context(cafile=target.authority)
    count = max(40, int(4000 * scale))

    def some(_: int) -> int:
        done = 0
        for _ in range(count // 4):
            with contextlib.suppress(OSError), socket.create_connection((HOST, target.tls_port), timeout=10.0) as one:
                context.wrap_socket(one, server_hostname=HOST).close()
                done += 1
        return done

    with ThreadPoolExecutor(4) as threads:
        done = sum(threads.map(some, range(4)))
    _honest(target)
    return f"{done} handshakes"


def garbage(target: Target, scale: float) -> str:
    """ClientHellos with changed bytes, without an end, of other protocols, and garbage after a handshake."""
    rng = random.Random(7)
    hello = _hello()
    count = max(40, int(2000 * scale))
    for number in range(count):
        sent = bytearray(hello)
        match number % 5:
            case 0:
                for _ in range(rng.randrange(1, 20)):
                    sent[rng.randrange(len(sent))] = rng.randrange(256)
            case 1:
                sent = bytearray(b"\x16\x03\x01\x3f\xff\x01\x00\xff\xff") + rng.randbytes(150_000)
            case 2:
                sent = bytearray(rng.randbytes(rng.randrange(1, 600)))
            case 3:
                sent = bytearray((b"GET / HTTP/1.1\r\n\r\n", b"\0\0\0\x1a\0\0\0\x16\x08\x02")[number % 2])
            case _:
                sent = sent[: rng.randrange(1, len(sent))] + rng.randbytes(100)
        port = target.https_port if number % 3 == 0 else target.tls_port
        with contextlib.suppress(OSError), socket.create_connection((HOST, port), timeout=5.0) as one:
            one.sendall(sent)
    context = ssl.create_default_context(cafile=target.authority)
    for _ in range(max(5, count // 20)):
        with socket.create_connection((HOST, target.tls_port), timeout=10.0) as one:
            plain = socket.socket(fileno=context.wrap_socket(one, server_hostname=HOST).detach())
            with contextlib.suppress(OSError), plain:
                plain.sendall(rng.randbytes(5000))
    _honest(target)
    return f"{count} broken handshakes, and garbage after whole ones"


def key_changes(target: Target, scale: float) -> str:
    """Changes of keys in TLS 1.3, before any login: 27 bytes each, a derivation of keys, and an answer if asked for.

    A flood has to end its own connection. Those that pay for their changes with data, just enough, may go on: what
    they cost is what the probe sees.
    """
    context = ssl.create_default_context(cafile=target.authority)
    count = max(8, int(200 * scale))
    changes, closed = 4 * HIDDEN_MAX // 27, 0
    held = [_changing(target, context, number) for number in range(count)]
    for number, (client, _) in enumerate(held):
        client.change_keys(changes, answered=bool(number % 2))
    for client, one in held:
        # all of it lies in the broker's sockets before it reads the most of it
        with contextlib.suppress(OSError):
            one.sendall(client.taken())
    for _, one in held:
        with one, contextlib.suppress(ConnectionError):
            while one.recv(1 << 16):
                pass
        closed += 1
    assert closed == count
    rounds = max(50, int(2000 * scale))
    client, one = _changing(target, context, 0)
    connect, ping = command("CONNECT", client_version="hostile", protocol_version=21), command("PING")
    with one:
        client.write(connect)
        with contextlib.suppress(ConnectionError):
            for _ in range(rounds):
                client.change_keys(200, answered=False)
                client.write(ping * 1000)
                one.sendall(client.taken())
                one.recv(1 << 16)
    _honest(target)
    return f"{count} floods of {changes} changes ended, {rounds * 200} paid for with data"


def _changing(target: Target, context: ssl.SSLContext, number: int) -> tuple[KeyChangingClient, socket.socket]:
    client = KeyChangingClient(context, HOST)
    port = target.https_port if number % 4 == 3 else target.tls_port
    one = socket.create_connection((HOST, port), timeout=_PATIENCE_SECONDS)
    received = b""
    while not client.shake(received):
        one.sendall(client.taken())
        received = one.recv(1 << 16)
    one.sendall(client.taken())
    return client, one


def _honest(target: Target) -> float:
    """Connect and be greeted. Raises AssertionError if that takes too long."""
    begun = time.monotonic()
    tls = ClientTls(trust_file=target.authority)
    Connection(Address(HOST, target.tls_port, tls=True), timeout=_PATIENCE_SECONDS, tls=tls).close()
    took = time.monotonic() - begun
    assert took < _PATIENCE_SECONDS, f"an honest client waited {took:.1f} s"
    return took


def _hello() -> bytes:
    out = ssl.MemoryBIO()
    client = ssl.create_default_context().wrap_bio(ssl.MemoryBIO(), out, server_hostname="localhost")
    with contextlib.suppress(ssl.SSLWantReadError):
        client.do_handshake()
    return out.read()
