"""AUTO_SPLIT by ranges: a newcomer takes the lower half of the biggest range (SEMANTICS 5.6.4 to 5.6.6).

The state is one ascending list of upper bounds with an owner each; a range reaches from the bound below it, exclusive,
to its own, inclusive. The topmost bound is always 65536.
"""

from __future__ import annotations

from bisect import bisect_left

from magnetar.broker.delivery.consumers import ConsumerState
from magnetar.model.errors import ConsumerAssignError
from magnetar.model.hashing import RANGE_SIZE, range_slot


class HashRanges:
    """Every consumer owns exactly one range."""

    def __init__(self) -> None:
        self._uppers: list[int] = []
        self._owners: list[ConsumerState] = []

    def add(self, consumer: ConsumerState) -> None:
        if not self._uppers:
            self._uppers.append(RANGE_SIZE)
            self._owners.append(consumer)
            return
        lowers = [0, *self._uppers]
        at = max(range(len(self._uppers)), key=lambda i: (self._uppers[i] - lowers[i], -i))
        upper, size = self._uppers[at], self._uppers[at] - lowers[at]
        if size < 2:
            raise ConsumerAssignError(
                f"No more range can assigned to new consumer, assigned consumers {len(self._owners)}"
            )
        self._uppers.insert(at, upper - (size >> 1))
        self._owners.insert(at, consumer)

    def remove(self, consumer: ConsumerState) -> None:
        at = self._owners.index(consumer)
        last = len(self._uppers) - 1
        if at == last and last > 0:
            del self._uppers[at - 1]  # the left neighbour takes over the topmost bound
        else:
            del self._uppers[at]
        del self._owners[at]

    def select(self, slot: int) -> ConsumerState | None:
        return self._owners[bisect_left(self._uppers, slot)] if self._uppers else None

    def key_slot(self, key: bytes) -> int:
        return range_slot(key)

    def ranges(self) -> dict[ConsumerState, list[tuple[int, int]]]:
        lowers = [0, *(upper + 1 for upper in self._uppers)]
        return {owner: [(lowers[i], self._uppers[i])] for i, owner in enumerate(self._owners)}
