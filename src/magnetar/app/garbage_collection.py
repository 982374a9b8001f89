"""When Python's cyclic garbage collector looks at what: never at very many topics that are just there.

A collection walks over all objects that are not frozen, and a hundred thousand topics are millions: a quarter of a
second each time. So recovery, which leaves no garbage, runs without collections, and whenever many topics have come
since the last time, what is there is frozen: it is not looked at any more. Topics that go need no collection, because a
closed topic is no reference cycle (tests/sim/test_deleted_topics.py); when very many have gone, what is left is thawed,
in case something else that was frozen with them was one.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Final

from magnetar.runtime.memory.trim import trim

EVERY_SECONDS: Final = 1.0
_YOUNG_OBJECTS: Final = 50_000
"""Young objects before a collection: entries in flight are not garbage, and looking at them again and again is slow."""
_CAME: Final = 1000
"""Topics that come before what is there is frozen again."""
_WENT: Final = 10_000
"""Topics that go before what is there is thawed."""


class GarbageCollection:
    """Made before recovery begins; asked to look once in a while."""

    def __init__(self) -> None:
        gc.disable()
        self._frozen = 0
        """Topics at the last freeze or thaw."""

    def recovered(self) -> None:
        """What recovery made stays; collections begin."""
        gc.freeze()
        gc.enable()

    def complete(self) -> None:
        """REST has been built, which leaves megabytes of garbage; the system gets half a megabyte of it back."""
        gc.set_threshold(_YOUNG_OBJECTS, 20, 20)
        gc.collect()
        trim()
        gc.freeze()

    async def look(self, topics: Callable[[], int]) -> None:
        """Freeze or thaw, by how many topics are loaded now."""
        now = topics()
        if now >= self._frozen + _CAME:
            # what is frozen as garbage stays, and keeps the memory around it
            gc.collect(0)
            gc.freeze()
            self._frozen = now
        elif now <= self._frozen - _WENT:
            gc.unfreeze()
            self._frozen = now
