"""What happens when the disk is full: publishing stops, the reserve is given up, and what can go is removed.

The journal calls :meth:`FullDisk.run_out` when a write was refused for want of space. From then on it takes no entries;
acknowledgements, deletions and trims are written into the space that the reserve gave. Every second it is looked
whether the disk has room for the reserve again, and whether segments are dead that only wait for a checkpoint.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from magnetar.model.errors import MagnetarError, PersistenceError
from magnetar.runtime.tasks import TaskGroup
from magnetar.storage.backends.journal_backend import SpaceReserve
from magnetar.storage.log.journal import Journal

log = logging.getLogger(__name__)

_LOOK_SECONDS: Final = 1.0
_WORTH: Final = 4
"""A checkpoint is written for the sake of so large a part of the reserve."""
_FULL: Final = (
    "the disk is full: nothing is published until there is room; acknowledge or delete what is no longer needed, or "
    "give the disk more space"
)


class FullDisk:
    """Belongs to one store; lives on its loop."""

    def __init__(
        self, reserve: SpaceReserve, journal: Journal, remove: Callable[[int], Awaitable[None]], tasks: TaskGroup
    ) -> None:
        """``remove(least)``: remove what is not needed, and do what removing waits for if so many bytes wait."""
        self.reserve = reserve
        self._journal = journal
        self._remove = remove
        self._tasks = tasks
        self.let_go: Callable[[], Awaitable[object]] = _nothing
        """Trims what every subscription has consumed, before it is looked for what is dead."""
        self._started = False
        self._watching = False
        journal.on_full = self.run_out

    def before_start(self) -> None:
        """A start may have to keep what it cannot read, and writes a checkpoint: let it, if nothing else is left."""
        if self.reserve.short():
            self.reserve.give_up()

    def start(self) -> None:
        """Have the reserve, or begin without publishing."""
        self._started = True
        if self._journal.full is not None or not self.reserve.take():
            self.run_out()

    def run_out(self) -> bool:
        """A write was refused because the disk is full; whether it may be tried again at once."""
        given = self.reserve.give_up()
        if self._journal.full is None:
            self._journal.full = PersistenceError(_FULL)
            log.error(_FULL)
        if self._started and not self._watching:
            self._watching = True
            self._tasks.start(self._watch(), "room")
        return given

    async def _watch(self) -> None:
        try:
            while True:
                await asyncio.sleep(_LOOK_SECONDS)
                if self.reserve.take():
                    self._journal.full = None
                    log.warning("the disk has room again: publishing goes on")
                    return
                try:
                    await self.let_go()
                    await self._remove(self.reserve.size() // _WORTH)
                except (OSError, MagnetarError) as error:
                    log.warning("nothing could be removed from the full disk: %s", error)
                except Exception as error:
                    # without another look nothing would be published again
                    log.exception("nothing could be removed from the full disk: %s", error)
        finally:
            self._watching = False


async def _nothing() -> None: ...
