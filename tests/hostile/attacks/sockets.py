"""Connections that do nothing, and requests that never end."""

from __future__ import annotations

import contextlib
import socket
import time

from tests.hostile.raw import HOST, TOPIC, Raw
from tests.hostile.victim import Target

_MEGABYTES = 300
_HTTP_PATIENCE_SECONDS = 45.0


def idle(target: Target, scale: float) -> str:
    """Open as many idle connections as it takes, on both ports."""
    held, count = _crowd(target, scale)
    time.sleep(4.0)
    for each in held:
        each.close()
    return f"{count} idle connections, {count - len(held)} refused at once"


def starve(target: Target, scale: float) -> str:
    """Idle connections take every descriptor, and then the log has to roll: publishing must go on."""
    held, count = _crowd(target, scale)
    publish_much(target)
    for each in held:
        each.close()
    return f"{count} idle connections, {_MEGABYTES} MB published beside them"


def _crowd(target: Target, scale: float) -> tuple[list[socket.socket], int]:
    """Those that the broker let in, and how many wanted to."""
    count = int(1300 * scale)
    held: list[socket.socket] = []
    for number in range(count):
        with contextlib.suppress(OSError):
            port = target.http_port if number % 3 == 0 else target.broker_port
            held.append(socket.create_connection((HOST, port), timeout=5.0))
    return held, count


def publish_much(target: Target) -> None:
    """More than two segments hold, so that one is sealed and another begun."""
    with Raw(target.broker_port, timeout=60.0) as raw:
        producer = raw.producer(f"{TOPIC}much")
        for _ in range(_MEGABYTES // 10):
            raw.publish(producer, 10, bytes(1_000_000))


def half_requests(target: Target, scale: float) -> str:
    """HTTP requests that stop in the middle; all of them must be closed by the broker."""
    starts = (
        b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n",
        b"POST /admin/v2/tenants/x HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        b"Content-Length: 99\r\n\r\n{",
        b"G",
        b"",
    )
    count = int(100 * scale)
    held = []
    for number in range(count):
        one = socket.create_connection((HOST, target.http_port), timeout=5.0)
        one.sendall(starts[number % len(starts)])
        held.append(one)
    deadline = time.monotonic() + _HTTP_PATIENCE_SECONDS
    still_open = 0
    for one in held:
        one.settimeout(max(0.1, deadline - time.monotonic()))
        try:
            while one.recv(65_536):
                pass
        except TimeoutError:
            still_open += 1
        except ConnectionError:
            pass
        one.close()
    assert not still_open, (
        f"{still_open} of {count} half-sent requests are still open after {_HTTP_PATIENCE_SECONDS:g} s"
    )
    return f"{count} half-sent HTTP requests, all closed"


def leavers(target: Target, scale: float) -> str:
    """Clients that leave in the middle of a body, and connections that are reset."""
    count = int(2000 * scale)
    for number in range(count):
        with contextlib.suppress(OSError):
            one = socket.create_connection((HOST, target.http_port if number % 2 else target.broker_port), timeout=5.0)
            one.sendall(b"POST /admin/v2/tenants/x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9999\r\n\r\n{")
            if number % 3 == 0:
                one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            one.close()
    return f"{count} clients that left in the middle"


def churn(target: Target, scale: float) -> str:
    """Connect, say CONNECT, leave; again and again."""
    count = int(3000 * scale)
    for _ in range(count):
        with contextlib.suppress(ConnectionError):
            Raw(target.broker_port).close()
    return f"{count} connections that come and go"
