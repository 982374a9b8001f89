"""When Python's cyclic garbage collector looks at what: never again at what is just there.

A collection walks over all objects that are not frozen, and a hundred thousand topics or subscriptions are millions: a
quarter of a second each time. So recovery, which leaves no garbage, runs without collections, and whenever much has
come since the last time, garbage is collected and what is left is frozen: it is not looked at any more. What goes needs
no collection, because a closed topic with its subscriptions is no reference cycle (tests/sim/test_deleted_topics.py);
when very much has gone, what is left is thawed, in case something else that was frozen with it was one.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Final

from magnetar.runtime.memory.trim import trim

EVERY_SECONDS: Final = 0.25
_YOUNG_OBJECTS: Final = 50_000
"""Young objects before a collection: entries in flight are not garbage, and looking at them again and again is slow."""
_YOUNG_COLLECTIONS: Final = 5
"""Collections of young objects before one of those that survived them as well."""
_CAME: Final = 25_000
"""Blocks of memory in use that come before what is there is frozen again: those of 400 subscriptions, and 2 to 5
milliseconds for the collection. All together take as long as fewer ones would: each object is looked at once."""
_WENT: Final = 1_000_000
"""Blocks that go before what is there is thawed."""


class GarbageCollection:
    """Made before recovery begins; asked to look once in a while."""

    def __init__(self) -> None:
        gc.disable()
        self._frozen = 0
        """Blocks in use at the last freeze or thaw."""
        self._in_use: Callable[[], int] = lambda: 0

    def recovered(self) -> None:
        """What recovery made stays; collections begin."""
        gc.freeze()
        gc.enable()

    def complete(self, in_use: Callable[[], int]) -> None:
        """REST has been built, which leaves megabytes of garbage; the system gets half a megabyte of it back.

        ``in_use`` counts blocks of Python's allocator.
        """
        self._in_use = in_use
        gc.set_threshold(_YOUNG_OBJECTS, _YOUNG_COLLECTIONS, 20)
        gc.collect()
        trim()
        gc.freeze()
        self._frozen = in_use()

    async def look(self) -> None:
        """Freeze or thaw, by how much is in use now."""
        now = self._in_use()
        if now >= self._frozen + _CAME:
            # what is frozen as garbage stays, and keeps the memory around it
            gc.collect()
            gc.freeze()
            self._frozen = now
        elif now <= self._frozen - _WENT:
            gc.unfreeze()
            self._frozen = now
