"""A metadata store whose writes wait, as one that several brokers share: everything else may happen meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

from magnetar.app.node import Broker
from magnetar.metadata.store import MetadataStore, RecordWrite

Store = TypeVar("Store", bound=MetadataStore)


def made_late(store: Store, wait: Callable[[], Awaitable[object]]) -> Store:
    """Make the store judge each of its writes after ``wait()``, and return it."""
    write = store.write

    async def late_write(writes: Sequence[RecordWrite]) -> None:
        await wait()
        await write(writes)

    patched: Any = store  # whose put and delete write as well
    patched.write = late_write
    return store


def late_metadata(broker: Broker) -> None:
    """Writes of the broker's metadata take up to 20 ms each (decision 027)."""
    made_late(broker._metadata, lambda: asyncio.sleep(broker.service.rng.uniform(0, 0.02)))
