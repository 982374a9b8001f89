"""Which messages of those at hand a handler may have now: some at a time, and of one key one after the other.

    add -> waiting -> started -> done
              ^          |
              +- held <--+      it is to be tried again later, and what has the same key waits for it

Items are the caller's and hashable; times are seconds of any clock.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Hashable, Iterator
from typing import Final, Generic, TypeVar

Item = TypeVar("Item", bound=Hashable)

NEVER: Final = float("inf")


class _Chain(Generic[Item]):
    """The items of one key, in the order they came; its first one may be started or held."""

    __slots__ = ("attempts", "items", "key")

    def __init__(self, key: Hashable) -> None:
        self.key = key
        self.items: deque[Item] = deque()
        self.attempts = 0
        """How often the first one was started."""


class HandlerSchedule(Generic[Item]):
    """The messages at hand; the caller owns time and the handlers."""

    def __init__(self, concurrency: int, in_hand: int) -> None:
        """``concurrency``: how many may be started at a time; ``in_hand``: how many may be here in all."""
        self._concurrency = concurrency
        self._in_hand = in_hand
        self._chains: dict[Hashable, _Chain[Item]] = {}
        self._ready: deque[_Chain[Item]] = deque()
        self._started: dict[Item, _Chain[Item]] = {}
        self._held: list[tuple[float, int, _Chain[Item]]] = []
        self._turn = 0
        self._count = 0

    @property
    def room(self) -> bool:
        """Whether another message may be added."""
        return self._count < self._in_hand

    @property
    def started(self) -> int:
        """How many were started and are not done."""
        return len(self._started)

    @property
    def empty(self) -> bool:
        """Whether nothing is at hand."""
        return not self._count

    @property
    def next_due(self) -> float:
        """When the first held one may be tried again; `NEVER` if none is held."""
        return self._held[0][0] if self._held else NEVER

    def add(self, item: Item, key: Hashable | None) -> None:
        """Take a message in; one without a key waits for no other."""
        self._count += 1
        name = (item,) if key is None else key
        chain = self._chains.get(name)
        if chain is None:
            chain = self._chains[name] = _Chain(name)
            self._ready.append(chain)
        chain.items.append(item)

    def start(self, now: float) -> Iterator[tuple[Item, int]]:
        """Yield what may be started now, each with how often it was tried before; it counts as started then."""
        while self._held and self._held[0][0] <= now:
            self._ready.append(heapq.heappop(self._held)[2])
        while self._ready and len(self._started) < self._concurrency:
            chain = self._ready.popleft()
            item = chain.items[0]
            self._started[item] = chain
            chain.attempts += 1
            yield item, chain.attempts - 1

    def done(self, item: Item) -> None:
        """Let go of a started message; the next one of its key may be started."""
        chain = self._started.pop(item)
        chain.items.popleft()
        chain.attempts = 0
        self._count -= 1
        if chain.items:
            self._ready.append(chain)
        else:
            del self._chains[chain.key]

    def hold(self, item: Item, until: float) -> None:
        """Keep a started message to be tried again at that time, and before it nothing of the same key."""
        chain = self._started.pop(item)
        self._turn += 1
        heapq.heappush(self._held, (until, self._turn, chain))

    def give_up(self) -> list[Item]:
        """Let go of all that is not started, and return it."""
        left: list[Item] = []
        started = {id(chain) for chain in self._started.values()}
        for name, chain in list(self._chains.items()):
            keep = 1 if id(chain) in started else 0
            while len(chain.items) > keep:
                left.append(chain.items.pop())
            if not chain.items:
                del self._chains[name]
        self._ready.clear()
        self._held.clear()
        self._count -= len(left)
        return left

    def check(self) -> None:
        """Assert what must always hold."""
        assert 0 <= len(self._started) <= self._concurrency
        assert self._count == sum(len(chain.items) for chain in self._chains.values())
        assert all(chain.items[0] == item for item, chain in self._started.items()), "started out of order"
        states = [id(chain) for chain in self._ready]
        states += [id(chain) for _, _, chain in self._held]
        states += [id(chain) for chain in self._started.values()]
        assert sorted(states) == sorted(id(chain) for chain in self._chains.values()), "a key is in one state"
