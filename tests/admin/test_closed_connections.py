"""What a closed connection was made of is freed at once, however it ended: nothing waits for the garbage collector.

Python looks at what lives long only after millions of objects. What hundreds of closed connections were made of then
stays for minutes, among what others need, and memory does not go back to the system. Counted is what one collection
finds; a suspended generator counts too, which `gc.garbage` would not show.
"""

from __future__ import annotations

import asyncio
import gc
import socket
import struct
from collections import Counter
from collections.abc import Collection, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

import pytest
import uvloop

from magnetar.protocol import commands as c
from magnetar.protocol.codec import encode
from tests.support.async_websocket import KEY, PRODUCER, door, handshake
from tests.support.real_broker import HOST, real_broker
from tests.support.websocket_frames import CLOSE, CONTINUATION, TEXT, ws_frame

T = "persistent://public/default/t"
_NOISE: Final = {"dict", "tuple"}
"""The collector forgets those that hold nothing which could refer to anything."""


SOCKETS: Final = {
    "producer": (PRODUCER, b'{"payload":"eA=="}'),
    "consumer": ("/ws/v2/consumer/persistent/public/default/t/s?subscriptionType=Shared", b'{"type":"isEndOfTopic"}'),
    "reader": ("/ws/v2/reader/persistent/public/default/t?messageId=earliest", b'{"type":"isEndOfTopic"}'),
}
GET: Final = b"GET /admin/v2/clusters HTTP/1.1\r\nHost: localhost\r\n\r\n"
PUT: Final = (
    b"PUT /admin/v2/persistent/public/default/z HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    b"Content-Length: 1000\r\n\r\n{"
)
CONNECT: Final = encode(c.CommandConnect("test"))
SUBSCRIBE: Final = encode(c.CommandSubscribe(T, "s2", c.SubType.Shared, 1, 1)) + encode(c.CommandFlow(1, 100))

OVER_HTTP: Final[dict[str, Sequence[bytes]]] = {
    **{
        f"{kind} {what}": [handshake(path), *said]
        for kind, (path, message) in SOCKETS.items()
        for what, said in {
            "at once": [],
            "after a message": [ws_frame(TEXT, message)],
            "with a close frame": [ws_frame(TEXT, message), ws_frame(CLOSE, b"\x03\xe8")],
            "in a frame": [ws_frame(TEXT, b"x" * 1000)[:500]],
            "between frames": [ws_frame(TEXT, b"x", last=False) + ws_frame(CONTINUATION, b"y", last=False)],
            "after a broken frame": [b"\xff\xff\xff"],
            "after bad text": [ws_frame(TEXT, b"\xff\xfe")],
            "after nonsense": [ws_frame(TEXT, b"nonsense")],
        }.items()
    },
    "a socket without a key": [handshake(PRODUCER).replace(KEY.encode(), b"")],
    "a socket of no route": [handshake("/ws/v2/nowhere")],
    "a socket of no namespace": [handshake("/ws/v2/consumer/persistent/nope/none/t/s")],
    "a request": [GET],
    "requests": [GET * 20],
    "half a head": [GET[:30]],
    "half a body": [PUT],
    "no HTTP": [b"\x00\xff nonsense\r\n\r\n"],
    "no route": [GET.replace(b"clusters", b"nonsense")],
}
BINARY: Final[dict[str, Sequence[bytes]]] = {
    "nothing": [],
    "CONNECT": [CONNECT],
    "no command": [b"\x00\x00\x00\x05nonsense"],
    "half a frame": [CONNECT, b"\x00\x10\x00\x00abc"],
    "a producer": [CONNECT, encode(c.CommandProducer(T, 1, 1))],
    "a refused producer": [CONNECT, encode(c.CommandProducer("persistent://nope/none/t", 1, 1))],
    "a consumer": [CONNECT, SUBSCRIBE],
    "a watched list": [CONNECT, encode(c.CommandWatchTopicList(1, 1, "public/default", ".*"))],
}
ENDS: Final = ("closed", "reset", "half closed")


def _talk(port: int, parts: Sequence[bytes], end: str) -> None:
    with socket.create_connection((HOST, port)) as connection:
        connection.settimeout(0.05)
        with suppress(OSError):
            for part in parts:
                connection.sendall(part)
                with suppress(TimeoutError):
                    connection.recv(1 << 16)
            if end == "reset":
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            elif end == "half closed":
                connection.shutdown(socket.SHUT_WR)
                connection.recv(1 << 16)


def _there() -> Counter[str]:
    return Counter(name for one in gc.get_objects() if (name := type(one).__qualname__) not in _NOISE)


async def _left(port: int, cases: Collection[Sequence[bytes]], end: str) -> Counter[str]:
    """What a collection finds of three connections of each case, once they have ended."""

    async def all_of_them() -> None:
        await asyncio.gather(*(asyncio.to_thread(_talk, port, parts, end) for parts in cases))
        await asyncio.sleep(0.5)  # what is under way is not garbage yet

    await all_of_them()  # what comes with the first ones stays
    gc.collect()
    gc.disable()
    try:
        for _ in range(3):
            await all_of_them()
        before = _there()
        gc.collect()
        return before - _there()
    finally:
        gc.enable()


@pytest.mark.parametrize("end", ENDS)
def test_nothing_of_it_waits_for_the_garbage_collector(tmp_path: Path, end: str) -> None:
    async def main() -> None:
        async with real_broker(tmp_path / "data") as broker:
            for port, cases in ((door(broker), OVER_HTTP), (broker.node.port, BINARY)):
                if await _left(port, cases.values(), end):
                    alone = {name: await _left(port, [parts], end) for name, parts in cases.items()}
                    assert {name: left for name, left in alone.items() if left} == {}

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main())
