"""A topic with small ledgers that are offloaded: publishing, reading back, and the state of a run."""

from __future__ import annotations

import asyncio
from typing import Any

from magnetar.protocol import commands as c
from magnetar.testing.rawclient import payload_of
from tests.support.real_broker import TOPIC, RealBroker

T = "persistent://public/default/t"
URL = f"{TOPIC}/t"
EARLIEST = c.MessageIdData(-1, -1)
SMALL_LEDGERS: dict[str, Any] = {
    "managedLedgerMaxEntriesPerLedger": 20,
    "managedLedgerMinLedgerRolloverTimeMinutes": 0,
    "managedLedgerOffloadDeletionLagMs": 0,
}


def value(i: int) -> bytes:
    return b"%d-" % i + bytes([i % 251]) * 400


async def publish(broker: RealBroker, start: int, stop: int) -> None:
    client = await broker.client()
    producer = await client.producer(T)
    for i in range(start, stop):
        await producer.publish(value(i))
    await client.close()


async def values(broker: RealBroker, count: int) -> list[bytes]:
    """The payloads of the first ``count`` messages."""
    client = await broker.client()
    reader = await client.subscribe(T, "r", c.SubType.Exclusive, durable=False, start_message_id=EARLIEST)
    reader.flow(count)
    out = [payload_of((await reader.receive()).entry) for _ in range(count)]
    await client.close()
    return out


async def finished(broker: RealBroker) -> dict[str, Any]:
    while True:
        status, answer = await broker.ask("GET", f"{URL}/offload")
        assert status == 200
        if answer["status"] != "RUNNING":
            assert isinstance(answer, dict)
            return answer
        await asyncio.sleep(0.01)


async def ledgers(broker: RealBroker) -> list[dict[str, Any]]:
    found = (await broker.ask("GET", f"{URL}/offload/ledgers"))[1]["ledgers"]
    assert isinstance(found, list)
    return found


async def keep(broker: RealBroker) -> None:
    assert (await broker.ask("PUT", f"{URL}"))[0] == 204
    assert (await broker.ask("PUT", f"{URL}/subscription/keeps", {"ledgerId": -1, "entryId": -1}))[0] in (200, 204)
