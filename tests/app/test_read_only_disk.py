"""A file system that turns read-only under the broker, as ext4 does after an error: what is stored can be read.

It is a bind mount, which only root can make; elsewhere the test is skipped.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

from magnetar.protocol.commands import InitialPosition, SubType
from magnetar.testing.rawclient import payload_of
from tests.support.connected import connected
from tests.support.read_only_mount import read_only
from tests.support.standalone import ports, standalone

T = "persistent://public/default/t"
MESSAGES = 300
SIZE = 100_000
"""So that they are no longer in memory when they are read."""


async def steps(port: int, data: Path) -> None:
    async with connected(port) as client:
        producer = await client.producer(T)
        for number in range(MESSAGES):
            await producer.publish(b"%d" % number + b" " * SIZE)
        with read_only(data / "ledgers"):
            consumer = await client.subscribe(
                T, "reader", SubType.Exclusive, initial_position=InitialPosition.Earliest, durable=False
            )
            consumer.flow(MESSAGES)
            got = [int(payload_of((await consumer.receive()).entry).split()[0]) for _ in range(MESSAGES)]
            assert got == list(range(MESSAGES))


def test_what_is_stored_can_be_read(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with standalone(data) as (_, line):
        asyncio.run(steps(ports(line)[0], data))
