"""AUTO_SPLIT by consistent hashing: 100 points per consumer on a ring of 65,535 slots (rules 0.1 to 0.3, 5.6.7).

A slot belongs to the first point at or after it, wrapping to the lowest. Several consumers may hash to one point: the
first to come owns it, the others queue and take over when it leaves. Consumers of one name are distinguished by a
name index, the lowest that is free when they join.

The points are a bit per slot in 256 words of 256, with one more word for which of them hold any: finding a neighbour or
setting a point takes a few steps however many points there are.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Final

from magnetar.broker.delivery.consumer_state import ConsumerState
from magnetar.broker.delivery.sticky_keys.selector import Intervals
from magnetar.model.hashing import RING_SIZE, ring_points, ring_slot

POINTS: Final = 100


class _Names:
    """The name indices of the consumers of one name."""

    __slots__ = ("count", "free", "next")

    def __init__(self) -> None:
        self.count = 0
        self.next = 0
        self.free: list[int] = []

    def take(self) -> int:
        self.count += 1
        if self.free:
            return heappop(self.free)
        self.next += 1
        return self.next - 1

    def give_back(self, index: int) -> None:
        self.count -= 1
        heappush(self.free, index)


class _Points:
    """Slots with a point, 0 to 65535."""

    __slots__ = ("_any", "_words")

    def __init__(self) -> None:
        self._words = [0] * 256
        self._any = 0
        """A bit for each word that is not 0."""

    def add(self, point: int) -> None:
        word = point >> 8
        self._words[word] |= 1 << (point & 255)
        self._any |= 1 << word

    def discard(self, point: int) -> None:
        word = point >> 8
        self._words[word] &= ~(1 << (point & 255))
        if not self._words[word]:
            self._any &= ~(1 << word)

    def from_slot(self, slot: int) -> int:
        """The first point at or after ``slot``, -1 if there is none."""
        word = slot >> 8
        bits = self._words[word] >> (slot & 255) << (slot & 255)
        if not bits:
            above = self._any >> (word + 1) << (word + 1)
            if not above:
                return -1
            word = (above & -above).bit_length() - 1
            bits = self._words[word]
        return word << 8 | (bits & -bits).bit_length() - 1

    def before(self, point: int) -> int:
        """The last point before ``point``, -1 if there is none."""
        word = point >> 8
        bits = self._words[word] & ((1 << (point & 255)) - 1)
        if not bits:
            below = self._any & ((1 << word) - 1)
            if not below:
                return -1
            word = below.bit_length() - 1
            bits = self._words[word]
        return word << 8 | bits.bit_length() - 1

    def highest(self) -> int:
        """The highest point, -1 if there is none."""
        if not self._any:
            return -1
        word = self._any.bit_length() - 1
        return word << 8 | self._words[word].bit_length() - 1


class HashRing:
    """The ring of one subscription; ``points`` is ``subscriptionKeySharedConsistentHashingReplicaPoints``."""

    def __init__(self, points: int = POINTS) -> None:
        self._count = points
        self._queues: dict[int, list[ConsumerState]] = {}
        self._points = _Points()
        self._indices: dict[ConsumerState, int] = {}
        self._names: dict[str, _Names] = {}

    def add(self, consumer: ConsumerState) -> Intervals:
        index = self._names.setdefault(consumer.name, _Names()).take()
        self._indices[consumer] = index
        first = not self._queues
        fresh = []
        for point in dict.fromkeys(ring_points(consumer.name, index, self._count)):
            queue = self._queues.get(point)
            if queue is None:
                self._queues[point] = [consumer]
                fresh.append(point)
            else:
                queue.append(consumer)
        for point in fresh:
            self._points.add(point)
        return [(1, RING_SIZE)] if first else self._reaching(fresh)

    def remove(self, consumer: ConsumerState) -> Intervals:
        index = self._indices.pop(consumer)
        names = self._names[consumer.name]
        names.give_back(index)
        if not names.count:
            del self._names[consumer.name]
        owned, empty = [], []
        for point in dict.fromkeys(ring_points(consumer.name, index, self._count)):
            queue = self._queues[point]
            if queue[0] is consumer:
                owned.append(point)
            queue.remove(consumer)
            if not queue:
                del self._queues[point]
                empty.append(point)
        changed = self._reaching(owned)
        for point in empty:
            self._points.discard(point)
        return changed

    def _reaching(self, points: list[int]) -> Intervals:
        """The slots that belong to these points, which are on the ring."""
        found = []
        for point in points:
            before = self._points.before(point)
            if before < 0:
                found.append((1, point))
                highest = self._points.highest()
                if highest < RING_SIZE:
                    found.append((highest + 1, RING_SIZE))
            else:
                found.append((before + 1, point))
        return sorted(found)

    def select(self, slot: int) -> ConsumerState | None:
        points = self._points
        point = points.from_slot(slot)
        if point < 0:
            point = points.from_slot(0)
            if point < 0:
                return None
        return self._queues[point][0]

    key_slot = staticmethod(ring_slot)

    def ranges(self) -> dict[ConsumerState, list[tuple[int, int]]]:
        """The ranges of all consumers, of slots 1 to 65535; adjacent ranges of one consumer are joined (rule
        5.6.18)."""
        result: dict[ConsumerState, list[tuple[int, int]]] = {}
        points = sorted(self._queues)
        if not points:
            return result
        owners = [(point, self._queues[point][0]) for point in points]
        if points[-1] != RING_SIZE:
            owners.append((RING_SIZE, owners[0][1]))
        lower, previous = 1, None
        for upper, owner in owners:
            mine = result.setdefault(owner, [])
            if owner is previous:
                mine[-1] = (mine[-1][0], upper)
            else:
                mine.append((lower, upper))
            lower, previous = upper + 1, owner
        return result
