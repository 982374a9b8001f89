"""A broker of the simulator whose metadata store answers late, as one that several brokers share (decision 027)."""

from __future__ import annotations

import asyncio
from typing import Any

from magnetar.app.node import Broker


def late_metadata(broker: Broker) -> None:
    """Writes of metadata take up to 20 ms each."""
    store: Any = broker._metadata
    put, delete = store.put, store.delete

    async def wait() -> None:
        await asyncio.sleep(broker.service.rng.uniform(0, 0.02))

    async def late_put(path: str, data: bytes, expected: int | None = None) -> int:
        await wait()
        number: int = await put(path, data, expected)
        return number

    async def late_delete(path: str, expected: int | None = None) -> None:
        await wait()
        await delete(path, expected)

    store.put, store.delete = late_put, late_delete
