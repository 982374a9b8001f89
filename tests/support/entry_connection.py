"""A consumer's connection that keeps the entries which it gets."""

from __future__ import annotations

import asyncio

from typing_extensions import override

from magnetar.broker.topic.ports import EntryRun
from tests.support.subscription_fakes import FakeConnection


class EntryConnection(FakeConnection):
    """Keeps the entries themselves."""

    def __init__(self) -> None:
        super().__init__()
        self.entries: list[bytes] = []
        self.arrived = asyncio.Event()

    @override
    def _take(self, run: EntryRun, index: int, count: int, ack_set: tuple[int, ...], epoch: int | None) -> None:
        self.got.append((run.first + index, count, ack_set, epoch))
        self.entries.append(run.entries[index])
        self.arrived.set()


async def until(connection: EntryConnection, entries: int) -> None:
    async with asyncio.timeout(20):
        while len(connection.got) < entries:
            connection.arrived.clear()
            await connection.arrived.wait()
