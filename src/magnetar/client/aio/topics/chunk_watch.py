"""When a consumer looks for chunks that do not come."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from magnetar.client.aio.topics.due_timer import DueTimer
from magnetar.client.machines.consumption import Consumption
from magnetar.runtime.clock import Clock

_PASS: Final = 10.0
"""Seconds between two looks."""


class ChunkWatch:
    """Looks after the chunks of one consumer, as long as there are some without the rest of their message."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, clock: Clock, consumption: Consumption, settle_soon: Callable[[], None]
    ) -> None:
        """``settle_soon`` has written what is due after a look."""
        self._loop, self._clock = loop, clock
        self._consumption, self._settle_soon = consumption, settle_soon
        self._timer = DueTimer(loop, self._look)
        self.active = True
        """Whether a Failover subscription gives the consumer messages."""

    def go_on(self) -> None:
        """Look again in a while, if there is something to look at."""
        if self._consumption.chunks.waiting:
            self._timer.by(self._loop.time() + _PASS)

    def _look(self) -> None:
        self._consumption.expire_chunks(self._clock.now_ms(), active=self.active)
        self.go_on()
        self._settle_soon()

    def end(self) -> None:
        """Look never again; nothing refers to the consumer from here."""
        self._timer.end()
        self._settle_soon = _nothing


def _nothing() -> None:
    return
