"""A metadata store whose writes wait, as one that several brokers share: everything else may happen meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from magnetar.app.node import Broker
from magnetar.metadata.store import MetadataStore

Store = TypeVar("Store", bound=MetadataStore)


def made_late(store: Store, wait: Callable[[], Awaitable[object]]) -> Store:
    """Make the store judge each of its writes after ``wait()``, and return it."""
    put, delete = store.put, store.delete

    async def late_put(path: str, data: bytes, expected: int | None = None) -> int:
        await wait()
        return await put(path, data, expected)

    async def late_delete(path: str, expected: int | None = None) -> None:
        await wait()
        await delete(path, expected)

    patched: Any = store
    patched.put, patched.delete = late_put, late_delete
    return store


def late_metadata(broker: Broker) -> None:
    """Writes of the broker's metadata take up to 20 ms each (decision 027)."""
    made_late(broker._metadata, lambda: asyncio.sleep(broker.service.rng.uniform(0, 0.02)))
