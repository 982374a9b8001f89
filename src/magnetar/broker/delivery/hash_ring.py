"""AUTO_SPLIT by consistent hashing: 100 points per consumer on a ring of 65,535 slots (SEMANTICS 0.1 to 0.3, 5.6.7).

A slot belongs to the first point at or after it, wrapping to the lowest. Several consumers may hash to one point: the
first to come owns it, the others queue behind and take over when it leaves. Consumers of one name are told apart by a
name index, the lowest that is free when they join.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import Final

from magnetar.broker.delivery.consumers import ConsumerState
from magnetar.model.hashing import RING_SIZE, ring_points, ring_slot

POINTS: Final = 100


class HashRing:
    """``points`` is ``subscriptionKeySharedConsistentHashingReplicaPoints``."""

    def __init__(self, points: int = POINTS) -> None:
        self._count = points
        self._queues: dict[int, list[ConsumerState]] = {}
        self._points: list[int] = []
        self._indices: dict[ConsumerState, int] = {}

    def add(self, consumer: ConsumerState) -> None:
        taken = {index for other, index in self._indices.items() if other.name == consumer.name}
        index = next(i for i in range(len(taken) + 1) if i not in taken)
        self._indices[consumer] = index
        for point in ring_points(consumer.name, index, self._count):
            queue = self._queues.setdefault(point, [])
            if consumer not in queue:
                queue.append(consumer)
        self._points = sorted(self._queues)

    def remove(self, consumer: ConsumerState) -> None:
        for point in set(ring_points(consumer.name, self._indices.pop(consumer), self._count)):
            queue = self._queues[point]
            queue.remove(consumer)
            if not queue:
                del self._queues[point]
        self._points = sorted(self._queues)

    def select(self, slot: int) -> ConsumerState | None:
        points = self._points
        if not points:
            return None
        return self._queues[points[bisect_left(points, slot) % len(points)]][0]

    def key_slot(self, key: bytes) -> int:
        return ring_slot(key)

    def ranges(self) -> dict[ConsumerState, list[tuple[int, int]]]:
        """Slots 1 to 65535; adjacent ranges of one consumer are joined (5.6.18)."""
        result: dict[ConsumerState, list[tuple[int, int]]] = {}
        if not self._points:
            return result
        bounds = self._points if self._points[-1] == RING_SIZE else [*self._points, RING_SIZE]
        lower, previous = 1, None
        for upper in bounds:
            owner = self._queues[self._points[bisect_left(self._points, upper) % len(self._points)]][0]
            mine = result.setdefault(owner, [])
            if owner is previous:
                mine[-1] = (mine[-1][0], upper)
            else:
                mine.append((lower, upper))
            lower, previous = upper + 1, owner
        return result
