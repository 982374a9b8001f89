"""A metadata store whose writes wait, as those of several brokers do: everything else may happen meanwhile."""

from __future__ import annotations

import asyncio

from magnetar.testing.memory_metadata import MemoryMetadataStore


class SlowMetadataStore(MemoryMetadataStore):
    """Writes of one turn of the loop are judged one turn later."""

    async def put(self, path: str, data: bytes, expected: int | None = None) -> int:
        await asyncio.sleep(0)
        return await super().put(path, data, expected)

    async def delete(self, path: str, expected: int | None = None) -> None:
        await asyncio.sleep(0)
        await super().delete(path, expected)
