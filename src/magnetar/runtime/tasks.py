"""Named background tasks that cannot be lost: every task has an owner, and its failure is logged once."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any

log = logging.getLogger(__name__)


class TaskGroup:
    """The background tasks of one owner.

    Not for the path of a message: that path has no task (ARCHITECTURE, "Speed").
    """

    def __init__(self, owner: str) -> None:
        self._owner = owner
        self._tasks: set[asyncio.Task[Any]] = set()

    def start(self, coroutine: Coroutine[Any, Any, object], name: str) -> asyncio.Task[Any]:
        """Run ``coroutine`` until it ends or :meth:`close`; an exception is logged under ``owner/name``."""
        task = asyncio.get_running_loop().create_task(coroutine, name=f"{self._owner}/{name}")
        self._tasks.add(task)
        task.add_done_callback(self._finished)
        return task

    def _finished(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("background task %s failed", task.get_name(), exc_info=error)

    async def close(self) -> None:
        """Cancel what still runs and wait until it has ended."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
