"""A message that no WebSocket can have closes those that meet it, with its place; the log has the way around it."""

from __future__ import annotations

import asyncio
import base64
import re
from pathlib import Path
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed

from magnetar.protocol.compression import CompressionType
from magnetar.protocol.entries import EncryptionKey, EntryMetadata, build_entry
from tests.support.real_broker import TOPIC, RealBroker, run_on_broker
from tests.support.websocket_peers import C, R, opened, said

KINDS: dict[str, tuple[dict[str, Any], str]] = {
    "unpacked": (
        {"compression": CompressionType.LZ4, "uncompressed_size": 2**31},
        "has 2147483648 bytes unpacked, above 31457280 taken here",
    ),
    "chunk": (
        {"uuid": "u", "chunk_id": 1, "num_chunks_from_msg": 3, "total_chunk_msg_size": 2**31 - 1},
        "has 2147483647 bytes unpacked, above 31457280 taken here",
    ),
    "encrypted": (
        {"encryption_keys": (EncryptionKey("k", b"v"),), "encryption_algo": "a", "encryption_param": b"p"},
        "is encrypted, and cryptoFailureAction is neither CONSUME nor DISCARD",
    ),
}


async def closed(broker: RealBroker, path: str) -> str:
    """The reason with which a socket is closed."""
    async with await opened(broker, path) as socket:
        with pytest.raises(ConnectionClosed) as found:
            await asyncio.wait_for(socket.recv(), 20)
    assert found.value.rcvd is not None and found.value.rcvd.code == 1011
    return found.value.rcvd.reason


@pytest.mark.parametrize("kind", KINDS)
def test_the_way_around_it_is_named_and_works(tmp_path: Path, caplog: pytest.LogCaptureFixture, kind: str) -> None:
    fields, what = KINDS[kind]
    name = kind * 20  # longer than a close frame
    topic = f"persistent://public/default/{name}"

    async def scenario(broker: RealBroker) -> None:
        await broker.ask("PUT", f"{TOPIC}/{name}/subscription/s", "earliest")
        producer = await (await broker.client()).producer(topic)
        bad = (
            await producer.receipt(producer.send(b"", entry=build_entry(EntryMetadata("p", 0, 1, **fields), b"x")))
        ).message_id
        await producer.publish(b"good")
        assert bad is not None
        reason = f"message {bad.ledger}:{bad.entry} {what}; skip it: docs/websocket.md"
        for path in (f"{C}{name}/s?subscriptionType=Shared", f"{R}{name}?messageId=earliest"):
            for _ in range(3):
                assert await closed(broker, path) == reason
        lines = [line for line in caplog.text.splitlines() if "a WebSocket" in line]
        assert len(lines) == 2, "each is said once"
        assert f"magnetar admin topics skip {topic} -s s -n 1, when it is the first" in lines[0]
        following = re.search(r"messageId=(\S+)", lines[1])
        assert following is not None
        async with await opened(broker, f"{R}{name}?messageId={following[1]}") as reader:
            assert base64.b64decode((await said(reader))["payload"]) == b"good"
        assert (await broker.ask("POST", f"{TOPIC}/{name}/subscription/s/skip/1"))[0] == 204
        async with await opened(broker, f"{C}{name}/s?subscriptionType=Shared") as consumer:
            assert base64.b64decode((await said(consumer))["payload"]) == b"good"

    run_on_broker(tmp_path, scenario)
