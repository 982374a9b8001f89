"""Permits of all topics of one consumer as one budget: how many entries it may hold ahead of the application.

A broker takes no permit back, and which topic has a message is not known. So permits go out one after the other:

    idle  --in turn, while there is room-->  fresh  --patience over-->  listening
      ^                                        |                           |
      +----------------- an entry came --------+---------------------------+

While topics have messages each permit brings one at once, and no other is out. Where nothing comes the next topic gets
its permit, too, until all listen. What comes then without room is handed back at once: each permit brings that once.

A topic counts as holding from its entry's arrival until the last message of it was taken: a batch comes as a whole, and
so does a message in chunks, whose further chunks are always asked for.
"""

from __future__ import annotations

from collections.abc import Hashable
from itertools import islice
from typing import Final, Generic, TypeVar

K = TypeVar("K", bound=Hashable)

PATIENCE: Final = 0.1
"""Seconds that a topic has before the next one gets a permit, too."""
NEVER: Final = float("inf")


class PrefetchBudget(Generic[K]):
    """The budget of one consumer; the caller owns time, and does what `grant` and `excess` say."""

    def __init__(self, size: int, patience: float = PATIENCE) -> None:
        """``size``: entries that may be held unasked; 0: as many as receives wait."""
        self._size = size
        self._patience = patience
        self.receiving = 0
        """How many receives wait for a message."""
        self.due = NEVER
        """When `grant` is to be called again."""
        self._idle: dict[K, None] = {}
        """Those without a permit, the next one first."""
        self._fresh: dict[K, float] = {}
        """Those that got one just now, and when, the oldest first."""
        self._listening: set[K] = set()
        self._holding: dict[K, None] = {}
        self._unfinished: set[K] = set()
        self._step = 1
        """How many are to be fresh at a time."""

    @property
    def room(self) -> int:
        """How many more entries may be held."""
        return (self._size or self.receiving) - len(self._holding)

    @property
    def excess(self) -> bool:
        """Whether more is held than may be."""
        return self.room < 0

    @property
    def holding(self) -> list[K]:
        """Those of which messages wait, the last one to begin last."""
        return list(self._holding)

    def note(self, one: K, *, holds: bool, permitted: bool, unfinished: bool = False) -> None:
        """Take note of a topic: whether messages of it wait, whether an entry may come, and whether one has come in
        part."""
        if holds:
            self._holding.setdefault(one)
        else:
            self._holding.pop(one, None)
        if unfinished:
            self._unfinished.add(one)
        else:
            self._unfinished.discard(one)
        if permitted:
            if one in self._idle:
                del self._idle[one]
                self._listening.add(one)
        elif one not in self._idle:
            self._fresh.pop(one, None)
            self._listening.discard(one)
            self._idle[one] = None
            self._step = 1

    def left(self, one: K) -> None:
        """Forget a topic that is not subscribed any more, or not at the moment."""
        self._idle.pop(one, None)
        self._fresh.pop(one, None)
        self._holding.pop(one, None)
        self._listening.discard(one)
        self._unfinished.discard(one)

    def grant(self, now: float) -> list[K]:
        """Return those that get a permit now, each for one entry."""
        expired = False
        for one, since in list(self._fresh.items()):
            if since + self._patience > now:
                break
            del self._fresh[one]
            self._listening.add(one)
            expired = True
        if expired:
            self._step *= 2
        chosen = [one for one in self._idle if one in self._unfinished] if self._unfinished else []
        more = max(self.room, self._step) - len(self._fresh) - len(chosen) if self.room > 0 else 0
        if more > 0:
            chosen += islice((one for one in self._idle if one not in self._unfinished), more)
        for one in chosen:
            del self._idle[one]
            self._fresh[one] = now
        waits = self._idle and self._fresh and self.room > 0
        self.due = next(iter(self._fresh.values())) + self._patience if waits else NEVER
        return chosen

    def check(self) -> None:
        """Assert what must always hold: each topic stands in one place."""
        assert not self._idle.keys() & self._fresh.keys()
        assert not self._listening & (self._idle.keys() | self._fresh.keys())
