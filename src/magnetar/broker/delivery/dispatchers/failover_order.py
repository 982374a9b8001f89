"""The order in which consumers of a Failover subscription become active (rules 5.4.1 to 5.4.3).

Only consumers of the best (lowest) priority count:

* a partition takes the one at ``partition_index % count``, sorted by name;
* a topic without partitions (and, if so configured, a partition too) asks a ring of 100 points per consumer
  for the first point at or after the topic's own, wrapping to the lowest.

The topic's place on the ring never changes, so all that matters of a consumer is how far its nearest point lies from
there; that is computed once, when it joins.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from operator import itemgetter
from typing import Final, TypeAlias

from magnetar.broker.delivery.consumer_state import ConsumerState
from magnetar.model.hashing import murmur3_31

_POINTS: Final = 100
_RING: Final = 1 << 31

Rank: TypeAlias = tuple[int, int, str, int]
"""Priority, distance on the ring (0 without one), name, and the order of arrival among equal names."""

_level = itemgetter(0)
_place = itemgetter(0, 1)


class FailoverOrder:
    """The consumers of one subscription in order; ``topic`` is the full name, ``partition`` -1 for none."""

    def __init__(self, topic: str, partition: int = -1, *, ring_for_partitions: bool = False) -> None:
        self._partition = partition
        self._target = None if partition >= 0 and not ring_for_partitions else murmur3_31(topic.encode())
        self._ranks: list[Rank] = []
        self._by_rank: dict[Rank, ConsumerState] = {}
        self._rank_of: dict[ConsumerState, Rank] = {}
        self._joined = 0

    def add(self, consumer: ConsumerState) -> None:
        self._joined += 1
        rank = (consumer.priority, self._distance(consumer.name), consumer.name, self._joined)
        insort(self._ranks, rank)
        self._by_rank[rank] = consumer
        self._rank_of[consumer] = rank

    def remove(self, consumer: ConsumerState) -> None:
        rank = self._rank_of.pop(consumer)
        del self._by_rank[rank]
        del self._ranks[bisect_left(self._ranks, rank)]

    def first(self) -> ConsumerState | None:
        """The consumer that is to be active."""
        ranks = self._ranks
        if not ranks:
            return None
        if self._target is None:
            at = self._partition % bisect_right(ranks, ranks[0][0], key=_level)
        else:
            at = bisect_right(ranks, _place(ranks[0]), key=_place) - 1  # at one point, the last by name
        return self._by_rank[ranks[at]]

    def _distance(self, name: str) -> int:
        if self._target is None:
            return 0
        return min((murmur3_31(f"{name}{j}".encode()) - self._target) % _RING for j in range(_POINTS))
