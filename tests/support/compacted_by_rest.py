"""A topic of a real broker that is published to by the wire protocol and compacted over REST."""

from __future__ import annotations

import asyncio
from typing import Final

from magnetar.protocol import commands as c
from tests.support.real_broker import TOPIC, RealBroker

T: Final = "persistent://public/default/t"
URL: Final = f"{TOPIC}/t"


async def publish(broker: RealBroker, *messages: tuple[str, str], topic: str = T) -> list[c.MessageIdData]:
    client = await broker.client()
    producer = await client.producer(topic)
    ids = [await producer.publish(value.encode(), key=key) for key, value in messages]
    await client.close()
    return ids


async def compact(broker: RealBroker, url: str = URL) -> None:
    assert (await broker.ask("PUT", f"{url}/compaction"))[0] == 204
    await finished(broker, url)


async def finished(broker: RealBroker, url: str = URL) -> None:
    while True:
        status, answer = await broker.ask("GET", f"{url}/compaction")
        assert status == 200
        if answer["status"] != "RUNNING":
            assert answer == {"status": "SUCCESS", "lastError": ""}
            return
        await asyncio.sleep(0.01)
