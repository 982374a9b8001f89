"""Looks from time to time which clusters of an `AutoClusterFailover` are there: the I/O around `ClusterChoice`."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from magnetar.client.aio.connections.service import Service
from magnetar.client.machines.cluster_choice import ClusterChoice

_LOG: Final = logging.getLogger(__name__)


class ClusterWatch:
    """One task, from `begin` to `end`."""

    def __init__(
        self,
        choice: ClusterChoice,
        clusters: list[Service],
        interval: float,
        reaches: Callable[[Service], Awaitable[bool]],
        move: Callable[[int], None],
    ) -> None:
        """``interval``: seconds between two rounds; ``move`` is called with the number of the cluster to use."""
        self._choice = choice
        self._clusters = clusters
        self._interval = interval
        self._reaches = reaches
        self._move = move
        self._task = asyncio.get_running_loop().create_task(self._run(), name="watch of clusters")

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(self._interval)
            before = self._choice.current
            await self._round()
            if self._choice.current != before:
                self._move(self._choice.current)

    async def _round(self) -> None:
        looking = self._choice.round()
        try:
            number = next(looking)
            while True:
                number = looking.send(await self._answers(number))
        except StopIteration:
            pass

    async def _answers(self, number: int) -> bool:
        try:
            return await self._reaches(self._clusters[number])
        except Exception as error:  # an error of ours must not end the watch
            _LOG.warning("cluster %d cannot be looked at: %s", number, error)
            return False

    def end(self) -> None:
        """Look no more."""
        self._task.cancel()
