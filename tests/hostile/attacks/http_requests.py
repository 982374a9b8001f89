"""HTTP requests whose parts are many: bodies in chunks of a byte, pipelines, headers without end."""

from __future__ import annotations

import contextlib
import socket
from typing import Final

from tests.hostile.raw import HOST
from tests.hostile.raw_websocket import drained
from tests.hostile.victim import Target

_TENANT: Final = (
    b"PUT /admin/v2/tenants/%s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    b"Transfer-Encoding: chunked\r\n\r\n"
)


def _said(target: Target, sent: bytes, rounds: int = 1) -> int:
    with socket.create_connection((HOST, target.http_port), timeout=120.0) as one:
        return drained(one, sent, rounds)


def chunks(target: Target, scale: float) -> str:
    """Bodies in hundreds of thousands of chunks, chunks with long names, and a last chunk with headers."""
    count = int(300_000 * scale)
    body = b'{"allowedClusters":["standalone"]}'
    start = b"".join(b"1\r\n%c\r\n" % one for one in body)
    for number, (piece, end) in enumerate(
        (
            (b"1\r\n \r\n", b"0\r\n\r\n"),
            (b"1;" + b"x" * 50 + b"\r\n \r\n", b"0\r\n\r\n"),
            (b"0001\r\n \r\n", b"0\r\n" + b"a: b\r\n" * 10_000 + b"\r\n"),
            (b"1\r\n \r\n", b"\xff\xff\r\n"),
            (b"1\r\n \r\n", b""),
        )
    ):
        _said(target, _TENANT % b"chunky%d" % number + start + piece * count + end)
    return f"5 bodies in {count:,} chunks"


def pipelines(target: Target, scale: float) -> str:
    """Requests one after another without waiting for answers: small ones, long answers, errors, bodies."""
    count = int(5_000 * scale)
    host = b" HTTP/1.1\r\nHost: localhost\r\n"
    json = b"Content-Type: application/json\r\n"
    for line, divisor in (
        (b"GET /admin/v2/clusters" + host + b"\r\n", 1),
        (b"GET /no/such/path" + host + b"\r\n", 1),
        (b"PATCH /admin/v2/clusters" + host + b"\r\n", 1),
        (b"GET /metrics" + host + b"\r\n", 50),
        (b"GET /openapi.json" + host + b"\r\n", 50),
        (b"POST /admin/v2/tenants/standalone" + host + json + b"Content-Length: 2\r\n\r\n{}", 1),
        (b"GET /admin/v2/clusters" + host + b"Expect: 100-continue\r\nContent-Length: 0\r\n\r\n", 1),
    ):
        _said(target, line * (max(1, count // divisor)))
    # a hundred at once, none of which takes its answers
    held = []
    for _ in range(max(5, int(100 * scale))):
        one = socket.create_connection((HOST, target.http_port), timeout=1.0)
        held.append(one)
        with contextlib.suppress(OSError):
            one.sendall((b"GET /openapi.json" + host + b"\r\n") * 2000)
    for one in held:
        one.close()
    return f"7 pipelines of up to {count:,} requests, {len(held)} that read nothing"


def headers(target: Target, scale: float) -> str:
    """Headers by the hundred thousand, long ones, lines that never end, blank lines before a request."""
    count = int(200_000 * scale)
    start = b"GET /admin/v2/clusters HTTP/1.1\r\nHost: localhost\r\n"
    for sent in (
        start + b"a: b\r\n" * count,
        start + b"a:\r\n b\r\n" * count,
        start + b"a: " + b"x" * (10 * count),
        b"\r\n" * count,
        b"GET /" + b"x" * (10 * count),
        b"GET /" + b"%2f" * count + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET /admin/v2/clusters?" + b"a=b&" * 10_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
        start + b"Cookie: " + b"a=b;" * 10_000 + b"\r\n\r\n",
        start + b"Content-Length: " + b"9" * count + b"\r\n\r\n",
        b"x\r\n" * count,
    ):
        _said(target, sent)
    return f"10 heads of {count:,} parts"
