"""What a WebSocket was made of is freed when it is closed: it is no cycle, so nothing waits for the garbage collector.

Python looks at what lives long only after millions of objects: hundreds of closed sockets held a hundred megabytes, and
collecting them took a quarter of a second.
"""

from __future__ import annotations

import asyncio
import gc
from collections import Counter
from pathlib import Path

import pytest

from magnetar.admin.http.websocket_connection import WebSocketConnection
from magnetar.admin.websocket.upgrade import Socket
from magnetar.broker.connection.inner_connection import InnerTransport
from magnetar.broker.connection.listener import Listener
from magnetar.broker.connection.session import Session
from magnetar.client.aio.client import Client
from magnetar.client.aio.connections.wire_connection import WireConnection
from magnetar.client.aio.consumers.consumer import Consumer
from magnetar.client.aio.producers.producer import Producer
from magnetar.client.aio.topics.topic_consumer import TopicConsumer
from magnetar.client.aio.topics.topic_producer import TopicProducer
from magnetar.client.machines.consumption import Consumption
from tests.support.async_websocket import answer, opened
from tests.support.real_broker import RealBroker, run_on_broker
from tests.support.websocket_frames import TEXT, ws_frame

PARTS = (
    WebSocketConnection, Socket, InnerTransport, Listener, Session, Client, WireConnection, Consumer, Producer,
    TopicConsumer, TopicProducer, Consumption,
)  # fmt: skip
ON = "persistent://public/default/"


def there() -> Counter[str]:
    return Counter(type(one).__name__ for one in gc.get_objects() if issubclass(type(one), PARTS))


@pytest.mark.parametrize("abruptly", [False, True])
@pytest.mark.parametrize(
    "path",
    [
        "/ws/v2/producer/persistent/public/default/t",
        "/ws/v2/consumer/persistent/public/default/t/s?subscriptionType=Shared",
        "/ws/v2/reader/persistent/public/default/t?messageId=earliest",
        f"/ws/v3/consumer/m?topics={ON}t,{ON}u",
        f"/ws/v3/consumer/p?topicsPattern={ON}.*",
    ],
)
def test_nothing_of_it_is_left(tmp_path: Path, path: str, abruptly: bool) -> None:
    async def one(broker: RealBroker) -> None:
        reader, writer = await opened(broker, path)
        if "producer" in path:
            writer.write(ws_frame(TEXT, b'{"payload":"eA=="}'))
        else:
            writer.write(ws_frame(TEXT, b'{"type":"isEndOfTopic"}'))
        assert await asyncio.wait_for(reader.read(10), 20)
        if abruptly:
            writer.transport.abort()
        else:
            writer.close()

    async def scenario(broker: RealBroker) -> None:
        reader, writer = await opened(broker)
        for _ in range(5):
            writer.write(ws_frame(TEXT, b'{"payload":"eA=="}'))
            await answer(reader)
        writer.close()
        await broker.ask("PUT", "/admin/v2/persistent/public/default/t/subscription/s", "earliest")
        await asyncio.sleep(0.2)
        gc.collect()
        gc.disable()
        try:
            before = there()
            for _ in range(3):
                await one(broker)
            for _ in range(200):
                await asyncio.sleep(0.02)
                if there() == before:
                    break
            assert there() - before == Counter()
        finally:
            gc.enable()

    run_on_broker(tmp_path, scenario)


def test_a_websocket_has_one_connection_inside(tmp_path: Path) -> None:
    """Lookups answer that requests are to be passed on, which takes nobody who has dialled the broker itself."""

    async def scenario(broker: RealBroker) -> None:
        gc.collect()
        before = there()
        reader, writer = await opened(broker)
        writer.write(ws_frame(TEXT, b'{"payload":"eA=="}'))
        assert (await answer(reader))["result"] == "ok"
        after = there()
        assert [after[kind] - before[kind] for kind in ("Session", "WireConnection", "InnerTransport")] == [1, 1, 2]
        writer.close()

    run_on_broker(tmp_path, scenario)
