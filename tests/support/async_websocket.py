"""WebSockets of an asyncio test, frame by frame."""

from __future__ import annotations

import asyncio
import json

from tests.support.real_broker import HOST, RealBroker

KEY = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
PRODUCER = "/ws/v2/producer/persistent/public/default/t"


def door(broker: RealBroker) -> int:
    return int(broker.node.broker.service.web_service_url.rpartition(":")[2])


def handshake(path: str) -> bytes:
    return (
        f"GET {path} HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        f"{KEY}Sec-WebSocket-Version: 13\r\n\r\n"
    ).encode()


async def opened(broker: RealBroker, path: str = PRODUCER) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection(HOST, door(broker))
    writer.write(handshake(path))
    assert b" 101 " in await reader.readuntil(b"\r\n\r\n")
    return reader, writer


async def answer(reader: asyncio.StreamReader) -> dict[str, str]:
    head = await reader.readexactly(2)
    size = head[1]
    if size == 126:
        size = int.from_bytes(await reader.readexactly(2), "big")
    found: dict[str, str] = json.loads(await reader.readexactly(size))
    return found
