"""When Python's cyclic garbage collector looks at what: never at very many topics that are just there.

A collection walks over all objects that are not frozen, and a hundred thousand topics are millions: a quarter of a
second each time. So recovery, which leaves no garbage, runs without collections, and whenever many topics have come
since the last time, what is there is frozen: it is not looked at any more. It is thawed when many of them have gone, so
that what they leave in cycles can be found; of a few thousand it is collected at once, which takes less than a tenth of
a second.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Final

EVERY_SECONDS: Final = 1.0
_YOUNG_OBJECTS: Final = 50_000
"""Young objects before a collection: entries in flight are not garbage, and looking at them again and again is slow."""
_CAME: Final = 1000
"""Topics that come before what is there is frozen again."""
_WENT: Final = 10_000
"""Topics that go before it is thawed."""
_FEW: Final = 5_000
"""Topics, those that went included, that may be looked at in one go: some 600,000 objects."""
_SOME_WENT: Final = 200
"""Of so few, those that go before what they left is collected."""


class Collecting:
    """``topics``: how many are loaded. Make it before recovery begins."""

    def __init__(self) -> None:
        gc.disable()
        self._frozen = 0
        """Topics at the last look that did something."""
        self._most = 0
        """Topics at the same time since the last collection of all."""

    def recovered(self) -> None:
        """What recovery made stays; collections begin."""
        gc.freeze()
        gc.enable()

    def complete(self) -> None:
        """REST has been built, which leaves megabytes of garbage."""
        gc.set_threshold(_YOUNG_OBJECTS, 20, 20)
        gc.collect()
        gc.freeze()

    async def look(self, topics: Callable[[], int]) -> None:
        """Once in a while."""
        now = topics()
        self._most = max(self._most, now)
        if now <= self._most - _SOME_WENT and self._most <= _FEW:
            gc.unfreeze()
            gc.collect()
            gc.freeze()
            self._frozen = self._most = now
        elif now >= self._frozen + _CAME:
            gc.freeze()
            self._frozen = now
        elif now <= self._frozen - _WENT:
            gc.unfreeze()
            self._frozen = self._most = now
