"""AUTO_SPLIT by ranges: a newcomer takes the lower half of the biggest range (rules 5.6.4 to 5.6.6).

The state is one ascending list of upper bounds with an owner each; a range reaches from the bound below it, exclusive,
to its own, inclusive. The topmost bound is always 65536. A heap finds the biggest range; its items of ranges that
have changed since are recognized and dropped when they come up.
"""

from __future__ import annotations

from bisect import bisect_left
from heapq import heapify, heappop, heappush

from magnetar.broker.delivery.consumer_state import ConsumerState
from magnetar.broker.delivery.sticky_keys.selector import Intervals
from magnetar.model.errors import ConsumerAssignError
from magnetar.model.hashing import RANGE_SIZE, range_slot


class HashRanges:
    """Divides all slots into ranges, one for each consumer."""

    def __init__(self) -> None:
        self._uppers: list[int] = []
        self._owners: list[ConsumerState] = []
        self._upper_of: dict[ConsumerState, int] = {}
        self._biggest: list[tuple[int, int]] = []
        """(-size, lower bound) of every range, and of some that do not exist any more."""

    def add(self, consumer: ConsumerState) -> Intervals:
        if not self._uppers:
            self._uppers.append(RANGE_SIZE)
            self._owners.append(consumer)
            self._upper_of[consumer] = RANGE_SIZE
            self._biggest = [(-RANGE_SIZE, 0)]
            return [(0, RANGE_SIZE)]
        at = self._split_at()
        upper = self._uppers[at]
        lower = self._uppers[at - 1] if at else 0
        size = upper - lower
        if size < 2:
            raise ConsumerAssignError(
                f"No more range can assigned to new consumer, assigned consumers {len(self._owners)}"
            )
        middle = upper - (size >> 1)
        self._uppers.insert(at, middle)
        self._owners.insert(at, consumer)
        self._upper_of[consumer] = middle
        heappush(self._biggest, (lower - middle, lower))
        heappush(self._biggest, (middle - upper, middle))
        return [(lower + 1 if lower else 0, middle)]

    def _split_at(self) -> int:
        """Index of the biggest range, the lowest of several."""
        heap, uppers = self._biggest, self._uppers
        if len(heap) > 4 * len(uppers) + 64:
            heap[:] = [(lower - upper, lower) for lower, upper in zip([0, *uppers[:-1]], uppers, strict=True)]
            heapify(heap)
        while True:
            minus_size, lower = heap[0]
            at = bisect_left(uppers, lower - minus_size)  # there always is one: the topmost bound is RANGE_SIZE
            if uppers[at] == lower - minus_size and (uppers[at - 1] if at else 0) == lower:
                return at
            heappop(heap)

    def remove(self, consumer: ConsumerState) -> Intervals:
        uppers, owners = self._uppers, self._owners
        upper = self._upper_of.pop(consumer)
        at = bisect_left(uppers, upper)
        lower = uppers[at - 1] if at else 0
        last = len(uppers) - 1
        if at == last and last > 0:
            del uppers[at - 1]  # the left neighbour takes over the topmost bound
            self._upper_of[owners[at - 1]] = upper
        else:
            del uppers[at]
        del owners[at]
        if uppers:
            at = min(at, len(uppers) - 1)
            below = uppers[at - 1] if at else 0
            heappush(self._biggest, (below - uppers[at], below))
        return [(lower + 1 if lower else 0, upper)]

    def select(self, slot: int) -> ConsumerState | None:
        return self._owners[bisect_left(self._uppers, slot)] if self._uppers else None

    key_slot = staticmethod(range_slot)

    def ranges(self) -> dict[ConsumerState, list[tuple[int, int]]]:
        lowers = [0, *(upper + 1 for upper in self._uppers)]
        return {owner: [(lowers[i], self._uppers[i])] for i, owner in enumerate(self._owners)}
