"""The memory of a broker's process: what is free goes back to the system once in a while.

``runtime/memory`` has the parts: when to look for it, and what Python, its libraries and the C library keep.
"""

from __future__ import annotations

import asyncio
import sys

from magnetar.model.names import forget_names
from magnetar.runtime.memory.balloon import Balloon
from magnetar.runtime.memory.free_lists import FreeLists
from magnetar.runtime.memory.trim import MemoryTrimmer
from magnetar.storage.local_store import LocalLedgerStore


class Memory:
    """Of one process; made when the broker has what it needs to run."""

    def __init__(self, store: LocalLedgerStore) -> None:
        self._store = store
        self._balloon = Balloon()
        self._free_lists = FreeLists()
        self._trimmer = MemoryTrimmer(self._forget, self._balloon.fill)

    async def look(self) -> None:
        """Give back what is free, if it may be much."""
        more = True
        while more:
            more = self._store.cache.tidy()
            await asyncio.sleep(0)
        await self._trimmer.trim_if_grown()

    def blocks_in_use(self) -> int:
        """Blocks of Python's allocator that something uses."""
        return sys.getallocatedblocks() - self._balloon.blocks

    async def _forget(self) -> None:
        """Let go of what can be made anew."""
        forget_names()
        self._store.give_back_memory()
        await self._balloon.empty()
        await self._free_lists.give_back()
