"""What happens without anybody asking: trimming of consumed ledgers, rollover by time, removal of dead segments."""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from magnetar.broker.service import BrokerService
from magnetar.runtime.tasks import TaskGroup

log = logging.getLogger(__name__)

_TRIM_SECONDS: Final = 10.0
_TOPICS_PER_TURN: Final = 200


class Upkeep:
    """One background task for the whole broker."""

    def __init__(self, service: BrokerService) -> None:
        self._service = service
        self._tasks = TaskGroup("upkeep")

    def start(self) -> None:
        """Begin; needs a running loop."""
        self._tasks.start(self._run(), "trim")

    async def close(self) -> None:
        """End."""
        await self._tasks.close()

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(_TRIM_SECONDS)
            try:
                await self.trim()
            except Exception:
                log.exception("trimming failed; it is tried again in %g s", _TRIM_SECONDS)

    async def trim(self) -> int:
        """Drop closed ledgers that every durable subscription has consumed (SEMANTICS 4.2.2); how many."""
        self._service.unstored.collect()
        dropped = 0
        for i, topic in enumerate(list(self._service.topics.values())):
            if i % _TOPICS_PER_TURN == _TOPICS_PER_TURN - 1:
                await asyncio.sleep(0)
            dropped += topic.trim()
        if dropped:
            await self._service.store.journal.drain()
            await self._service.store.remove_dead()
        return dropped
