"""A broker whose metadata store answers late, as one that several brokers share: clients meet no difference."""

from __future__ import annotations

import asyncio
from typing import Any

from magnetar.app.node import Broker
from tests.sim.test_schemas import versions
from tests.sim.test_topic_ends import ends
from tests.sim.world import run_seeds


def late(broker: Broker) -> None:
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


def test_schema_versions() -> None:
    """An answered version stays what it was, also when two clients register at the same moment (rule 10.4)."""
    run_seeds(versions, 6, tamper=late)


def test_deleted_topics() -> None:
    run_seeds(ends, 6, tamper=late)
